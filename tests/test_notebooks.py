"""Every notebook runs top to bottom, and shows what is stored in it."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """What the code cells print; kernels warn on stderr of what is no business of ours."""
    outputs = [one for cell in notebook.cells for one in cell.get("outputs", [])]
    return [one.text for one in outputs if one.get("name") == "stdout"]


@pytest.mark.full
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # of the kernel's own machinery
def test_a_notebook_runs_and_prints_what_is_stored_in_it(path: Path) -> None:
    stored = nbformat.read(path, as_version=4)
    again = nbformat.read(path, as_version=4)
    NotebookClient(again, timeout=60, kernel_name="python3").execute()
    assert printed(again) == printed(stored)
    assert any(printed(stored))


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS
