"""A figure of bars with intervals: one panel a data set, one group a label, one bar a series."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from deepera_graph.bench.figures.labels import label as short
from deepera_graph.bench.figures.save import COLOURS
from deepera_graph.bench.table import Estimate

_WIDTH, _PER_BAR, _REST = 3.4, 0.16, 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class BarFigure:
    """Horizontal bars in panels.

    Attributes:
        name: Names its files.
        title: What it shows.
        x_label: What is measured.
        panels: Panel title, then group, then series, to a mean with its interval; not empty.
        zero: Where bars start.
    """

    name: str
    title: str
    x_label: str
    panels: Mapping[str, Mapping[str, Mapping[str, Estimate]]]
    zero: float = 0.0

    def draw(self) -> Figure:
        """Draw it; a series has the same colour in all panels."""
        groups = max(len(panel) for panel in self.panels.values())
        labels = list(dict.fromkeys(one for panel in self.panels.values()
                                    for group in panel.values() for one in group))  # fmt: skip
        height = _PER_BAR * groups * (len(labels) + 1) + _REST
        size = (_WIDTH * len(self.panels) + 1.6, height)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(1, len(self.panels), squeeze=False, sharex=True)[0]
        handles: dict[str, Any] = {}
        for axis, (title, panel) in zip(axes, self.panels.items(), strict=True):
            handles.update(self._panel(axis, panel, labels))
            axis.set_title(short(title), fontsize="medium")
            axis.set_xlabel(self.x_label)
        names = [short(one) for one in handles]
        figure.legend(list(handles.values()), names, loc="outside right upper", frameon=False)
        return figure

    def _panel(
        self, axis: Any, panel: Mapping[str, Mapping[str, Estimate]], labels: list[str]
    ) -> dict[str, Any]:
        drawn: dict[str, Any] = {}
        step = len(labels) + 1
        for number, group in enumerate(panel.values()):
            for label, one in group.items():
                place = number * step + labels.index(label)
                drawn[label] = axis.barh(
                    place,
                    one.mean - self.zero,
                    left=self.zero,
                    height=0.9,
                    color=COLOURS[labels.index(label) % len(COLOURS)],
                    xerr=[[one.mean - one.low], [one.high - one.mean]],
                    error_kw={"elinewidth": 0.7, "alpha": 0.7},
                )
        middles = [number * step + (step - 2) / 2 for number in range(len(panel))]
        axis.set_yticks(middles, [short(one) for one in panel])
        axis.margins(y=0.01)
        axis.invert_yaxis()
        axis.axvline(self.zero, color="#8C8C8C", linewidth=0.7)
        return drawn
