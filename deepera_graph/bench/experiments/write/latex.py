"""A grid as a LaTeX table with the rules of booktabs."""

import re
from collections.abc import Mapping

from deepera_graph.bench.experiments.experiment import Cell, Grid, Unit
from deepera_graph.bench.experiments.write.cells import head, shown
from deepera_graph.bench.table import Estimate

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
    return _line([escaped(head(column)) for column in grid.columns])


def escaped(text: str) -> str:
    """Return a text in which nothing is a command of LaTeX."""
    return _ANY.sub(lambda found: _SPECIAL[found[0]], " ".join(text.split()))


def _body(grid: Grid) -> list[str]:
    lines: list[str] = []
    for place, row in enumerate(grid.rows):
        if place and _begins_a_group(grid, place):
            lines.append(r"\midrule")
        cells = zip(row, grid.columns, strict=True)
        lines.append(_line([_cell(cell, column.unit) for cell, column in cells]))
    return lines


def _begins_a_group(grid: Grid, place: int) -> bool:
    """Tell a new data set; where every row has a name of its own there are no groups."""
    firsts = [row[0] for row in grid.rows]
    return len(set(firsts)) < len(firsts) and firsts[place] != firsts[place - 1]


def _cell(cell: Cell, unit: Unit) -> str:
    if not isinstance(cell, Estimate):
        return escaped(shown(cell, unit))
    mean, _, rest = shown(cell, unit).partition(" ")
    return f"{escaped(mean)} {{\\scriptsize {escaped(rest)}}}" if rest else escaped(mean)


def _line(cells: list[str]) -> str:
    text = " & ".join(cells)
    guard = "{}" if text.startswith("[") else ""  # the line break before would take it as a length
    return rf"{guard}{text} \\"
