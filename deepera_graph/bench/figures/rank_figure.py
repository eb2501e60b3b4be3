"""A figure of what stands at each rank, one panel a ranker."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from deepera_graph.bench.figures.labels import label
from deepera_graph.bench.figures.rank_shares import RankShares
from deepera_graph.bench.figures.save import SUFFIXES, save

# Colours that people with any kind of colour vision tell apart: Okabe and Ito (2008).
KINDS = {"golden": "#009E73", "distractor": "#D55E00", "other": "#D9D9D9"}
_SIZE = (4.0, 2.6)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFigure:
    """Shares of the questions with evidence, a look-alike or something else at each rank.

    Attributes:
        name: Names its files.
        title: What it shows.
        panels: Title to shares, not empty, left to right.

    Source:
        After figure 5 of DeepEra.
    """

    name: str
    title: str
    panels: Mapping[str, RankShares]

    def draw(self) -> Figure:
        """Draw it."""
        figure = Figure(figsize=(_SIZE[0] * len(self.panels), _SIZE[1]), layout="constrained")
        axes = figure.subplots(1, len(self.panels), sharey=True, squeeze=False)[0]
        for axis, (title, shares) in zip(axes, self.panels.items(), strict=True):
            _draw(axis, title, shares)
        axes[0].set_ylabel("share of questions")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False)
        return figure


def draw_ranks(panels: Mapping[str, RankShares], path: Path) -> None:
    """Write the figure; the same shares give the same bytes.

    Args:
        panels: Title to shares, not empty, left to right.
        path: Where to write it, as ``.svg``, ``.pdf`` or ``.png``.

    Raises:
        ValueError: There is no panel, or the suffix is another.
    """
    if not panels or path.suffix not in SUFFIXES:
        raise ValueError(
            f"a figure needs a panel and one of {', '.join(SUFFIXES)}, got {len(panels)} panels "
            f"and {path.name!r}"
        )
    save(RankFigure(name="ranks", title="", panels=panels).draw(), path)


def _draw(axis: Any, title: str, shares: RankShares) -> None:
    ranks = range(1, len(shares.golden) + 1)
    below = shares.golden * 0
    for kind, colour in KINDS.items():
        heights = getattr(shares, kind)
        axis.bar(ranks, heights, bottom=below, width=1, color=colour, label=kind)
        below = below + heights
    axis.set(title=label(title), xlabel="rank", ylim=(0, 1), xlim=(0.5, len(ranks) + 0.5))
