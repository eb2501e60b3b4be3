"""CSV that spreadsheets open without running anything."""

import csv
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph import EvidenceReranker, export_result
from deepera_graph.text.plain import write_sheet

FORMULAS = [
    "=1+1",
    "+cmd",
    "-2+3",
    "-1/A1",
    "-1 x|y",
    "-1 to A1()",
    "-cmd|' /C calc'!A0",
    "@SUM(A1)",
    "\t=1",
    "\n=1",
    "\uff1d1",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_becomes_text(text: str) -> None:
    assert list(csv.reader(StringIO(write_sheet([[text]]), newline=""))) == [[f"'{text}"]]


@pytest.mark.parametrize(
    "value",
    [-0.5, "-0.5", "+3", "-1e-6", "-0.1 mmol/l", "-0.15 to -0.03", "-4%", 0, "A = B", "5-HT", ""],
)
def test_numbers_and_other_texts_stay_as_they_are(value: object) -> None:
    assert next(csv.reader(StringIO(write_sheet([[value, "x"]])))) == [str(value), "x"]


@pytest.mark.full
@given(st.lists(st.lists(st.text(alphabet="ab,\"\n=-'"), min_size=2, max_size=2)))
def test_all_rows_come_back(rows: list[list[str]]) -> None:
    read = list(csv.reader(StringIO(write_sheet(rows), newline="")))
    assert [[cell.removeprefix("'") for cell in row] for row in read] == [
        [cell.removeprefix("'") for cell in row] for row in rows
    ]


def test_a_carriage_return_breaks_no_row() -> None:
    assert list(csv.reader(StringIO(write_sheet([["a\rb\r\nc", "d"]])))) == [["a\nb\nc", "d"]]


def test_no_cell_of_an_exported_result_is_a_formula() -> None:
    text = '=HYPERLINK("http://x.example") Wax coating kept apples firm (p < 0.001).'
    result = EvidenceReranker("rules").rerank("Does wax coating keep apples firm?", [text])
    cells = [cell for row in csv.reader(StringIO(export_result(result, "csv"))) for cell in row]
    assert any("HYPERLINK" in cell for cell in cells)
    assert [cell for cell in cells if cell.startswith("=")] == []
