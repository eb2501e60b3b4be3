"""`deepera` and `deepera-lab`: who has which commands, and the names of before."""

import subprocess
import sys
import tomllib

import pytest

from cli.conftest import TESTS
from deepera_graph import __version__
from deepera_graph.cli import main
from deepera_graph.lab.cli import main as lab

pytestmark = pytest.mark.full


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Console scripts as the project file declares them, however this environment was made."""
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text("utf-8"))["project"]
    folder = tmp_path / "site" / "deepera_graph-0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: deepera-graph\nVersion: 0\n")
    scripts = "".join(f"{name} = {place}\n" for name, place in project["scripts"].items())
    (folder / "entry_points.txt").write_text(f"[console_scripts]\n{scripts}")
    monkeypatch.syspath_prepend(folder.parent)


def first_words(program):
    return {name.split()[0] for name in program.COMMANDS}


def test_no_command_is_in_both_programs_and_old_names_are_those_of_the_lab():
    assert first_words(main) & first_words(lab) == set()
    moved = {old for old, new in main.MOVED.items() if new == lab.PROGRAM.name}
    assert moved | {"study"} == first_words(lab)


def test_the_version_of_the_lab_is_that_of_the_package(deepera_lab):
    assert deepera_lab("--version").stdout == f"deepera-lab {__version__}\n"


def test_the_help_has_one_line_on_the_lab_and_no_command_of_it(deepera):
    lines = deepera("--help").stdout.splitlines()
    assert len([line for line in lines if "deepera-lab" in line]) == 1
    words = {line.strip("│ ").partition(" ")[0] for line in lines if line.startswith("│")}
    assert words & first_words(lab) == set()
    assert words >= first_words(main)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "words",
    [
        ("bench", "table", "--help"),
        ("bench", "table", "no-such-data"),
        ("bench", "mix", "sample-ssli", "--recipe", "nc", "--out", "mixed.jsonl"),
        ("bioasq", "check", "no-such-file"),
        ("bioasq",),
        ("judge", "evaluate"),
    ],
)
def test_an_old_name_does_the_same_and_says_the_new_one(
    deepera, deepera_lab, tmp_path, monkeypatch, words
):
    monkeypatch.chdir(tmp_path)
    old = deepera(*words)
    for made in tmp_path.glob("mixed*"):
        made.unlink()
    new = deepera_lab(*words)
    assert (old.exit_code, old.stdout) == (new.exit_code, new.stdout)
    hint = f"deepera: deepera {words[0]} is now deepera-lab {words[0]}; "
    assert old.stderr.startswith(hint)
    assert old.stderr.partition("\n")[2] == new.stderr


@pytest.mark.parametrize("words", [("study", "cost"), ("multihop",), ("bioasq",), ("papers",)])
def test_experiments_that_were_in_bench_are_found_under_study(deepera_lab, words):
    new = words if words[0] == "study" else ("study", *words)
    old = deepera_lab("bench", *words, "--help")
    assert old.exit_code == 0
    assert old.stdout == deepera_lab(*new, "--help").stdout
    hint = f"deepera-lab: deepera-lab bench {words[0]} is now deepera-lab study"
    assert old.stderr.startswith(hint)


def test_an_old_name_without_the_lab_is_one_line(deepera, monkeypatch):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    result = deepera("bench", "table", "x")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "deepera-lab is not installed" in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_first_program_imports_nothing_of_the_second():
    code = (
        "import sys; from deepera_graph.cli.main import COMMANDS, load_command\n"
        "[load_command(name) for name in COMMANDS]\n"
        "print(*(one for one in sys.modules if one.startswith('deepera_graph.lab')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
