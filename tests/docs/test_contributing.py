"""The map of the folders names what is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "deepera_graph"
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_PLACE = re.compile(r"`((?:\w+/)+(?:\w+\.\w+)?|\w+\.py)`")
PARTS = ("*", "docs/*", "integrations/**/*", "tests/**/*")
_LEFT_OUT = {"NAME.py"}


@pytest.mark.full
def test_every_folder_and_file_that_is_named_exists() -> None:
    named = {one for one in _PLACE.findall(TEXT) if one.rpartition("/")[2] not in _LEFT_OUT}
    there = {
        path.relative_to(base).as_posix() + "/" * path.is_dir()
        for base in (ROOT, PACKAGE)
        for path in (*PACKAGE.rglob("*"), *(one for part in PARTS for one in ROOT.glob(part)))
        if path.is_relative_to(base)
    }
    ends = {f"/{one}" for one in there}
    missing = {one for one in named if not any(path.endswith(f"/{one}") for path in ends)}
    assert missing == set()
    assert len(named) > 60


def test_every_folder_and_module_of_the_package_is_in_the_table() -> None:
    there = {
        f"{path.name}/" if path.is_dir() else path.name
        for path in PACKAGE.iterdir()
        if not path.name.startswith(("_", "py.typed"))
    }
    assert {name for name in there if f"`{name}`" not in TEXT} == set()


@pytest.mark.full
def test_the_study_of_two_own_systems_runs_as_it_stands(tmp_path, monkeypatch, capsys) -> None:
    (code,) = re.findall(r"```python\n(.+?)```", TEXT, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "CONTRIBUTING.md", "exec"), {})
    assert {one.name for one in (tmp_path / "mine").iterdir()} == {
        "manifest.json", "mine.md", "systems.csv", "differences.csv"
    }  # fmt: skip
    assert "| rules | HitRate@1 |" in capsys.readouterr().out
