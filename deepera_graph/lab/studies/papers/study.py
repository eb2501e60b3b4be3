"""Searches for papers compared: recall, cost, budgets, answer sizes, limits, and who found what.

Runs are made by `bench.papers_runs`, or read from files of other systems; every query counts, and
one that failed or is missing counts 0 and is named. Scripted judges are in `bench.papers_judges`.

Source: the evaluation of ScholarQuest, whose tables and figures these are, and of its leaderboard.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from deepera_graph.calibration.statistics import Values
from deepera_graph.errors import InputError
from deepera_graph.lab.studies.experiment import About, StudyResult, check_baseline, compare_columns
from deepera_graph.lab.studies.papers.figures import call_table, draw, source_table
from deepera_graph.lab.studies.papers.judges import study_judges
from deepera_graph.lab.studies.papers.runs import Run
from deepera_graph.lab.studies.papers.scores import (
    CANDIDATES,
    PaperBench,
    QueryScores,
    SystemScores,
    by_intents,
    find_zero_recall,
    limit_scores,
    recall_per_candidates,
    recalls_by_intent,
)
from deepera_graph.lab.studies.run import describe_file, describe_versions
from deepera_graph.lab.tables import Cell, Column, Grid

_LIBRARIES = ("numpy", "matplotlib")
_NAMED = 5  # queries that a finding names
_MEASURES = ("R@25", "R@100", "R@All", "nDCG@50", "P@50")
_COMPARED = ("R@100", "R@All", "nDCG@50")
_LIMITS = ("first", "auc", "precision", "recall", "f1")


PAPERS = About(
    "papers",
    "Searches for papers",
    "How many of the answers each system found (R@k, binary), how high up they stand, and what "
    "that took.",
)


def study_systems(bench: PaperBench, runs: Mapping[str, Run]) -> StudyResult:
    """Compare systems: all tables and figures.

    Raises:
        InputError: A run has none of the queries, or there is no run.
        SettingsError: There is no such baseline.
    """
    if not runs:
        raise InputError("there is no run to measure")
    baseline = check_baseline(bench.baseline, runs)
    systems = [SystemScores.of(name, run, bench) for name, run in runs.items()]
    grids = [
        *_main_tables(bench, systems),
        _intent_table(bench, systems),
        _process_table(bench, systems),
        compare_columns(_compared(systems), baseline, bench),
        _bucket_table(bench, systems),
        _distribution_table(bench, systems),
        *_zero_tables(bench, systems),
        source_table(bench, systems),
        call_table(bench, systems),
        limit_table(bench, systems),
        _failure_table(bench, systems),
    ]
    return StudyResult(
        grids=tuple(one for one in grids if one.rows),
        drawings=tuple(draw(bench, systems)),
        findings=tuple(_findings(bench, systems)),
    )


def _main_tables(bench: PaperBench, systems: Sequence[SystemScores]) -> Iterator[Grid]:
    intents = [one.intent for one in bench.queries]
    rows: dict[str, list[tuple[Cell, ...]]] = {"queries": [], "intents": []}
    for system in systems:
        columns = system.measures()
        found = bench.estimate(
            [Values.of(one) for one in columns] + [by_intents(one, intents) for one in columns]
        )
        returned = system.column(lambda one: one.returned).mean()
        reach = system.column(lambda one: one.recall_returned).mean()
        failed = sum(bool(one.problem) for one in system.scores)
        half = len(columns)
        rows["queries"].append((system.name, *found[:half], reach, returned, failed))
        rows["intents"].append((system.name, *found[half:]))
    measures = Column.several("percent", *_MEASURES)
    yield Grid(
        name="systems",
        title=f"Overall, mean of {len(bench.queries)} queries",
        columns=(
            Column("system"),
            *measures,
            Column("R@returned", "percent"),
            Column("papers returned", "count"),
            Column("queries that count 0", "count"),
        ),
        rows=tuple(rows["queries"]),
        note="R@All is of everything returned or observed, R@returned of the ranking alone, "
        "however deep it goes. Brackets hold 95 % intervals over queries.",
    )
    if len({*intents}) > 1:
        yield Grid(
            name="systems-by-intent",
            title=f"Overall, mean of {len({*intents})} intents",
            columns=(Column("system"), *measures),
            rows=tuple(rows["intents"]),
            note="Every intent counts alike, however many queries it has.",
        )


def _intent_table(bench: PaperBench, systems: Sequence[SystemScores]) -> Grid:
    rows: list[tuple[Cell, ...]] = []
    for intent, places in bench.intents.items():
        for system in systems:
            columns = [Values.of(one).of_places(places) for one in system.measures()]
            rows.append((intent, system.name, len(places), *bench.estimate(columns)))
    return Grid(
        name="intents",
        title="By intent",
        columns=(
            Column("intent"),
            Column("system"),
            Column("queries", "count"),
            *Column.several("percent", *_MEASURES),
        ),
        rows=tuple(rows),
    )


def _count_calls(one: QueryScores, *, expansion: bool | None = None) -> int | None:
    """Count calls, those that follow citations, or the searches; None if they are not known."""
    if one.run.calls is None:
        return None
    if expansion is None:
        return len(one.run.calls)
    if expansion:
        return sum(call.is_expansion for call in one.run.calls)
    return sum(call.tool == "search" for call in one.run.calls)


_PROCESS: Mapping[str, Callable[[QueryScores], float | None]] = {
    "rounds": lambda one: one.run.rounds,
    "search calls": lambda one: _count_calls(one, expansion=False),
    "expand calls": lambda one: _count_calls(one, expansion=True),
    "tool calls": _count_calls,
    "failed calls": lambda one: (
        None if one.run.calls is None else sum(bool(call.problem) for call in one.calls)
    ),
    "observed": lambda one: one.observed,
    "planner tokens": lambda one: one.run.tokens,
    "seconds": lambda one: one.run.seconds,
}


def _process_table(bench: PaperBench, systems: Sequence[SystemScores]) -> Grid:
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        means: list[Cell] = [_known(system.column(take).mean()) for take in _PROCESS.values()]
        ratio = bench.estimate(
            [system.column(lambda one: recall_per_candidates(one.recall[CANDIDATES], one.observed))]
        )
        observed = system.column(lambda one: one.observed).mean()
        recall = system.column(lambda one: one.recall[CANDIDATES]).mean()
        of_means = recall_per_candidates(recall, observed)
        rows.append((system.name, *means, *ratio, of_means))
    return Grid(
        name="process",
        title="What a query takes",
        columns=(
            Column("system"),
            *Column.several("number", *_PROCESS),
            *Column.several("number", "R@100 per 100 observed", "the same of the means"),
        ),
        rows=tuple(rows),
        note="Means over the queries that tell. R@100 per 100 observed is the mean over queries of "
        "R@100 x 100 / papers observed; beside it the ratio of the means, another number.",
    )


def _known(mean: float) -> float | None:
    return None if isnan(mean) else mean


def _compared(systems: Sequence[SystemScores]) -> dict[str, dict[str, Values]]:
    """Return the columns that systems are compared by, by system and measure."""
    columns = {one.name: dict(zip(_MEASURES, one.measures(), strict=True)) for one in systems}
    return {
        name: {what: Values.of(own[what]) for what in _COMPARED} for name, own in columns.items()
    }


def _bucket_table(bench: PaperBench, systems: Sequence[SystemScores]) -> Grid:
    rows: list[tuple[Cell, ...]] = []
    for name, places in bench.sizes.items():
        for system in systems:
            _, hundred, every, gain, _ = (
                Values.of(one).of_places(places) for one in system.measures()
            )
            estimates = bench.estimate([hundred, every, gain])
            rows.append((name, system.name, len(places), *estimates))
    return Grid(
        name="answer-sizes",
        title="By number of answers",
        columns=(
            Column("answers"),
            Column("system"),
            Column("queries", "count"),
            *Column.several("percent", *_COMPARED),
        ),
        rows=tuple(rows),
    )


def _distribution_table(bench: PaperBench, systems: Sequence[SystemScores]) -> Grid:
    rows: list[tuple[Cell, ...]] = []
    for intent, system, values in recalls_by_intent(bench, systems):
        low, middle, high = (float(one) for one in np.quantile(values, [0.25, 0.5, 0.75]))
        none = sum(not one for one in values) / len(values)
        whole = sum(one == 1 for one in values) / len(values)
        rows.append((intent, system, len(values), none, low, middle, high, whole))
    return Grid(
        name="distribution",
        title="How R@All is spread",
        columns=(
            Column("intent"),
            Column("system"),
            Column("queries", "count"),
            *Column.several(
                "percent", "with none", "lower quartile", "median", "upper quartile", "with all"
            ),
        ),
        rows=tuple(rows),
    )


def _zero_tables(bench: PaperBench, systems: Sequence[SystemScores]) -> Iterator[Grid]:
    zero = find_zero_recall(bench, systems)
    observed = Column.several("number", *(f"observed by {one.name}" for one in systems))

    def row(name: str, all_of: Sequence[int]) -> tuple[Cell, ...]:
        mine = [place for place in all_of if place in zero]
        seen = [
            float(np.mean([one.scores[place].observed for place in mine])) if mine else None
            for one in systems
        ]
        return (name, len(all_of), len(mine), len(mine) / len(all_of), *seen)

    rows = [row(intent, places) for intent, places in bench.intents.items()]
    yield Grid(
        name="zero-recall",
        title="Queries of which no system found an answer",
        columns=(
            Column("intent"),
            *Column.several("count", "queries", "without an answer"),
            Column("share", "percent"),
            *observed,
        ),
        rows=(*rows, row("all", range(len(bench.queries)))),
        note="Papers observed are means over these queries.",
    )
    yield Grid(
        name="zero-recall-queries",
        title="These queries",
        columns=(Column("query"), Column("intent"), Column("answers", "count"), *observed),
        rows=tuple(
            (
                bench.queries[place].id,
                bench.queries[place].intent,
                len(bench.queries[place].gold),
                *(one.scores[place].observed for one in systems),
            )
            for place in zero
        ),
    )


def limit_table(bench: PaperBench, systems: Sequence[SystemScores]) -> Grid:
    """Return how limits were kept, by intent and over all queries with papers that break them."""
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        found = limit_scores(bench, system)
        intents = {one: [p for p in places if p in found] for one, places in bench.intents.items()}
        groups = {name: places for name, places in intents.items() if places}
        if len(groups) > 1:
            groups["all"] = [*found]
        for name, places in groups.items():
            columns = [Values.of([getattr(found[p], one) for p in places]) for one in _LIMITS]
            rows.append((name, system.name, len(places), *bench.estimate(columns)))
    return Grid(
        name="limits",
        title="Limits and exclusions",
        columns=(
            Column("intent"),
            Column("system"),
            Column("queries", "count"),
            *Column.several("percent", "first #gold that break one"),
            Column("AUC", "number"),
            *Column.several("percent", "precision of kept", "recall of kept", "F1 of kept"),
        ),
        rows=tuple(rows),
        note="Against papers that are known to break a limit: their share of the first #gold "
        "returned (0 is best), the chance that an answer stands above one of them, and precision, "
        "recall and F1 of what was kept, both kinds counted and no others. Without a mark of the "
        "system all that it returned is kept.",
    )


def _failure_table(bench: PaperBench, systems: Sequence[SystemScores]) -> Grid:
    return Grid(
        name="failures",
        title="Queries that count 0",
        columns=(Column("system"), Column("query"), Column("why")),
        rows=tuple(
            (system.name, query.id, one.problem)
            for system in systems
            for query, one in zip(bench.queries, system.scores, strict=True)
            if one.problem
        ),
    )


def _findings(bench: PaperBench, systems: Sequence[SystemScores]) -> Iterator[str]:
    n = len(bench.queries)
    for system in systems:
        bad = [q.id for q, one in zip(bench.queries, system.scores, strict=True) if one.problem]
        if bad:
            why = "as they failed or are missing"
            yield f"{system.name}: {len(bad)} of {n} queries count 0, {why}: {_name(bad)}."
        if system.strangers:
            left = f"{len(system.strangers)} lines of its run are of other queries"
            yield f"{system.name}: {left}, and were left out: {_name(system.strangers)}."
    zero = len(find_zero_recall(bench, systems))
    of_all = f"{zero:,} of {n:,} ({100 * zero / n:.2f} %)"
    yield f"Queries of which no system found any answer: {of_all}."


def _name(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"{', '.join(ids[:_NAMED])}{more}"


def study_all(
    bench: PaperBench, runs: Mapping[str, Run], *, accuracies: Sequence[float] = ()
) -> StudyResult:
    """Compare systems, and what scripted judges of some accuracies make of them.

    Raises:
        InputError: A run has none of the queries, or there is no run.
        SettingsError: There is no such baseline, or an accuracy is not in [0, 1].
    """
    found = study_systems(bench, runs)
    if not accuracies:
        return found
    judged = study_judges(bench, runs, accuracies=accuracies)
    return StudyResult(
        grids=found.grids + judged.grids,
        drawings=found.drawings + judged.drawings,
        findings=found.findings,
    )


def describe_setup(
    path: Path,
    bench: PaperBench,
    settings: Mapping[str, Any],
    runs: Mapping[str, Run],
    base: Mapping[str, Any],
) -> dict[str, Any]:
    """Return all that the comparison depends on, as plain data: no date, no folder."""
    answers = sum(len(one.gold) for one in bench.queries)
    return {
        **describe_versions(*_LIBRARIES),
        "queries": describe_file(path, queries=len(bench.queries), answers=answers),
        "settings": dict(settings),
        "runs": {name: _digest(run) for name, run in runs.items()},
        "base": dict(base),
    }


def _digest(run: Run) -> str:
    """Return a hash of what a run holds, however it is written."""
    plain = {name: one.to_dict() for name, one in run.items()}
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
