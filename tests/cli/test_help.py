"""Help that teaches, in no time."""

import json
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import get_type_hints

import pytest

from cli.conftest import TEA, line
from deepera_graph import Budget, __version__
from deepera_graph.cli.config import OPTIONS
from deepera_graph.cli.judging.ask import FLAGS, ask
from deepera_graph.cli.judging.rerank import rerank
from deepera_graph.cli.main import load_command
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.options import BudgetOptions
from deepera_graph.lab.cli.main import COMMANDS as LAB_COMMANDS
from deepera_graph.packages import install_command
from deepera_graph.settings import Settings

DAILY = ("demo", "rerank", "index", "ask")
COMMANDS = (
    "demo", "rerank", "index", "ask", "check", "table", "serve", "library", "calibrate",
    "doctor", "config",
    "papers", "mcp", "cache",
)  # fmt: skip
WITH_JSON = (
    "demo", "rerank", "index", "ask", "check", "table", "calibrate", "papers ask", "papers build",
    "papers search",
    "papers show", "papers cite", "cache stats", "library list", "library delete",
)  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(
    ("program", "command"),
    [
        *(("deepera", command) for command in WITH_JSON),
        *(("deepera-lab", command) for command in LAB_COMMANDS),
    ],
)
def test_the_help_of_a_command_has_examples_and_exit_codes(deepera, deepera_lab, program, command):
    run = deepera if program == "deepera" else deepera_lab
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
    assert f"{program} {command}" in result.stdout
    assert "130 interrupted" in " ".join(result.stdout.split())
    assert "--json" in result.stdout


def test_the_help_names_all_commands_and_their_exit_codes(deepera):
    text = " ".join(deepera("--help").stdout.split())
    assert all(f" {command} " in text for command in COMMANDS)
    for code in ("0 done", "1 a line", "2 usage", "3 backend or store unreachable"):
        assert code in text


def test_the_version_is_told(deepera):
    assert deepera("--version").stdout == f"deepera {__version__}\n"


def test_no_command_shows_the_help(deepera):
    result = deepera()
    assert result.exit_code == 2
    assert "Usage" in result.output


@pytest.mark.full
@pytest.mark.parametrize(
    ("command", "extra"),
    [("mcp", "mcp"), ("serve", "serve"), ("bench quest build", "bench,papers")],
)
def test_help_and_messages_name_the_same_command_that_brings_an_extra(
    deepera, deepera_lab, command, extra
):
    run = deepera_lab if command.startswith("bench") else deepera
    text = " ".join(run(*command.split(), "--help").stdout.split())
    assert install_command(extra) in text


@pytest.mark.full
def test_help_loads_no_langchain():
    loaded = "import sys; print(*sys.modules)"
    code = f"from deepera_graph.cli.main import app; {loaded}"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"langchain_core", "langgraph", "pydantic", "qdrant_client", "openai", "asyncio"}
    assert heavy & set(modules) == set()


@pytest.mark.full
@pytest.mark.parametrize("name", ["top_n", "max_concurrency", "order", "on_empty"])
def test_the_defaults_in_the_help_are_the_defaults(deepera, name):
    text = re.sub(r"[│\s]+", " ", deepera("rerank", "--help-all").stdout)
    option = f"--{name.replace('_', '-')} "
    after = text[text.index(option) :]
    assert after[after.index("[default:") :].startswith(f"[default: ({Settings().to_dict()[name]})")


@pytest.mark.full
def test_the_help_says_whose_the_default_threshold_is(deepera):
    text = re.sub(r"[│\s]+", " ", deepera("rerank", "--help-all").stdout)
    assert Settings().threshold is None
    assert "[default: (the judge's own: 0.8 for a chat model)]" in text


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["reranc"], "Did you mean 'rerank'?"),
        (["rerank", "--treshold", "1"], "--threshold"),
        (["rerank"], "Missing argument 'IN'"),
        (["rerank", "-", "--top-n", "many"], "'many'"),
        (["rerank", "-", "--order", "size"], "'size'"),
        (["rerank", "-", "--limit", "0"], "0"),
    ],
)
def test_a_usage_error_is_one_line(deepera, args, hint):
    result = deepera(*args)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert hint in result.stderr
    assert result.stderr.rstrip().endswith("--help)")


