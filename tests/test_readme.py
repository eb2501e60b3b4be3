"""The Python of README and docs runs and prints what it says; the diagram is the graph's."""

import io
import json
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deepera_graph import build_graph, local_backend
from deepera_graph.cli.main import app
from deepera_graph.settings import Settings
from support.shown import is_shown

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
README = PAGES[0].read_text(encoding="utf-8")
SETTINGS, HOW_IT_WORKS = (
    (ROOT / "docs" / page).read_text(encoding="utf-8")
    for page in ("settings.md", "how-it-works.md")
)
NEEDS = {"haystack": "haystack", "llama-index": "llama_index.core"}  # pages on extras beside `test`
BLOCKS = [
    pytest.param(block, NEEDS.get(page.stem), id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    )
]
LINKS = [
    pytest.param(page, link, id=f"{page.stem}-{link}")
    for page in PAGES
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
]


@pytest.mark.full
@pytest.mark.parametrize(("block", "needs"), BLOCKS)
def test_a_python_block_prints_what_it_says(
    block: str, needs: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if needs is not None:
        pytest.importorskip(needs)
    monkeypatch.chdir(tmp_path)  # some write files
    expected = re.findall(r"^# > (.*)$", block, re.MULTILINE)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(block, "README.md", "exec"), {})
    assert printed.getvalue().splitlines() == expected


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the folder of the repository, with collections in a folder of the test's own."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.full
@pytest.mark.usefixtures("at_home")
def test_the_first_command_prints_what_is_shown_of_it() -> None:
    (shown,) = re.findall(r"```console\n\$ (.*?)```", section("Your own papers"), re.DOTALL)
    command, expected = shown.split("\n", maxsplit=1)
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    printed = [line.rstrip() for line in result.stdout.splitlines()]
    assert is_shown(printed, expected.splitlines()), result.stdout


@pytest.mark.full
@pytest.mark.usefixtures("at_home")
def test_the_first_commands_can_be_run() -> None:
    (block,) = re.findall(r"```bash\n(.*?apples.*?)```", section("Your own papers"), re.DOTALL)
    commands = [shlex.split(one.split(" > ")[0], comments=True) for one in block.splitlines()]
    offline = [one for one in commands if "--source" not in one]
    assert len(offline) == 4
    for _, *args in offline:
        result = CliRunner().invoke(app, args)
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize(("page", "link"), LINKS)
def test_a_link_leads_to_a_file(page: Path, link: str) -> None:
    assert (page.parent / link).exists()


def test_the_readme_is_a_first_screen_and_not_the_manual() -> None:
    assert len(README.splitlines()) <= 200


def test_there_are_blocks_to_run() -> None:
    assert len(BLOCKS) >= 4


def test_every_setting_has_a_row_with_its_default() -> None:
    for name, value in Settings().to_dict().items():
        shown = re.search(rf"^\| `{name}` \| (.+?) \|", SETTINGS, re.MULTILINE)
        assert shown is not None, name
        default = re.sub(r"(?<=\d) (?=\d)", "", shown.group(1).strip("`"))
        assert default in (json.dumps(value), repr(value)), name


def test_the_diagram_is_drawn_from_the_compiled_graph() -> None:
    drawn = build_graph(local_backend(), Settings(answer=True)).get_graph().draw_mermaid()
    assert body(drawn) in HOW_IT_WORKS


def body(mermaid: str) -> str:
    """Node and edge lines without front matter and styles."""
    return "\n".join(
        line.strip() for line in mermaid.splitlines() if re.search(r"-->|-\.|\(", line)
    )
