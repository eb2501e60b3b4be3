"""A grid as CSV: fractions, not percent; an interval is four columns."""

import csv
from collections.abc import Iterator
from io import StringIO
from math import isnan

from deepera_graph.bench.experiments.experiment import Cell, Grid
from deepera_graph.bench.table import Estimate

_PARTS = ("", " low", " high", " std")


def csv_text(grid: Grid) -> str:
    """Return one line a row; an empty cell where there is nothing to measure."""
    wide = [
        any(isinstance(row[place], Estimate) for row in grid.rows)
        for place in range(len(grid.columns))
    ]
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        f"{column.name}{part}"
        for column, estimate in zip(grid.columns, wide, strict=True)
        for part in (_PARTS if estimate else _PARTS[:1])
    )
    for row in grid.rows:
        writer.writerow(
            value
            for cell, estimate in zip(row, wide, strict=True)
            for value in _cells(cell, estimate)
        )
    return text.getvalue()


def _cells(cell: Cell, wide: bool) -> Iterator[object]:
    values = cell if isinstance(cell, Estimate) else (cell,)
    yield from map(_plain, values)
    if wide and not isinstance(cell, Estimate):
        yield from [""] * (len(_PARTS) - 1)


def _plain(value: object) -> object:
    if isinstance(value, float):
        return "" if isnan(value) else f"{value:.6g}"
    return "" if value is None else value
