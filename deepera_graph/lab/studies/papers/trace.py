"""Provenance: which call of a system brought which answer, and what each call was worth."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from deepera_graph.lab.studies.papers.runs import Call, PaperQuery, QueryRun, Run
from deepera_graph.lab.studies.papers.scores import PaperBench, SystemScores
from deepera_graph.lab.tables import Cell, Column, Grid
from deepera_graph.text.plain import write_sheet


class Source(NamedTuple):
    """Where an answer came from: the first call that brought it, and its rank in the end."""

    paper: str
    call: Call | None  # None: no call did
    number: int | None  # of the call, from 1
    rank: int | None  # None: it was not returned


def trace_answers(query: PaperQuery, run: QueryRun) -> list[Source]:
    """Return the provenance of every answer, found or not, in order of their ids."""
    first: dict[str, int] = {}
    for number, call in enumerate(run.calls or (), start=1):
        for one in call.found:
            first.setdefault(one, number)
    ranks = {one: rank for rank, one in enumerate(run.ranked, start=1)}
    calls = run.calls or ()
    return [
        Source(
            one,
            calls[first[one] - 1] if one in first else None,
            first.get(one),
            ranks.get(one),
        )
        for one in sorted(query.gold)
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
    rows: list[tuple[Cell, ...]] = []
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
            Column("system"),
            Column("tool"),
            *Column.several("count", "calls", "that raised recall"),
            Column("share of them", "percent"),
            Column("answers brought first", "count"),
            Column("share of all answers", "percent"),
        ),
        rows=tuple(rows),
    )


def call_table(bench: PaperBench, systems: Sequence[SystemScores]) -> Grid:
    """Return the calls that raised recall, of the queries that are shown."""
    rows: list[tuple[Cell, ...]] = []
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
            *(Column(one) for one in ("query", "system", "call", "tool", "asked")),
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
