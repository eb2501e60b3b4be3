"""The page: what experiments found and the worst questions, as one HTML text."""

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from math import isnan
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from deepera_graph.bench.experiments.experiment import (
    Cell,
    Column,
    Experiment,
    ExperimentResult,
    Grid,
)
from deepera_graph.bench.experiments.write.cells import head, shown
from deepera_graph.bench.report.svg import inline_svg
from deepera_graph.bench.report.worst import Worst
from deepera_graph.bench.table import Estimate

_HERE = files("deepera_graph.bench.report")
MOST_OPEN_ROWS = 40
_DATASET, _RANKER = "data set", "ranker"


def page(
    results: Sequence[tuple[Experiment, ExperimentResult]],
    worst: Sequence[Worst],
    manifest: dict[str, Any],
    *,
    title: str = "Evidence benchmark",
) -> str:
    """Return the page: no resource from elsewhere, no date; the same input gives the same text.

    Args:
        results: Experiments in order.
        worst: Questions in order.
        manifest: What all of it depends on, as plain data.
        title: Of the page.
    """
    script, style = _text("page.js"), _text("page.css")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["score"] = _score
    template = environment.from_string(_text("page.html.jinja"))
    return template.render(
        title=title,
        style=Markup(style),
        script=Markup(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        sections=[_section(*one) for one in results],
        worst=worst,
        datasets=list(dict.fromkeys(one.dataset for one in worst)),
        rankers=list(dict.fromkeys(one.ranker for one in worst)),
        manifest=json.dumps(manifest, indent=2, ensure_ascii=False),
        about=manifest,
    )


def _section(experiment: Experiment, result: ExperimentResult) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "title": experiment.title,
        "measures": experiment.measures,
        "findings": result.findings,
        "tables": [_table(grid) for grid in result.grids],
        "figures": [
            {
                "title": drawing.title,
                "svg": Markup(inline_svg(drawing.draw(), f"{experiment.name}-{drawing.name}")),
            }
            for drawing in result.drawings
        ],
    }


def _table(grid: Grid) -> dict[str, Any]:
    return {
        "name": grid.name,
        "title": grid.title,
        "note": grid.note,
        "columns": [{"name": head(one), "is_text": one.unit == "text"} for one in grid.columns],
        "rows": [
            [_cell(cell, column) for cell, column in zip(row, grid.columns, strict=True)]
            for row in grid.rows
        ],
        "is_long": len(grid.rows) > MOST_OPEN_ROWS,
        "choices": [_choices(grid, name) for name in (_DATASET, _RANKER)],
    }


def _choices(grid: Grid, name: str) -> dict[str, Any]:
    names = [column.name for column in grid.columns]
    values: list[str] = []
    if name in names:
        place = names.index(name)
        values = list(dict.fromkeys(str(row[place]) for row in grid.rows))
    return {
        "name": name,
        "place": names.index(name) if name in names else 0,
        "values": values if len(values) > 1 else [],
    }


def _cell(cell: Cell, column: Column) -> dict[str, Any]:
    """Return the mean apart from its interval, and a number to sort by."""
    text = shown(cell, column.unit)
    mean, _, rest = text.partition(" ") if isinstance(cell, Estimate) else (text, "", "")
    number = cell.mean if isinstance(cell, Estimate) else cell
    known = isinstance(number, int | float) and not isnan(number)
    return {
        "mean": mean,
        "rest": rest,
        "sort": f"{number:.9g}" if known else "",
        "is_text": column.unit == "text",
    }


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
