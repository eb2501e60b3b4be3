"""A grid as a LaTeX table with the rules of booktabs."""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from math import isnan
from pathlib import Path
from typing import Any

from deepera_graph.bench.figures import figure_bytes
from deepera_graph.bench.studies.base import Cell, Column, Experiment, ExperimentResult, Grid, Unit
from deepera_graph.bench.table import MetricEstimate

NOTHING = "–"
_SIGNS: Mapping[Unit, str] = {"percent": " (%)", "seconds": " (s)"}


def head(column: Column) -> str:
    """Return the name of a column with the unit of its numbers."""
    return f"{column.name}{_SIGNS.get(column.unit, '')}"


def shown(cell: Cell, unit: Unit) -> str:
    """Return a cell as text: percent times 100, intervals in brackets, a dash for nothing."""
    if isinstance(cell, MetricEstimate):
        return _estimate(cell, unit)
    return number(cell, unit)


def number(cell: str | int | float | None, unit: Unit) -> str:
    """Return a cell without an interval as text."""
    if cell is None or (isinstance(cell, float) and isnan(cell)):
        return NOTHING
    if isinstance(cell, str):
        return cell
    return _FORMS[unit](float(cell))


def _estimate(one: MetricEstimate, unit: Unit) -> str:
    if isnan(one.mean):
        return NOTHING
    std = f" ± {number(one.std, unit)}" if one.std else ""
    mean, low, high = (_part(value, unit) for value in one[:3])
    return f"{mean}{std}" if isnan(one.low) else f"{mean}{std} [{low}, {high}]"


def _part(value: float, unit: Unit) -> str:
    """Return one number of an interval: a mean of counts has two places after the point."""
    if unit == "count" and not isnan(value):
        return _without_minus_zero(f"{value:,.2f}")
    return number(value, unit)


def _percent(value: float) -> str:
    return _without_minus_zero(f"{100 * value:.1f}")


def _number(value: float) -> str:
    return _without_minus_zero(f"{value:.3g}")


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else _without_minus_zero(f"{value:.2f}")


def _without_minus_zero(text: str) -> str:
    return text.removeprefix("-") if not text.strip("-0.") else text


_FORMS: Mapping[Unit, Callable[[float], str]] = {
    "percent": _percent,
    "number": _number,
    "count": _count,
    "seconds": _number,
    "text": _number,
}

_PARTS = ("", " low", " high", " std")


