"""Every notebook runs top to bottom, and shows what is stored in it."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from support.shown import is_shown

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
IN_EVERY_RUN = {"01_quickstart"}  # the others are run by `-m slow`, and by CI
CASES = [
    pytest.param(path, id=path.stem, marks=() if path.stem in IN_EVERY_RUN else pytest.mark.slow)
    for path in NOTEBOOKS
]


NUMBERS_VARY = "numbers-vary"  # tag of cells whose numbers are other ones on another processor
_NUMBER = re.compile(r"\s*\d+(?:\.\d+)?")


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """What each code cell prints; kernels warn on stderr of what is no business of ours."""
    return [
        _NUMBER.sub(" #", text) if NUMBERS_VARY in cell.metadata.get("tags", ()) else text
        for cell in notebook.cells
        for text in [
            "".join(one.text for one in cell.get("outputs", []) if one.get("name") == "stdout")
        ]
    ]


def test_only_the_notebook_on_thresholds_may_print_other_numbers_elsewhere() -> None:
    """Passages lie near its thresholds; differences between processors decide which are kept."""
    tagged = [
        path.stem
        for path in NOTEBOOKS
        for cell in nbformat.read(path, as_version=4).cells
        if NUMBERS_VARY in cell.metadata.get("tags", ())
    ]
    assert tagged == ["12_thresholds"] * 5


@pytest.mark.full
@pytest.mark.parametrize("path", CASES)
@pytest.mark.filterwarnings("ignore")  # of the kernel's own machinery
def test_a_notebook_runs_and_prints_what_is_stored_in_it(path: Path) -> None:
    stored = nbformat.read(path, as_version=4)
    again = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}  # as Jupyter does; they read files
    NotebookClient(again, timeout=120, kernel_name="python3", resources=resources).execute()
    found, shown = ("\n".join(printed(one)).splitlines() for one in (again, stored))
    assert is_shown(found, shown), "\n".join(found)
    assert any(shown)


def test_the_index_of_the_docs_lists_every_notebook() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert NOTEBOOKS
    assert [one.name for one in NOTEBOOKS if f"](../notebooks/{one.name})" not in index] == []
