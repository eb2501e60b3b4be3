"""Searches for papers compared: recall, cost, budgets, answer sizes, limits, and who found what.

Runs are made by `runs`, beside it, or read from files of other systems; every query counts, and
one that failed or is missing counts 0 and is named. Scripted judges are in `judges`.

Source: the evaluation of ScholarQuest, whose tables and figures these are, and of its leaderboard.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from deepera_graph.calibration.statistics import Values
from deepera_graph.errors import InputError
from deepera_graph.lab.studies.experiment import (
    About,
    StudyResult,
    check_baseline,
    compare_columns,
)
from deepera_graph.lab.studies.papers.figures import call_table, draw, source_table
from deepera_graph.lab.studies.papers.judges import study_judges
from deepera_graph.lab.studies.papers.runs import Run
from deepera_graph.lab.studies.papers.scores import (
    CANDIDATES,
    MEASURES,
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
from deepera_graph.lab.tables import Cell, Column, Grid, Row
from deepera_graph.text.plain import name_some

_LIBRARIES = ("numpy", "matplotlib")
_COMPARED = ("R@100", "R@All", "nDCG@50")
_LIMITS = ("first", "auc", "precision", "recall", "f1")

PAPERS = About.named("papers")


def study_systems(bench: PaperBench, runs: Mapping[str, Run]) -> StudyResult:
    """Compare systems: all tables and figures."""
    # Raises `InputError` if a run has none of the queries, or there is no run; `SettingsError` if
    # there is no such baseline.
    if not runs:
        raise InputError("no runs were given to measure")
    baseline = check_baseline(bench.baseline, runs)
    systems = [SystemScores.of(name, run, bench) for name, run in runs.items()]
    compared = {one.name: {what: one.values[what] for what in _COMPARED} for one in systems}
    grids = [
        *_main_tables(bench, systems),
        replace(_group_table(bench, systems, "intent", bench.intents, MEASURES), name="intents"),
        _process_table(bench, systems),
        compare_columns(compared, baseline, bench),
        replace(
            _group_table(bench, systems, "answers", bench.sizes, _COMPARED),
            name="answer-sizes",
            title="By number of answers",
        ),
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
    rows: list[Row] = []
    rows_by_intent: list[Row] = []
    for system in systems:
        columns = [*system.values.values()]
        rows_by_intent.append(
            (
                system.name,
                *bench.estimate([by_intents(one.values.tolist(), intents) for one in columns]),
            )
        )
        reach, returned = (
            system.column(take).mean()
            for take in (lambda one: one.recall_returned, lambda one: one.returned)
        )
        failed = sum(bool(one.problem) for one in system.scores)
        rows.append((system.name, *bench.estimate(columns), reach, returned, failed))
    measures = Column.several("percent", *MEASURES)
    yield Grid(
        name="systems",
        title=f"Overall, mean of {len(bench.queries)} queries",
        columns=(
            Column("system"),
            *measures,
            Column("R@returned", "percent"),
            *Column.several("count", "papers returned", "queries that count 0"),
        ),
        rows=tuple(rows),
        note="R@All is of everything returned or observed, R@returned of the ranking alone, "
        "however deep it goes. Brackets hold 95 % intervals over queries.",
    )
    if len({*intents}) > 1:
        yield Grid(
            name="systems-by-intent",
            title=f"Overall, mean of {len({*intents})} intents",
            columns=(Column("system"), *measures),
            rows=tuple(rows_by_intent),
            note="Every intent counts alike, however many queries it has.",
        )


def _group_table(
    bench: PaperBench,
    systems: Sequence[SystemScores],
    what: str,
    groups: Mapping[str, Sequence[int]],
    measures: Sequence[str],
) -> Grid:
    rows: list[Row] = []
    for group, places in groups.items():
        for system in systems:
            columns = [system.values[one].of_places(places) for one in measures]
            rows.append((group, system.name, len(places), *bench.estimate(columns)))
    return Grid(
        name=what,
        title=f"By {what}",
        columns=(
            *Column.several("text", what, "system"),
            Column("queries", "count"),
            *Column.several("percent", *measures),
        ),
        rows=tuple(rows),
    )


def _count_calls(one: QueryScores, kind: Callable[[Any], bool] = lambda call: True) -> int | None:
    """Count the calls of a kind; None if they are not known."""
    return None if one.run.calls is None else sum(map(kind, one.run.calls))


_PROCESS: Mapping[str, Callable[[QueryScores], float | None]] = {
    "rounds": lambda one: one.run.rounds,
    "search calls": lambda one: _count_calls(one, lambda call: call.tool == "search"),
    "expand calls": lambda one: _count_calls(one, lambda call: call.is_expansion),
    "tool calls": _count_calls,
    "failed calls": lambda one: _count_calls(one, lambda call: bool(call.problem)),
    "observed": lambda one: one.observed,
    "planner tokens": lambda one: one.run.tokens,
    "seconds": lambda one: one.run.seconds,
}


def _process_table(bench: PaperBench, systems: Sequence[SystemScores]) -> Grid:
    rows: list[Row] = []
    for system in systems:
        means = {name: system.column(take).mean() for name, take in _PROCESS.items()}
        ratio = bench.estimate(
            [system.column(lambda one: recall_per_candidates(one.recall[CANDIDATES], one.observed))]
        )
        recall = system.column(lambda one: one.recall[CANDIDATES]).mean()
        of_means = recall_per_candidates(recall, means["observed"])
        known = (None if isnan(one) else one for one in means.values())
        rows.append((system.name, *known, *ratio, of_means))
    return Grid.told(
        "process",
        columns=(
            Column("system"),
            *Column.several("number", *_PROCESS, "R@100 per 100 observed", "the same of the means"),
        ),
        rows=tuple(rows),
    )


def _distribution_table(bench: PaperBench, systems: Sequence[SystemScores]) -> Grid:
    rows: list[Row] = []
    for intent, system, values in recalls_by_intent(bench, systems):
        quartiles = map(float, np.quantile(values, [0.25, 0.5, 0.75]))
        none, whole = (sum(one == each for one in values) / len(values) for each in (0, 1))
        rows.append((intent, system, len(values), none, *quartiles, whole))
    return Grid(
        name="distribution",
        title="How R@All is spread",
        columns=(
            *Column.several("text", "intent", "system"),
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

    def row(name: str, all_of: Sequence[int]) -> Row:
        mine = [place for place in all_of if place in zero]
        seen: list[Cell] = [
            float(np.mean([one.scores[place].observed for place in mine])) if mine else None
            for one in systems
        ]
        return (name, len(all_of), len(mine), len(mine) / len(all_of), *seen)

    yield Grid(
        name="zero-recall",
        title="Queries of which no system found an answer",
        columns=(
            Column("intent"),
            *Column.several("count", "queries", "without an answer"),
            Column("share", "percent"),
            *observed,
        ),
        rows=(
            *(row(intent, places) for intent, places in bench.intents.items()),
            row("all", range(len(bench.queries))),
        ),
        note="Papers observed are means over these queries.",
    )
    yield Grid(
        name="zero-recall-queries",
        title="These queries",
        columns=(*Column.several("text", "query", "intent"), Column("answers", "count"), *observed),
        rows=tuple(
            (
                *(query.id, query.intent, len(query.gold)),
                *(one.scores[place].observed for one in systems),
            )
            for place, query in enumerate(bench.queries)
            if place in zero
        ),
    )


def limit_table(bench: PaperBench, systems: Sequence[SystemScores]) -> Grid:
    """Return how limits were kept, by intent and over all queries with papers that break them."""
    rows: list[Row] = []
    for system in systems:
        found = limit_scores(bench, system)
        intents = {one: [p for p in places if p in found] for one, places in bench.intents.items()}
        groups = {name: places for name, places in intents.items() if places}
        if len(groups) > 1:
            groups["all"] = [*found]
        for name, places in groups.items():
            columns = [Values.of([getattr(found[p], one) for p in places]) for one in _LIMITS]
            rows.append((name, system.name, len(places), *bench.estimate(columns)))
    return Grid.told(
        "limits",
        columns=(
            *Column.several("text", "intent", "system"),
            Column("queries", "count"),
            Column("first #gold that break one", "percent"),
            Column("AUC", "number"),
            *Column.several("percent", "precision of kept", "recall of kept", "F1 of kept"),
        ),
        rows=tuple(rows),
    )


def _failed(bench: PaperBench, system: SystemScores) -> dict[str, str]:
    pairs = zip(bench.queries, system.scores, strict=True)
    return {query.id: one.problem for query, one in pairs if one.problem}


def _failure_table(bench: PaperBench, systems: Sequence[SystemScores]) -> Grid:
    return Grid(
        name="failures",
        title="Queries that count 0",
        columns=Column.several("text", "system", "query", "why"),
        rows=tuple((one.name, *pair) for one in systems for pair in _failed(bench, one).items()),
    )


def _findings(bench: PaperBench, systems: Sequence[SystemScores]) -> Iterator[str]:
    n = len(bench.queries)
    for system in systems:
        if bad := [*_failed(bench, system)]:
            why = "as they failed or are missing"
            yield f"{system.name}: {len(bad)} of {n} queries count 0, {why}: {name_some(bad)}."
        if system.strangers:
            left = f"{len(system.strangers)} lines of its run are of other queries"
            yield f"{system.name}: {left}, and were left out: {name_some(system.strangers)}."
    zero = len(find_zero_recall(bench, systems))
    of_all = f"{zero:,} of {n:,} ({100 * zero / n:.2f} %)"
    yield f"Queries of which no system found any answer: {of_all}."


def study_all(
    bench: PaperBench, runs: Mapping[str, Run], *, accuracies: Sequence[float] = ()
) -> StudyResult:
    """Compare systems, and what scripted judges of some accuracies make of them."""
    # Raises `InputError` if a run has none of the queries, or there is no run; `SettingsError` if
    # there is no such baseline, or an accuracy is not in [0, 1].
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
    plain = {
        name: {query: one.to_dict() for query, one in run.items()} for name, run in runs.items()
    }
    return {
        **describe_versions(*_LIBRARIES),
        "queries": describe_file(path, queries=len(bench.queries), answers=answers),
        "settings": dict(settings),
        "runs": {
            name: sha256(json.dumps(one, sort_keys=True).encode()).hexdigest()
            for name, one in plain.items()
        },
        "base": dict(base),
    }