@pytest.mark.parametrize("command", DAILY)
def test_the_help_of_a_daily_command_fits_a_screen(deepera, command):
    lines = deepera(command, "--help").stdout.splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 80


@pytest.mark.full
@pytest.mark.parametrize("command", DAILY)
def test_help_all_lists_every_option(deepera, command):
    made = load_command(command)
    keys = {*OPTIONS} - {*FLAGS["ask"]} if command == "ask" else set()
    written = {name for one in made.params if one.name not in keys for name in one.opts}
    shown = deepera(command, "--help-all").stdout
    assert "Examples:" in shown
    assert {one for one in written if one.startswith("-") and one not in shown} == set()


@pytest.mark.full
def test_a_command_whose_help_shows_all_takes_help_all_too(deepera, deepera_lab):
    for run, words in ((deepera, ("library", "list")), (deepera_lab, ("bench", "table"))):
        every = run(*words, "--help-all")
        assert (every.exit_code, every.stdout) == (0, run(*words, "--help").stdout)


def test_ask_has_at_most_thirty_options_and_all_others_are_keys(deepera):
    lines = deepera("ask", "--help-all").stdout.splitlines()
    options = {found[1] for one in lines if (found := re.match(r"\u2502 (--[a-z-]+) ", one))}
    assert {one[2:].replace("-", "_") for one in options} == {
        *FLAGS["ask"], "help", "help_all", "json", "source",
    } - {"as_json", "sources"}  # fmt: skip
    assert len(options) <= 30
    others = {one.name for one in load_command("ask").params} - {*FLAGS["ask"]}
    assert others - {"question", "source", "help_all", "help"} <= {*OPTIONS}


@pytest.mark.parametrize("option", ["--stop-margin=0.2", "--explore=9", "--on-empty=top1"])
def test_an_option_that_became_a_key_is_refused_with_the_key(deepera, option):
    result = deepera("ask", "Does tea help?", "papers.jsonl", option)
    key = option[2:].partition("=")[0].replace("-", "_")
    hint = f"set {key} in deepera.toml, or DEEPERA_{key.upper()}"
    assert (result.exit_code, hint in result.stderr) == (2, True)


@pytest.mark.full
def test_help_is_as_short_after_help_all_as_before(deepera):
    before = deepera("ask", "--help").stdout
    assert len(deepera("ask", "--help-all").stdout) > len(before)
    assert deepera("ask", "--help").stdout == before


@pytest.mark.parametrize("command", sorted({*DAILY} - {"index"}))  # `index` has few options
def test_help_leaves_out_what_is_seldom_needed(deepera, command):
    made = load_command(command)
    short = deepera(command, "--help").stdout
    written = {name for one in made.params for name in one.opts if name.startswith("--")}
    assert {one for one in written if f"{one} " not in short} != set()


KINDS = {
    kind
    for module in (options, places)
    for kind in vars(module).values()
    if is_dataclass(kind) and kind.__module__ == module.__name__
}  # fmt: skip
SOURCE = "".join(
    path.read_text(encoding="utf-8") for path in Path(options.__file__).parents[1].rglob("*.py")
)


@pytest.mark.parametrize("name", sorted({one.name for kind in KINDS for one in fields(kind)}))
def test_an_option_is_read_or_is_a_setting(name):
    [about] = {
        one.metadata["setting"] for kind in KINDS for one in fields(kind) if one.name == name
    }
    passed_on = {one.name for kind in (Settings, Budget) for one in fields(kind)}
    read = re.search(rf"\b[a-z_]+\.{name}\b|pop\(\"{name}\"", SOURCE)
    assert (about or name) in passed_on or read


