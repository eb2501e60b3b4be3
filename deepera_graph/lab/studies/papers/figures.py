"""Figures of searches for papers: recall by intent, by answer size, by calls, and its spread."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from deepera_graph.calibration.statistics import Values
from deepera_graph.lab.bench.figures import BarFigure, CurveFigure, CurvePoints
from deepera_graph.lab.studies.papers.measures import TOP, recall_of
from deepera_graph.lab.studies.papers.runs import PaperQuery
from deepera_graph.lab.studies.papers.scores import (
    PaperBench,
    QueryScores,
    SystemScores,
    recalls_by_intent,
)
from deepera_graph.lab.tables import MetricEstimate

_MOST_POINTS = 20  # of a budget curve
_N_BINS = 10


def draw(bench: PaperBench, systems: Sequence[SystemScores]) -> Iterator[BarFigure | CurveFigure]:
    """Yield the figures of a comparison; curves of budgets only where calls are known."""
    yield _draw_bars(bench, systems, "recall-by-intent", "Recall by intent", bench.intents)
    yield _draw_bars(bench, systems, "recall-by-size", "Recall by number of answers", bench.sizes)
    if curves := budget_curves(bench, systems):
        yield CurveFigure(
            name="budget",
            title="Recall by number of tool calls",
            x_label="tool calls",
            y_label="recall (%)",
            panels=curves,
        )
    panels: dict[str, dict[str, CurvePoints]] = {}
    middles = [100 * (place + 0.5) / _N_BINS for place in range(_N_BINS)]
    for intent, system, values in recalls_by_intent(bench, systems):
        shares = [100 * one for one in _shares(values)]
        panels.setdefault(intent, {})[system] = CurvePoints(middles, shares, shares, shares)
    yield CurveFigure(
        name="distribution",
        title="How R@All is spread",
        x_label="R@All (%)",
        y_label="share of queries (%)",
        panels=panels,
    )


def _draw_bars(
    bench: PaperBench,
    systems: Sequence[SystemScores],
    name: str,
    title: str,
    groups: Mapping[str, Sequence[int]],
) -> BarFigure:
    panels: dict[str, dict[str, dict[str, MetricEstimate]]] = {"R@100": {}, "R@All": {}}
    for group, places in groups.items():
        for system in systems:
            _, hundred, every, _, _ = (
                Values.of(one).of_places(places) for one in system.measures()
            )
            for panel, one in zip(panels.values(), bench.estimate([hundred, every]), strict=True):
                percent = MetricEstimate(*(100 * each for each in one))
                panel.setdefault(group, {})[system.name] = percent
    return BarFigure(name=name, title=title, x_label="recall (%)", panels=panels)


def budget_curves(
    bench: PaperBench, systems: Sequence[SystemScores]
) -> dict[str, dict[str, CurvePoints]]:
    """Return the recall after each number of calls, of all seen and of the first 50, in percent.

    The band is the 95 % interval over queries. A query with fewer calls keeps what it has; the
    first 50 are those of the final ranking that had been seen by then. Systems that do not tell
    their calls have no curve.
    """
    panels: dict[str, dict[str, CurvePoints]] = {"R@All": {}, f"R@{TOP}": {}}
    for system in systems:
        most = max(len(one.calls) for one in system.scores)
        if not most:
            continue
        points = _points(most)
        table = np.array(
            [
                _recall_by_calls(query, one, points)
                for query, one in zip(bench.queries, system.scores, strict=True)
            ]
        )  # shape (n_queries, 2, n_points)
        for place, panel in enumerate(panels.values()):
            found = bench.estimate([Values.of(column) for column in table[:, place].T])
            panel[system.name] = CurvePoints(
                [float(one) for one in points],
                [100 * one.mean for one in found],
                [100 * one.low for one in found],
                [100 * one.high for one in found],
            )
    return panels if any(panels.values()) else {}


def _points(most: int) -> list[int]:
    if most <= _MOST_POINTS:
        return [*range(1, most + 1)]
    return sorted({round(float(one)) for one in np.linspace(1, most, _MOST_POINTS)})


def _recall_by_calls(
    query: PaperQuery, one: QueryScores, points: Sequence[int]
) -> list[list[float]]:
    if one.problem:
        return [[0.0] * len(points)] * 2
    first: dict[str, int] = {}
    for number, call in enumerate(one.calls, start=1):
        for paper in call.found:
            first.setdefault(paper, number)
    last = len(one.calls)  # what no call brought, but was returned, is there in the end
    seen = sorted(first.get(paper, last) for paper in query.gold.intersection(one.run.observed))
    every = [sum(number <= n for number in seen) / len(query.gold) for n in points]
    top = []
    for n in points:
        known = [paper for paper in one.run.ranked if first.get(paper, last) <= n]
        top.append(recall_of(known[:TOP], query.gold))
    return [every, top]


def _shares(values: Sequence[float]) -> list[float]:
    """Return the share of values in each tenth of [0, 1], the last with 1."""
    places = np.minimum((np.asarray(values) * _N_BINS + 1e-9).astype(int), _N_BINS - 1)
    return [float(one) for one in np.bincount(places, minlength=_N_BINS) / len(values)]