def csv_text(grid: Grid) -> str:
    """Return one line a row; an empty cell where there is nothing to measure."""
    wide = [
        any(isinstance(row[place], MetricEstimate) for row in grid.rows)
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
    values = cell if isinstance(cell, MetricEstimate) else (cell,)
    yield from map(_plain, values)
    if wide and not isinstance(cell, MetricEstimate):
        yield from [""] * (len(_PARTS) - 1)


def _plain(value: object) -> object:
    if isinstance(value, float):
        return "" if isnan(value) else f"{value:.6g}"
    return "" if value is None else value


def markdown(experiment: Experiment, result: ExperimentResult, *, figures: bool = True) -> str:
    """Return one document: tables, what was found, and links to the figures beside it."""
    parts = [f"# {experiment.title}", experiment.measures]
    if result.findings:
        parts.append("\n".join(f"- {line}" for line in result.findings))
    for grid in result.grids:
        parts += [f"## {grid.title}", *([grid.note] if grid.note else []), table(grid)]
    if figures:
        parts += [f"![{one.title}]({one.name}.png)" for one in result.drawings]
    return "\n\n".join(parts) + "\n"


def table(grid: Grid) -> str:
    """Return a grid as a Markdown table, without its title."""
    if not grid.rows:
        return "Nothing to measure."
    units = [column.unit for column in grid.columns]
    lines = [
        [_escaped(head(column)) for column in grid.columns],
        ["---" if unit == "text" else "---:" for unit in units],
        *([_escaped(shown(cell, unit)) for cell, unit in zip(row, units, strict=True)]
          for row in grid.rows),
    ]  # fmt: skip
    return "\n".join(map(_line_markdown, lines))


def _line_markdown(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


_SPECIAL: Mapping[str, str] = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "±": r"$\pm$",
    "−": "$-$",
    "τ": r"$\tau$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{sign: rf"\{sign}" for sign in "&%$#_{}"},
}
_ANY = re.compile("|".join(map(re.escape, _SPECIAL)))


MOST_ROWS_OF_A_FLOAT = 45


def latex(grid: Grid) -> str:
    """Return a `table*` float as wide as the page, or a `longtable` for more than 45 rows.

    It needs the packages booktabs, and graphicx or longtable. A rule sets apart the rows of each
    data set, as the paper does; intervals are small.
    """
    return _long(grid) if len(grid.rows) > MOST_ROWS_OF_A_FLOAT else _float(grid)


def _long(grid: Grid) -> str:
    lines = [
        r"% needs \usepackage{booktabs,longtable}",
        r"\begingroup\scriptsize\setlength{\tabcolsep}{3pt}",
        rf"\begin{{longtable}}{{{_kinds(grid)}}}",
        rf"{_caption(grid)}\\",
        r"\toprule",
        _heads(grid),
        r"\midrule",
        r"\endhead",
        *_body(grid),
        r"\bottomrule",
        r"\end{longtable}",
        r"\endgroup",
    ]
    return "\n".join(lines) + "\n"


def _float(grid: Grid) -> str:
    lines = [
        r"% needs \usepackage{booktabs,graphicx}",
        r"\begin{table*}",
        r"\centering",
        _caption(grid),
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{{_kinds(grid)}}}",
        r"\toprule",
        _heads(grid),
        r"\midrule",
        *_body(grid),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _kinds(grid: Grid) -> str:
    return "".join("l" if column.unit == "text" else "r" for column in grid.columns)


def _caption(grid: Grid) -> str:
    text = escaped(f"{grid.title}. {grid.note}".strip())
    return rf"\caption{{{text}}}\label{{tab:{grid.name}}}"


def _heads(grid: Grid) -> str:
    return _line_latex([escaped(head(column)) for column in grid.columns])


def escaped(text: str) -> str:
    """Return a text in which nothing is a command of LaTeX."""
    return _ANY.sub(lambda found: _SPECIAL[found[0]], " ".join(text.split()))


def _body(grid: Grid) -> list[str]:
    lines: list[str] = []
    for place, row in enumerate(grid.rows):
        if place and _begins_a_group(grid, place):
            lines.append(r"\midrule")
        cells = zip(row, grid.columns, strict=True)
        lines.append(_line_latex([_cell(cell, column.unit) for cell, column in cells]))
    return lines


def _begins_a_group(grid: Grid, place: int) -> bool:
    """Tell a new data set; where every row has a name of its own there are no groups."""
    firsts = [row[0] for row in grid.rows]
    return len(set(firsts)) < len(firsts) and firsts[place] != firsts[place - 1]


def _cell(cell: Cell, unit: Unit) -> str:
    if not isinstance(cell, MetricEstimate):
        return escaped(shown(cell, unit))
    mean, _, rest = shown(cell, unit).partition(" ")
    return f"{escaped(mean)} {{\\scriptsize {escaped(rest)}}}" if rest else escaped(mean)


def _line_latex(cells: list[str]) -> str:
    text = " & ".join(cells)
    guard = "{}" if text.startswith("[") else ""  # the line break before would take it as a length
    return rf"{guard}{text} \\"


MANIFEST = "manifest.json"


def write_experiment(
    experiment: Experiment, result: ExperimentResult, manifest: dict[str, Any], folder: Path
) -> None:
    """Write ``NAME.md``, each table as CSV and LaTeX, each figure as SVG and PNG, and a manifest.

    Nothing written depends on when or where.

    Args:
        experiment: Names the Markdown file.
        result: What was found.
        manifest: What it depended on, as plain data.
        folder: Made when it is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in _files(experiment, result):
        (folder / name).write_bytes(data)
    whole = {**manifest, "experiment": experiment.name, **result.facts}
    text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_bytes(text.encode())


def _files(experiment: Experiment, result: ExperimentResult) -> Iterator[tuple[str, bytes]]:
    yield f"{experiment.name}.md", markdown(experiment, result).encode()
    for grid in result.grids:
        yield f"{grid.name}.csv", csv_text(grid).encode()
        yield f"{grid.name}.tex", latex(grid).encode()
    for drawing in result.drawings:
        figure = drawing.draw()
        for suffix in (".svg", ".png"):
            yield f"{drawing.name}{suffix}", figure_bytes(figure, suffix)
