"""The commands in README and docs exist, and those shown with their output print it."""

import re
import shlex
from functools import cache
from itertools import takewhile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deepera_graph.cli.main import PROGRAM
from deepera_graph.lab.cli.main import PROGRAM as LAB
from support.shown import is_shown

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
PROGRAMS = {one.name: one for one in (PROGRAM, LAB)}
_ENDS = {"|", ">", "&&", "2>", ";", "&", ">>", "<"}


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Language, title and text of each fenced block."""
    return _FENCE.findall(page.read_text(encoding="utf-8"))


def commands(page: Path) -> list[list[str]]:
    """The calls in a page's blocks for a shell, as lists of a program and its arguments."""
    found = []
    for language, _, text in blocks(page):
        if language not in ("bash", "console"):
            continue
        for line in text.replace("\\\n", " ").splitlines():
            words = split(line.removeprefix("$ "))
            for start in (place for place, word in enumerate(words) if word in PROGRAMS):
                rest = words[start:]
                ends = [place for place, word in enumerate(rest) if word in _ENDS]
                found.append(rest[: ends[0]] if ends else rest)
    return found


def split(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # part of a string of several lines, or output
        return []


@cache
def options(program: str, name: str) -> set[str]:
    """What a command can be given."""
    parameters = PROGRAMS[program].load_command(name).params
    return {"-h", "--help", "--help-all"}.union(
        *({*one.opts, *one.secondary_opts} for one in parameters)
    )


def unknown(call: list[str]) -> list[str]:
    """What of a call's names the command line does not have."""
    program, *arguments = call
    commands = PROGRAMS[program].commands
    named = list(takewhile(lambda one: re.fullmatch(r"[a-z-]+", one), arguments))[:4]
    starts = [" ".join(named[:length]) for length in range(len(named), 0, -1)]
    name = next((one for one in starts if one in commands), None)
    if name is None:
        groups = {" ".join(one.split()[:length]) for one in commands for length in (1, 2, 3)}
        return [] if not named or starts[0] in groups else [starts[0]]
    given = (word.partition("=")[0] for word in arguments if re.match(r"--?[a-z]", word))
    return [word for word in given if word not in options(program, name)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_command_and_its_options_exist(page: Path) -> None:
    wrong = {shlex.join(one): names for one in commands(page) if (names := unknown(one))}
    assert wrong == {}


def test_a_misspelt_option_or_command_would_be_found() -> None:
    assert unknown(["deepera", "ask", "why?", "papers.jsonl", "--treshold", "0.5"]) == [
        "--treshold"
    ]
    assert unknown(["deepera-lab", "bench", "tables"]) == ["bench tables"]
    assert sum(len(commands(page)) for page in PAGES) > 90


@pytest.mark.full
def test_all_commands_have_json_but_the_servers_that_the_docs_name() -> None:
    page = ROOT / "docs" / "command-line.md"
    text = " ".join(page.read_text(encoding="utf-8").split())
    [named] = re.findall(r"all but the servers \(([^)]*)\) have `--json`", text)
    without = {
        name
        for program in PROGRAMS.values()
        for name in program.commands
        if "--json" not in options(program.name, name)
    }
    assert set(re.findall(r"`([^`]+)`", named)) == without


def sessions() -> list[Path]:
    """Pages that show what commands print; README, in a wider terminal, has a test of its own."""
    return [page for page in PAGES[1:] if any(one[0] == "console" for one in blocks(page))]


@pytest.mark.full
@pytest.mark.parametrize("page", sessions(), ids=lambda page: page.stem)
def test_a_session_prints_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for language, title, text in blocks(page):
        if title:
            Path(title).write_text(text, encoding="utf-8")
        elif language == "console":
            for call, shown in read_session(text):
                printed = run(call)
                assert is_shown(printed, shown), "\n".join(printed)


def read_session(text: str) -> list[tuple[str, list[str]]]:
    """The commands of a block, each with the lines that it prints."""
    calls = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [(lines[0], lines[1:]) for lines in (call.splitlines() for call in calls)]


def run(call: str) -> list[str]:
    program, *arguments = shlex.split(call)
    done = CliRunner().invoke(PROGRAMS[program].app, arguments)
    assert done.exit_code == 0, done.output
    return [line.rstrip() for line in done.output.splitlines()]
