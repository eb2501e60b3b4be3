"""A figure of metrics against a setting: one panel a data set, one curve a way of doing it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from deepera_graph.bench.figures.labels import label as short
from deepera_graph.bench.figures.save import COLOURS

_PANEL = (3.0, 2.5)
_MOST_ACROSS = 4


class Curve(NamedTuple):
    """One curve: points and the intervals around them, in the unit of the figure."""

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    dashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveFigure:
    """Curves in panels.

    Attributes:
        name: Names its files.
        title: What it shows.
        x_label: What is varied.
        y_label: What is measured.
        panels: Panel title, then label, to curve; not empty.

    Source:
        After figure 7 of DeepEra.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    panels: Mapping[str, Mapping[str, Curve]]

    def draw(self) -> Figure:
        """Draw it; a curve has the same colour in all panels."""
        across = min(len(self.panels), _MOST_ACROSS)
        down = -(-len(self.panels) // across)
        size = (_PANEL[0] * across + 1.8, _PANEL[1] * down)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
        labels = list(dict.fromkeys(label for panel in self.panels.values() for label in panel))
        handles: dict[str, Any] = {}
        for axis, (title, panel) in zip(axes, self.panels.items(), strict=False):
            for label, curve in panel.items():
                handles[label] = _draw(axis, curve, COLOURS[labels.index(label) % len(COLOURS)])
            axis.set_title(short(title), fontsize="medium")
            axis.set_xlabel(self.x_label)
            axis.grid(alpha=0.3, linewidth=0.5)
        for axis in axes[len(self.panels) :]:
            axis.remove()
        axes[0].set_ylabel(self.y_label)
        figure.legend(
            [handles[label] for label in labels],
            [short(label, longest=60) for label in labels],
            loc="outside right upper",
            frameon=False,
        )
        return figure


def _draw(axis: Any, curve: Curve, colour: str) -> Any:
    axis.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
    style = "--" if curve.dashed else "-"
    (line,) = axis.plot(curve.x, curve.y, style, color=colour, marker="o", markersize=3)
    return line
