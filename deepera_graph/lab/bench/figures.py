"""Figures of the benchmark: bars, curves, shares and maps of ranks; equal numbers, equal bytes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from math import isnan
from typing import Any, NamedTuple, Protocol

import matplotlib as mpl
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from deepera_graph.calibration.instance import MetricError
from deepera_graph.calibration.statistics import Floats
from deepera_graph.lab.metrics.ranking import JudgedRanking
from deepera_graph.lab.tables import Cell, MetricEstimate, Row, Unit

# Colours that people with any kind of colour vision tell apart: Okabe and Ito (2008); the grey, the
# violet and the brown are ours.
COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#8C8C8C",
    "#F0E442",
    "#5E3C99",
    "#8C510A",
)
_SALT = "deepera"
_NO_DATE: Mapping[str, Mapping[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
    ".png": {"Software": None},
}
_BAR_PANEL_WIDTH, _PER_BAR, _BAR_REST = 3.4, 0.16, 1.1
_CURVE_PANEL = (3.0, 2.5)
_MOST_ACROSS = 4
KINDS = {"golden": "#009E73", "distractor": "#D55E00", "other": "#D9D9D9"}
_SHARES_PANEL = (4.0, 2.6)
_NOTHING, _OTHER, _DISTRACTOR, _GOLDEN = range(4)
_CELL_COLOURS = ListedColormap(["none", KINDS["other"], KINDS["distractor"], KINDS["golden"]])
_MAP_PANEL = (2.4, 2.6)
_HEAT_MAP = (4.8, 4.2)


def short_label(text: str, *, longest: int = 32) -> str:
    """Return a name in one line of at most *longest* characters, in which `$` begins no formula."""
    line = " ".join(text.split())
    short = line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"
    return short.replace("$", r"\$")


@dataclass(frozen=True, slots=True, eq=False)
class RankShares:
    """Shares of the questions, each in [0, 1], shape (n_ranks,), rank 1 first."""

    golden: Floats
    distractor: Floats
    other: Floats


def rank_shares(judged: Sequence[JudgedRanking], n_ranks: int = 30) -> RankShares:
    """Count what the ranks 1 to *n_ranks* hold, of the questions that something answers, if any."""
    if not judged or n_ranks < 1:
        raise MetricError(f"shares need a ranking and a rank, got {len(judged)} and {n_ranks}")
    cells = rank_cells([one for one in judged if one.golden] or judged, n_ranks)
    return RankShares(*((cells == kind).mean(axis=0) for kind in (_GOLDEN, _DISTRACTOR, _OTHER)))


def figure_bytes(figure: Figure, suffix: str, *, transparent: bool = False) -> bytes:
    """Return a figure as a file of that kind."""
    if suffix not in _NO_DATE:
        raise ValueError(f"a figure is one of {', '.join(_NO_DATE)}, got {suffix!r}")
    buffer = BytesIO()
    with mpl.rc_context({"svg.hashsalt": _SALT, "svg.fonttype": "none"}):
        figure.savefig(
            buffer,
            format=suffix.removeprefix("."),
            metadata=dict(_NO_DATE[suffix]),
            dpi=150,
            transparent=transparent,
        )
    return buffer.getvalue()


class Drawing(Protocol):
    """A figure that draws itself; the same numbers give the same figure."""

    @property
    def name(self) -> str:
        """Names its files: lower case and hyphens."""

    @property
    def title(self) -> str:
        """What it shows, for people."""

    def draw(self) -> Figure:
        """Draw it anew."""


def draw_files(drawings: Iterable[Drawing]) -> Iterator[tuple[str, bytes]]:
    """Yield each figure as SVG and as PNG, with the name of the file."""
    for one in drawings:
        figure = one.draw()
        for suffix in (".svg", ".png"):
            yield f"{one.name}{suffix}", figure_bytes(figure, suffix)


@dataclass(frozen=True, slots=True, kw_only=True)
class BarFigure:
    """Horizontal bars in panels."""

    name: str
    title: str
    x_label: str
    panels: Mapping[str, Mapping[str, Mapping[str, MetricEstimate]]]  # panel, group, series

    def draw(self) -> Figure:
        """Draw it; a series has the same colour in all panels."""
        groups = max(len(panel) for panel in self.panels.values())
        labels = list(dict.fromkeys(one for panel in self.panels.values()
                                    for group in panel.values() for one in group))  # fmt: skip
        height = _PER_BAR * groups * (len(labels) + 1) + _BAR_REST
        size = (_BAR_PANEL_WIDTH * len(self.panels) + 1.6, height)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(1, len(self.panels), squeeze=False, sharex=True)[0]
        handles: dict[str, Any] = {}
        for axis, (title, panel) in zip(axes, self.panels.items(), strict=True):
            handles.update(self._panel(axis, panel, labels))
            axis.set_title(short_label(title), fontsize="medium")
            axis.set_xlabel(self.x_label)
        names = [short_label(one) for one in handles]
        figure.legend(list(handles.values()), names, loc="outside right upper", frameon=False)
        return figure

    def _panel(
        self, axis: Any, panel: Mapping[str, Mapping[str, MetricEstimate]], labels: list[str]
    ) -> dict[str, Any]:
        drawn: dict[str, Any] = {}
        step = len(labels) + 1
        for number, group in enumerate(panel.values()):
            for label, one in group.items():
                place = number * step + labels.index(label)
                drawn[label] = axis.barh(
                    place,
                    one.mean,
                    height=0.9,
                    color=COLOURS[labels.index(label) % len(COLOURS)],
                    xerr=[[one.mean - one.low], [one.high - one.mean]],
                    error_kw={"elinewidth": 0.7, "alpha": 0.7},
                )
        middles = [number * step + (step - 2) / 2 for number in range(len(panel))]
        axis.set_yticks(middles, [short_label(one) for one in panel])
        axis.margins(y=0.01)
        axis.invert_yaxis()
        axis.axvline(0.0, color="#8C8C8C", linewidth=0.7)
        return drawn


class CurvePoints(NamedTuple):
    """One curve: points and the intervals around them, in the unit of the figure."""

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    dashed: bool = False


def draw_curve(
    x: Sequence[float],
    means: Sequence[MetricEstimate],
    *,
    dashed: bool = False,
    unit: Unit = "percent",
) -> CurvePoints:
    """Return a curve, without the points that have nothing to measure."""
    points = [(at, one) for at, one in zip(x, means, strict=True) if one.mean == one.mean]
    factor = 100 if unit == "percent" else 1
    return CurvePoints(
        x=[at for at, _ in points],
        y=[factor * one.mean for _, one in points],
        low=[factor * one.low for _, one in points],
        high=[factor * one.high for _, one in points],
        dashed=dashed,
    )


def draw_column(
    rows: Sequence[Row], column: int, *, factor: float = 1.0, most: int | None = None
) -> dict[str, dict[str, CurvePoints]]:
    """Return the curves of a column, by the first two cells of rows; the third one is x."""
    # *factor* is that of x; of each panel the first *most* curves are drawn.
    points: dict[tuple[str, str], list[tuple[float, MetricEstimate]]] = {}
    for panel, name, x, *rest in rows:
        mean = rest[column - 3]
        if isinstance(x, int | float) and isinstance(mean, MetricEstimate):
            points.setdefault((str(panel), str(name)), []).append((factor * x, mean))
    panels: dict[str, dict[str, CurvePoints]] = {}
    for (panel, name), found in points.items():
        if len(panels.setdefault(panel, {})) != most:
            panels[panel][name] = draw_curve(*zip(*found, strict=True))
    return panels


# Source: After figure 7 of DeepEra.
@dataclass(frozen=True, slots=True, kw_only=True)
class CurveFigure:
    """Curves in panels."""

    name: str
    title: str
    x_label: str
    y_label: str
    panels: Mapping[str, Mapping[str, CurvePoints]]
    log_x: bool = False

    def draw(self) -> Figure:
        """Draw it; a curve has the same colour in all panels."""
        across = min(len(self.panels), _MOST_ACROSS)
        down = -(-len(self.panels) // across)
        size = (_CURVE_PANEL[0] * across + 1.8, _CURVE_PANEL[1] * down)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
        labels = list(dict.fromkeys(label for panel in self.panels.values() for label in panel))
        handles: dict[str, Any] = {}
        for axis, (title, panel) in zip(axes, self.panels.items(), strict=False):
            for label, curve in panel.items():
                colour = COLOURS[labels.index(label) % len(COLOURS)]
                band = {"color": colour, "alpha": 0.15, "linewidth": 0}
                axis.fill_between(curve.x, curve.low, curve.high, **band)
                style = {"color": colour, "marker": "o", "markersize": 3}
                dashes = "--" if curve.dashed else "-"
                (handles[label],) = axis.plot(curve.x, curve.y, dashes, **style)
            axis.set_title(short_label(title), fontsize="medium")
            axis.set_xlabel(self.x_label)
            axis.grid(alpha=0.3, linewidth=0.5)
            if self.log_x:
                _space_by_factor(axis, [x for curve in panel.values() for x in curve.x])
        for axis in axes[len(self.panels) :]:
            axis.remove()
        axes[0].set_ylabel(self.y_label)
        figure.legend(
            [handles[label] for label in labels],
            [short_label(label, longest=60) for label in labels],
            loc="outside right upper",
            frameon=False,
        )
        return figure


def _space_by_factor(axis: Any, values: Sequence[float]) -> None:
    """Space an axis by factors, with its values as they are written."""
    ticks = sorted({*values})
    axis.set_xscale("log")
    axis.set_xticks(ticks, [f"{one:,.0f}" for one in ticks])
    axis.minorticks_off()


# Source: After figure 5 of DeepEra.
@dataclass(frozen=True, slots=True, kw_only=True)
class RankFigure:
    """Shares of the questions with evidence, a look-alike or something else at each rank."""

    name: str
    title: str
    panels: Mapping[str, RankShares]

    def draw(self) -> Figure:
        """Draw it."""
        figure = Figure(
            figsize=(_SHARES_PANEL[0] * len(self.panels), _SHARES_PANEL[1]), layout="constrained"
        )
        axes = figure.subplots(1, len(self.panels), sharey=True, squeeze=False)[0]
        for axis, (title, shares) in zip(axes, self.panels.items(), strict=True):
            _draw_shares(axis, title, shares)
        axes[0].set_ylabel("share of questions")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False)
        return figure


def _draw_shares(axis: Any, title: str, shares: RankShares) -> None:
    ranks = range(1, len(shares.golden) + 1)
    below = shares.golden * 0
    for kind, colour in KINDS.items():
        heights = getattr(shares, kind)
        axis.bar(ranks, heights, bottom=below, width=1, color=colour, label=kind)
        below = below + heights
    axis.set(title=short_label(title), xlabel="rank", ylim=(0, 1), xlim=(0.5, len(ranks) + 0.5))


# Source: After figure 5 of DeepEra: 30 passages a question, distractors shaded.
@dataclass(frozen=True, slots=True, kw_only=True)
class RankMap:
    """All rankings of some rankers on some data sets."""

    name: str
    title: str
    panels: Mapping[str, Mapping[str, NDArray[np.uint8]]]

    def draw(self) -> Figure:
        """Draw it."""
        n_columns = len(next(iter(self.panels.values())))
        size = (_MAP_PANEL[0] * n_columns + 1.4, _MAP_PANEL[1] * len(self.panels))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(len(self.panels), n_columns, squeeze=False)
        for line, (row_title, row) in zip(axes, self.panels.items(), strict=True):
            for axis, (title, cells) in zip(line, row.items(), strict=True):
                n_questions, n_ranks = cells.shape
                axis.imshow(
                    cells,
                    cmap=_CELL_COLOURS,
                    vmin=0,
                    vmax=3,
                    aspect="auto",
                    interpolation="nearest",
                    extent=(0.5, n_ranks + 0.5, n_questions, 0),
                )
                axis.set_title(short_label(title), fontsize="medium")
            line[0].set_ylabel(f"{short_label(row_title)}\nquestions")
        for axis in axes[-1]:
            axis.set_xlabel("rank")
        patches = [Patch(color=colour, label=kind) for kind, colour in KINDS.items()]
        figure.legend(handles=patches, loc="outside right upper", frameon=False)
        return figure


def rank_cells(judged: Sequence[JudgedRanking], n_ranks: int = 30) -> NDArray[np.uint8]:
    """Return what stands at each rank; shape (n_questions, n_ranks), best questions first."""
    cells = np.full((len(judged), n_ranks), _NOTHING, dtype=np.uint8)
    for line, one in zip(cells, judged, strict=True):
        for rank, id in enumerate(one.ranked[:n_ranks]):
            line[rank] = _GOLDEN if id in one.golden else _OTHER
            if id in one.parents:
                line[rank] = _DISTRACTOR
    keys = [(one.golden_rank(), tuple(-line)) for one, line in zip(judged, cells.astype(int),
                                                                  strict=True)]  # fmt: skip
    return cells[sorted(range(len(judged)), key=keys.__getitem__)]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Numbers over two settings, e.g. pairs of weights, one of them marked."""

    name: str
    title: str
    x_label: str
    y_label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]  # shape (n_y, n_x)
    marked: tuple[float, float]  # x and y

    def draw(self) -> Figure:
        """Draw it; the lowest y is at the bottom."""
        figure = Figure(figsize=_HEAT_MAP, layout="constrained")
        axis = figure.subplots()
        image = axis.imshow(np.array(self.values), origin="lower", cmap="viridis", aspect="equal")
        place = self.x.index(self.marked[0]), self.y.index(self.marked[1])
        axis.plot(*place, marker="*", markersize=12, color="#D55E00", markeredgecolor="white")
        axis.set_xticks(range(len(self.x)), [f"{one:g}" for one in self.x])
        axis.set_yticks(range(len(self.y)), [f"{one:g}" for one in self.y])
        axis.set_xlabel(short_label(self.x_label, longest=40))
        axis.set_ylabel(short_label(self.y_label, longest=40))
        axis.set_title(short_label(self.title, longest=60), fontsize="medium")
        figure.colorbar(image, ax=axis, shrink=0.8)
        return figure


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
