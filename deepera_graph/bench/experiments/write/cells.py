"""Numbers of a grid as people read them."""

from collections.abc import Callable, Mapping
from math import isnan

from deepera_graph.bench.experiments.experiment import Cell, Column, Unit
from deepera_graph.bench.table import Estimate

NOTHING = "–"
_SIGNS: Mapping[Unit, str] = {"percent": " (%)", "seconds": " (s)"}


def head(column: Column) -> str:
    """Return the name of a column with the unit of its numbers."""
    return f"{column.name}{_SIGNS.get(column.unit, '')}"


def shown(cell: Cell, unit: Unit) -> str:
    """Return a cell as text: percent times 100, intervals in brackets, a dash for nothing."""
    if isinstance(cell, Estimate):
        return _estimate(cell, unit)
    return number(cell, unit)


def number(cell: str | int | float | None, unit: Unit) -> str:
    """Return a cell without an interval as text."""
    if cell is None or (isinstance(cell, float) and isnan(cell)):
        return NOTHING
    if isinstance(cell, str):
        return cell
    return _FORMS[unit](float(cell))


def _estimate(one: Estimate, unit: Unit) -> str:
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
