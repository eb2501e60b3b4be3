"""A figure of every question's ranking: one line a question, one shaded cell a passage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from deepera_graph.bench.figures.labels import label
from deepera_graph.bench.figures.rank_figure import KINDS
from deepera_graph.bench.metrics.judged import Judged

_NOTHING, _OTHER, _DISTRACTOR, _GOLDEN = range(4)
_COLOURS = ListedColormap(["none", KINDS["other"], KINDS["distractor"], KINDS["golden"]])
_PANEL = (2.4, 2.6)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMap:
    """All rankings of some rankers on some data sets.

    Attributes:
        name: Names its files.
        title: What it shows.
        panels: Row title, then column title, to cells; every row has the same columns.

    Source:
        After figure 5 of DeepEra: 30 passages a question, distractors shaded.
    """

    name: str
    title: str
    panels: Mapping[str, Mapping[str, NDArray[np.uint8]]]

    def draw(self) -> Figure:
        """Draw it."""
        n_columns = len(next(iter(self.panels.values())))
        size = (_PANEL[0] * n_columns + 1.4, _PANEL[1] * len(self.panels))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(len(self.panels), n_columns, squeeze=False)
        for line, (row_title, row) in zip(axes, self.panels.items(), strict=True):
            for axis, (title, cells) in zip(line, row.items(), strict=True):
                _draw(axis, title, cells)
            line[0].set_ylabel(f"{label(row_title)}\nquestions")
        for axis in axes[-1]:
            axis.set_xlabel("rank")
        patches = [Patch(color=colour, label=kind) for kind, colour in KINDS.items()]
        figure.legend(handles=patches, loc="outside right upper", frameon=False)
        return figure


def rank_cells(judged: Sequence[Judged], n_ranks: int = 30) -> NDArray[np.uint8]:
    """Return what stands at each rank; shape (n_questions, n_ranks).

    Questions with the golden passage on top come first, and among them those with few look-alikes
    before it.
    """
    cells = np.full((len(judged), n_ranks), _NOTHING, dtype=np.uint8)
    for line, one in zip(cells, judged, strict=True):
        for rank, id in enumerate(one.ranked[:n_ranks]):
            line[rank] = _GOLDEN if id in one.golden else _OTHER
            if id in one.parents:
                line[rank] = _DISTRACTOR
    keys = [(one.golden_rank(), tuple(-line)) for one, line in zip(judged, cells.astype(int),
                                                                  strict=True)]  # fmt: skip
    return cells[sorted(range(len(judged)), key=keys.__getitem__)]


def _draw(axis: Any, title: str, cells: NDArray[np.uint8]) -> None:
    n_questions, n_ranks = cells.shape
    axis.imshow(
        cells,
        cmap=_COLOURS,
        vmin=0,
        vmax=3,
        aspect="auto",
        interpolation="nearest",
        extent=(0.5, n_ranks + 0.5, n_questions, 0),
    )
    axis.set_title(label(title), fontsize="medium")
