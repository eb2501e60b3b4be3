"""Figures of searches for papers, and the calls they took: recall by intent, size and calls."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from deepera_graph.calibration.statistics import Values
from deepera_graph.lab.bench.figures import (
    BarFigure,
    Bars,
    CurveFigure,
    CurvePoints,
    add_bar,
    draw_curve,
)
from deepera_graph.lab.studies.papers.runs import Call, PaperQuery, QueryRun, Run
from deepera_graph.lab.studies.papers.scores import (
    TOP,
    PaperBench,
    QueryScores,
    SystemScores,
    recall_of,
    recalls_by_intent,
)
from deepera_graph.lab.tables import Column, Grid, Row
from deepera_graph.text.plain import write_sheet

_MOST_POINTS = 20  # of a budget curve
_N_BINS = 10
_DRAWN = ("R@100", "R@All")


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
    panels: Bars = {}
    for group, places in groups.items():
        for system in systems:
            columns = [system.values[panel].of_places(places) for panel in _DRAWN]
            for panel, one in zip(_DRAWN, bench.estimate(columns), strict=True):
                add_bar(panels, panel, group, system.name, one)
    return BarFigure(name=name, title=title, x_label="recall (%)", panels=panels)


def budget_curves(
    bench: PaperBench, systems: Sequence[SystemScores]
) -> dict[str, dict[str, CurvePoints]]:
    """Return the recall after each number of calls, of all seen and of the first 50, in percent."""
    # The band is the 95 % interval over queries. A query with fewer calls keeps what it has; the
    # first 50 are those of the final ranking that had been seen by then. Systems that do not tell
    # their calls have no curve.
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
            panel[system.name] = draw_curve([*map(float, points)], found)
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
    first = _first_calls(one.run)
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


class Source(NamedTuple):
    """Where an answer came from: the first call that brought it, and its rank in the end."""

    paper: str
    call: Call | None  # None: no call did
    number: int | None  # of the call, from 1
    rank: int | None  # None: it was not returned


def _first_calls(run: QueryRun) -> dict[str, int]:
    """Return the number of the call that brought each paper first, from 1."""
    first: dict[str, int] = {}
    for number, call in enumerate(run.calls or (), start=1):
        for paper in call.found:
            first.setdefault(paper, number)
    return first


def trace_answers(query: PaperQuery, run: QueryRun) -> list[Source]:
    """Return the provenance of every answer, found or not, in order of their ids."""
    first, calls = _first_calls(run), run.calls or ()
    ranks = {one: rank for rank, one in enumerate(run.ranked, start=1)}
    return [
        Source(one, calls[number - 1] if number else None, number, ranks.get(one))
        for one in sorted(query.gold)
        for number in [first.get(one)]
    ]


class CallGain(NamedTuple):
    """What a call added to recall."""

    call: Call
    number: int
    new: tuple[str, ...]  # answers that no call before it had brought
    recall: float  # of all seen so far, in [0, 1]


def trace_calls(query: PaperQuery, run: QueryRun) -> list[CallGain]:
    """Return the calls that raised recall, in order."""
    seen: set[str] = set()
    gains = []
    for number, call in enumerate(run.calls or (), start=1):
        new = tuple(one for one in dict.fromkeys(call.found) if one in query.gold - seen)
        if new:
            seen.update(new)
            gains.append(CallGain(call, number, new, len(seen) / len(query.gold)))
    return gains


def source_table(bench: PaperBench, systems: Sequence[SystemScores]) -> Grid:
    """Return how many answers each kind of call brought first."""
    n_gold = sum(len(one.gold) for one in bench.queries)
    rows: list[Row] = []
    for system in systems:
        counts: dict[str, list[int]] = {}
        for query, one in zip(bench.queries, system.scores, strict=True):
            for call in one.calls:
                counts.setdefault(call.tool, [0, 0, 0])[0] += 1
            for gain in trace_calls(query, one.run):
                counts[gain.call.tool][1] += 1
                counts[gain.call.tool][2] += len(gain.new)
        rows += [
            (system.name, tool, n, raised, raised / n, found, found / n_gold)
            for tool, (n, raised, found) in sorted(counts.items())
        ]
    return Grid(
        name="sources",
        title="What brought the answers",
        columns=(
            *Column.several("text", "system", "tool"),
            *Column.several("count", "calls", "that raised recall"),
            Column("share of them", "percent"),
            Column("answers brought first", "count"),
            Column("share of all answers", "percent"),
        ),
        rows=tuple(rows),
    )


def call_table(bench: PaperBench, systems: Sequence[SystemScores]) -> Grid:
    """Return the calls that raised recall, of the queries that are shown."""
    rows: list[Row] = []
    for place in _shown_places(bench, systems):
        query = bench.queries[place]
        for system in systems:
            gains = trace_calls(query, system.scores[place].run)
            rows += [
                (
                    *(query.id, system.name, one.call.id, one.call.tool, one.call.asked),
                    *(len(one.call.found), len(one.new), one.recall),
                )
                for one in gains
            ]
    return Grid(
        name="calls",
        title="Calls that raised recall",
        columns=(
            *Column.several("text", "query", "system", "call", "tool", "asked"),
            *Column.several("count", "papers", "new answers"),
            Column("recall so far", "percent"),
        ),
        rows=tuple(rows),
        note="Of some queries; provenance.csv has every answer of all of them.",
    )


def _shown_places(bench: PaperBench, systems: Sequence[SystemScores]) -> list[int]:
    """Return the queries to be shown, or that of which one system has the most such calls."""
    if bench.shown:
        return [place for place, one in enumerate(bench.queries) if one.id in bench.shown]
    steps = [
        max(len(trace_calls(query, one.scores[place].run)) for one in systems)
        for place, query in enumerate(bench.queries)
    ]
    return [steps.index(max(steps))] if max(steps) > 1 else []


def write_provenance(path: Path, bench: PaperBench, runs: Mapping[str, Run]) -> None:
    """Write a line an answer and system: which call brought it first, and its final rank."""
    rows: list[tuple[object, ...]] = [
        ("system", "query", "paper", "call", "call number", "tool", "asked", "rank")
    ]
    for name, run in runs.items():
        for query in bench.queries:
            for one in trace_answers(query, run.get(query.id) or QueryRun()):
                call = one.call
                said = ("", "", "", "") if call is None else (
                    call.id, one.number, call.tool, " ".join(call.asked.split()),
                )  # fmt: skip
                rows.append((name, query.id, one.paper, *said, one.rank or ""))
    path.write_text(write_sheet(rows), encoding="utf-8", newline="")
