"""A figure of what stands at each rank, one panel a ranker."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from deepera_graph.bench.figures.rank_shares import RankShares

# Colours that people with any kind of colour vision tell apart: Okabe and Ito (2008).
_COLOURS = {"golden": "#009E73", "distractor": "#D55E00", "other": "#D9D9D9"}
_SIZE = (4.0, 2.6)
_NO_DATE: Mapping[str, Mapping[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
    ".png": {"Software": None},
}


def draw_ranks(panels: Mapping[str, RankShares], path: Path) -> None:
    """Write the figure; the same shares give the same bytes.

    Args:
        panels: Title to shares, not empty, left to right.
        path: Where to write it, as ``.svg``, ``.pdf`` or ``.png``.

    Raises:
        ValueError: There is no panel, or the suffix is another.

    Source:
        After figure 5 of DeepEra.
    """
    if not panels or path.suffix not in _NO_DATE:
        raise ValueError(
            f"a figure needs a panel and one of {', '.join(_NO_DATE)}, got {len(panels)} panels "
            f"and {path.name!r}"
        )
    with mpl.rc_context({"svg.hashsalt": "deepera", "svg.fonttype": "none"}):
        figure = Figure(figsize=(_SIZE[0] * len(panels), _SIZE[1]), layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, (title, shares) in zip(axes, panels.items(), strict=True):
            _draw(axis, title, shares)
        axes[0].set_ylabel("share of questions")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False)
        figure.savefig(path, metadata=dict(_NO_DATE[path.suffix]))


def _draw(axis: Any, title: str, shares: RankShares) -> None:
    ranks = range(1, len(shares.golden) + 1)
    below = shares.golden * 0
    for kind, colour in _COLOURS.items():
        heights = getattr(shares, kind)
        axis.bar(ranks, heights, bottom=below, width=1, color=colour, label=kind)
        below = below + heights
    axis.set(title=title, xlabel="rank", ylim=(0, 1), xlim=(0.5, len(ranks) + 0.5))
