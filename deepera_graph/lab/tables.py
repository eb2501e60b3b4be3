"""Tables of what was measured: columns with units, cells with intervals; as Markdown and CSV."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal, NamedTuple, Self

from deepera_graph.text.plain import read_lists, write_sheet


class MetricEstimate(NamedTuple):
    """A metric of one ranker on one data set, in [0, 1]; not a number if there is none."""

    mean: float
    low: float
    high: float
    std: float  # over repeated runs, 0 for a single one


NOTHING = "–"
_LEAST_SECONDS = 0.001
Unit = Literal["text", "percent", "number", "count", "seconds"]
Cell = str | int | float | MetricEstimate | None
Row = tuple[Cell, ...]
_SIGNS: Mapping[Unit, str] = {"percent": " (%)", "seconds": " (s)"}
_PARTS = ("", " low", " high", " std")
_TOLD = read_lists(__file__)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a grid; `unit` says what its numbers are."""

    name: str
    unit: Unit = "text"  # ``percent`` is a fraction, shown times 100
    range: tuple[int, int] | None = None  # lowest and highest value, where that is not plain

    @classmethod
    def several(cls, unit: Unit, *names: str) -> tuple["Column", ...]:
        """Return one column a name."""
        return tuple(cls(name, unit) for name in names)

    @property
    def heading(self) -> str:
        """Its name with the unit of its numbers."""
        return f"{self.title}{_SIGNS.get(self.unit, '')}"

    @property
    def title(self) -> str:
        """Its name with the range of its numbers, if it has one."""
        return self.name if self.range is None else f"{self.name} {self.range[0]}-{self.range[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table of named columns; a cell is None where there is nothing to measure."""

    name: str  # names its files
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""  # how to read it, in a sentence or two

    @classmethod
    def told(
        cls, name: str, columns: tuple[Column, ...], rows: tuple[Row, ...], **values: object
    ) -> Self:
        """Return the table whose title and note ``tables.toml`` has, with values filled in."""
        words = {key: text.format(**values) for key, text in _TOLD[name].items()}
        return cls(name=name, columns=columns, rows=rows, **words)


def format_cell(cell: Cell, unit: Unit) -> str:
    """Return a cell as text: percent times 100, intervals in brackets, a dash for nothing."""
    if isinstance(cell, MetricEstimate):
        if isnan(cell.mean):
            return NOTHING
        std = f" ± {_format_number(cell.std, unit)}" if cell.std else ""
        mean, low, high = (_format_number(value, unit, whole=False) for value in cell[:3])
        return f"{mean}{std}" if isnan(cell.low) else f"{mean}{std} [{low}, {high}]"
    if cell is None:
        return NOTHING
    return cell if isinstance(cell, str) else _format_number(cell, unit)


def _format_number(value: float, unit: Unit, *, whole: bool = True) -> str:
    """Return a number as text, never ``-0``; a count has two places unless it may be *whole*."""
    if isnan(value):
        return NOTHING
    if unit == "percent":
        text = f"{100 * value:.1f}"
    elif unit == "seconds" and 0 < value < _LEAST_SECONDS:
        text = f"<{_LEAST_SECONDS}"
    elif unit != "count":
        text = f"{value:.3g}"
    elif whole:
        text = f"{value:,.0f}" if value == int(value) else f"{value:.2f}"
    else:
        text = f"{value:,.2f}"
    return text if text.strip("-0.") else text.removeprefix("-")


def format_table(grid: Grid) -> str:
    """Return a grid as a Markdown table, without its title."""
    if not grid.rows:
        return "Nothing to measure."
    units = [column.unit for column in grid.columns]
    body = (
        [format_cell(cell, unit) for cell, unit in zip(row, units, strict=True)]
        for row in grid.rows
    )
    is_text = [unit == "text" for unit in units]
    return format_rows([one.heading for one in grid.columns], body, is_text).removesuffix("\n")


def format_rows(
    head: Sequence[str], body: Iterable[Sequence[str]], is_text: Sequence[bool] = (True,)
) -> str:
    """Return a Markdown table; columns that are no text, or not named so, are aligned right."""
    texts = [*is_text, *[False] * (len(head) - len(is_text))]
    rules = ["---" if one else "---:" for one in texts]
    rows = [[*map(_escape, head)], rules, *([*map(_escape, cells)] for cells in body)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def _escape(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def format_csv(grid: Grid) -> str:
    """Return one line a row; an empty cell where there is nothing to measure."""
    wide = [
        any(isinstance(row[place], MetricEstimate) for row in grid.rows)
        for place in range(len(grid.columns))
    ]
    head = [
        f"{column.title}{part}"
        for column, is_wide in zip(grid.columns, wide, strict=True)
        for part in (_PARTS if is_wide else _PARTS[:1])
    ]
    rows = (
        [
            value
            for cell, is_wide in zip(row, wide, strict=True)
            for value in _csv_values(cell, is_wide=is_wide)
        ]
        for row in grid.rows
    )
    return write_sheet([head, *rows])


def _csv_values(cell: Cell, *, is_wide: bool) -> Iterator[object]:
    values = cell if isinstance(cell, MetricEstimate) else (cell,)
    for value in values:
        if isinstance(value, float):
            yield "" if isnan(value) else f"{value:.6g}"
        else:
            yield "" if value is None else value
    if is_wide:
        yield from [""] * (len(_PARTS) - len(values))