NO_OPTION = {"rerank": {"answer"}, "ask": set()}  # an output line of rerank has no room for one


@pytest.mark.parametrize("command", [rerank, ask])
def test_every_setting_has_an_option(command):
    kinds = [one for one in get_type_hints(command).values() if is_dataclass(one)]
    settings = {one.metadata["setting"] or one.name for kind in kinds for one in fields(kind)}
    settings |= {"budget"} if any(issubclass(one, BudgetOptions) for one in kinds) else set()
    missing = {one.name for one in fields(Settings)} - settings
    assert missing == NO_OPTION[command.__name__]


@pytest.mark.full
@pytest.mark.parametrize(
    ("args", "name", "value"),
    [
        (("--max-passage-chars", "500"), "max_passage_chars", 500),
        (("--stop-margin", "0.2"), "stop_margin", 0.2),
        (("--require-evidence", "yes"), "require_evidence", True),
        (("--require-evidence", "no"), "require_evidence", False),
        (("--max-failed-share", "0.5"), "max_failed_share", 0.5),
        (("--no-summaries",), "content", "passage"),
        (("--preset", "careful"), "max_failed_share", 0.0),
        (("--preset", "careful", "--max-failed-share", "0.1"), "max_failed_share", 0.1),
        (("--preset", "fast"), "content", "passage"),
        (("--preset", "fast", "--content", "summary"), "content", "summary"),
    ],
)
def test_an_option_becomes_a_setting_and_wins_over_a_preset(
    deepera, questions, tmp_path, args, name, value
):
    out = tmp_path / "out.jsonl"
    deepera("rerank", questions(line()), "-o", out, "--backend", TEA, *args)
    report = json.loads((tmp_path / "out.report.json").read_text(encoding="utf-8"))
    assert report["manifest"]["settings"][name] == value


@pytest.mark.full
def test_a_preset_says_how_a_chat_model_is_asked(deepera, questions):
    args = ("rerank", questions(line()), "--model", "openai:any", "--dry-run", "--json")
    stages = [
        json.loads(deepera(*args, *more).stdout)["usage"]["stages"]
        for more in ((), ("--preset", "cheap"), ("--preset", "cheap", "--mode", "separate"))
    ]
    assert [one["score"]["calls"] for one in stages] == [3, 1, 3]


def test_an_unknown_preset_is_one_line(deepera, questions):
    result = deepera("rerank", questions(line()), "--preset", "quick")
    assert result.exit_code == 2
    assert "preset must be one of fast, careful, cheap, got 'quick'" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["as"], ["ask"]),
        (["ask", "--thresh"], ["--threshold"]),
        (["rerank", "--order", ""], ["score", "retrieval"]),
        (["cache", "pr"], ["prune"]),
    ],
)
def test_a_shell_is_told_what_may_come_next(tmp_path, environment, words, offered):
    (tmp_path / "deepera.toml").write_text("broken")  # is no matter of completion
    line = ["deepera", *words]
    asked = {"_DEEPERA_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(line)}
    done = subprocess.run(
        [sys.executable, "-c", "from deepera_graph.cli.main import run; run()"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**environment, **asked, "COMP_CWORD": str(len(line) - 1)},
    )  # fmt: skip
    assert (done.stdout.split(), done.stderr) == (offered, "")


@pytest.mark.parametrize("command", ["", *DAILY, "doctor"])
def test_no_flag_is_shown_with_a_type(deepera, command):
    assert "<bool>" not in deepera(*command.split(), "--help").stdout


@pytest.mark.parametrize("command", ["", "bench", "bench table"])
def test_no_flag_of_the_lab_is_shown_with_a_type(deepera_lab, command):
    assert "<bool>" not in deepera_lab(*command.split(), "--help").stdout
