"""Bars of what a study measured, a panel a metric or a data set."""

from math import isnan

from deepera_graph.lab.bench.figures import BarFigure
from deepera_graph.lab.tables import Cell, MetricEstimate

Bars = dict[str, dict[str, dict[str, MetricEstimate]]]


def add_bar(panels: Bars, panel: str, group: str, bar: str, cell: Cell) -> None:
    """Add a bar in percent, if its cell was measured."""
    if isinstance(cell, MetricEstimate) and not isnan(cell.mean):
        in_percent = MetricEstimate(*(100 * part for part in cell))
        panels.setdefault(panel, {}).setdefault(group, {})[bar] = in_percent


def draw_bars(name: str, title: str, panels: Bars) -> tuple[BarFigure, ...]:
    """Return the figure; none without bars."""
    if not panels:
        return ()
    return (BarFigure(name=name, title=title, x_label="percent", panels=panels),)
