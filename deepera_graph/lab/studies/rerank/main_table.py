"""The main table: every ranker on every data set, with the change from base to look-alikes."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from deepera_graph.calibration.instance import MetricError
from deepera_graph.lab.bench.figures import BarFigure, Bars, add_bar, draw_bars
from deepera_graph.lab.bench.rank import RankedQuestion
from deepera_graph.lab.metrics.ranking import DatasetSummary, JudgedRanking
from deepera_graph.lab.rankers.deepera import DeepEra
from deepera_graph.lab.studies.base import RankerRun, StudyConfig, StudyRunner
from deepera_graph.lab.studies.experiment import StudyResult
from deepera_graph.lab.studies.rerank.answers import (
    LFS_STD,
    NO_ANSWER,
    NOT_JUDGED,
    AnswerStudy,
    MeasuredRow,
)
from deepera_graph.lab.studies.rerank.table import compute_all, describe_data
from deepera_graph.lab.studies.variants import (
    PASSAGES,
    Keep,
    forms_of,
    keep_from,
    measure_answers,
    measure_lists,
)
from deepera_graph.lab.tables import Column, Grid, Row, Unit

_BASE = "base"
_N_LABELS = 4  # columns of the main table before the first number that is measured


class _Row(NamedTuple):
    """How a ranker is shown: the lists that are measured, and what a generator is given of them."""

    name: str
    keep: Keep  # of the whole ranking the best are handed on
    form: str


AllValues = dict[tuple[str, str], MeasuredRow]  # by data set and row


def _keep_all(question: RankedQuestion) -> JudgedRanking:
    return question.judged


def study_main_table(runner: StudyRunner) -> StudyResult:
    """Measure every ranker on every data set, and what changes from base to look-alikes."""
    answers = AnswerStudy(runner)
    measured: AllValues = {}
    for repeats in runner.repeated_runs():
        for row in _rows_of(runner, answers, repeats):
            measured[repeats[0].data.name, row.name] = _measure(runner, answers, repeats, row)
    grid = Grid.told(
        "main",
        columns=(
            *Column.several("text", "data set", "setting", "ranker"),
            Column("runs", "count"),
            *_metric_columns(runner.config, answers),
        ),
        rows=tuple(_main_rows(runner, answers, measured)),
        explained=_explain_rows(runner, answers),
    )
    units: tuple[Unit, ...] = ("percent", "number")
    changes = [_compare_with_base(runner, answers, measured, unit) for unit in units]
    return answers.conclude(
        grid,
        *(one for one in changes if one.rows),
        *_side_by_side(grid),
        drawings=_draw_main_table(grid),
        findings=map(describe_data, runner.data()),
    )


def _metric_columns(config: StudyConfig, answers: AnswerStudy) -> tuple[Column, ...]:
    return *answers.columns, *(Column(metric, "percent") for metric in config.metrics)


def _rows_of(runner: StudyRunner, answers: AnswerStudy, repeats: Sequence[RankerRun]) -> list[_Row]:
    """Return DeepEra filtered and summarized, and without either; of others the ranking."""
    ranker, n = repeats[0].ranker, runner.config.top_n
    if not isinstance(ranker, DeepEra):
        return [_Row(ranker.name, _keep_all, PASSAGES)]
    whole = forms_of(repeats, answers)[0]
    if ranker.kept_only:
        return [_Row(ranker.name, _keep_all, whole)]
    keep = keep_from(runner.threshold_of(ranker), n)
    rows = [
        _Row(ranker.name, keep, whole),
        _Row(f"{ranker.name}, without filter", _keep_all, whole),
    ]
    if answers.is_on:
        rows.append(_Row(f"{ranker.name}, without summaries", keep, PASSAGES))
    return rows


def _explain_rows(runner: StudyRunner, answers: AnswerStudy) -> str:
    """Say, for the note of the table, what the rows of DeepEra are and how failures count."""
    parts = []
    if any(isinstance(one, DeepEra) for one in runner.rankers):
        made = ", answers from their summaries in rank order" if answers.is_on else ""
        parts.append(
            " A row of DeepEra holds what passes its filter, at most "
            f"{runner.config.top_n} passages{made}; a golden passage that does not pass is a miss."
        )
    if answers.is_on:
        parts.append(
            f" Other rankers hand on their best {runner.config.top_n} passages. A question whose "
            "generator failed counts as an empty answer, and an answer that could not be judged "
            "has the lowest LFS; their shares are in the table."
        )
    return "".join(parts)


def _measure(
    runner: StudyRunner, answers: AnswerStudy, repeats: Sequence[RankerRun], row: _Row
) -> MeasuredRow:
    """Measure the answers and the ranks of a row, over all runs of its ranker."""
    lists = [[row.keep(question) for question in run.questions] for run in repeats]
    measured = measure_lists(lists, partial(compute_all, runner.config.metrics))
    if not answers.is_on:
        return measured
    n = runner.config.top_n
    best = [[replace(one, ranked=one.ranked[:n]) for one in judged] for judged in lists]
    made = measure_answers(answers, repeats, best, form=row.form, row=row.name)
    return made.join(measured)


def _main_rows(runner: StudyRunner, answers: AnswerStudy, measured: AllValues) -> Iterator[Row]:
    names = [one.name for one in _metric_columns(runner.config, answers)]
    for data in runner.data():
        mine = {row: one for (name, row), one in measured.items() if name == data.name}
        found = iter(
            runner.estimate([each for one in mine.values() for each in one.values.values()])
        )
        for row, one in mine.items():
            cells = one.fill(found) | answers.spread(one.values)
            shown = (cells[name] for name in names)
            yield data.name, data.labels[0].setting, row, one.n_runs, *shown


def _draw_main_table(grid: Grid) -> tuple[BarFigure, ...]:
    panels: Bars = {}
    for place, column in list(enumerate(grid.columns))[_N_LABELS:]:
        for row in grid.rows:
            if column.unit == "percent" and column.name not in (NO_ANSWER, NOT_JUDGED):
                add_bar(panels, column.name, str(row[0]), str(row[2]), row[place])
    return draw_bars("rankers", "Every ranker on every data set", panels)


def _side_by_side(grid: Grid) -> Iterator[Grid]:
    """Yield, for a setting that several data sets have, a table as the paper prints it."""
    for setting in dict.fromkeys(str(row[1]) for row in grid.rows):
        rows = {(row[0], row[2]): row[_N_LABELS:] for row in grid.rows if row[1] == setting}
        names = list(dict.fromkeys(str(name) for name, _ in rows))
        shown = dict.fromkeys(str(ranker) for _, ranker in rows)
        rankers = [one for one in shown if all((name, one) in rows for name in names)]
        if len(names) > 1 and setting:
            yield Grid(
                name=f"setting-{re.sub(r'[^a-z0-9]+', '-', setting.lower())}",
                title=f"Setting {setting}, data sets side by side",
                columns=(
                    Column("ranker"),
                    *(
                        replace(column, name=f"{name} {column.name}")
                        for name in names
                        for column in grid.columns[_N_LABELS:]
                    ),
                ),
                rows=tuple(
                    (ranker, *(cell for name in names for cell in rows[name, ranker]))
                    for ranker in rankers
                ),
            )


def _compare_with_base(
    runner: StudyRunner, answers: AnswerStudy, measured: AllValues, unit: Unit
) -> Grid:
    columns = [
        one.name
        for one in _metric_columns(runner.config, answers)
        if one.unit == unit and one.name != LFS_STD
    ]
    rows = [row for pair in _pairs(runner) for row in _change_rows(runner, pair, measured, columns)]
    grid = Grid.told(
        "change",
        columns=(
            *Column.several("text", "from", "to", "ranker", "metric"),
            Column("questions", "count"),
            *Column.several(unit, "before", "after", "difference"),
            Column("relative", "percent"),
        ),
        rows=tuple(rows),
    )
    return grid if unit == "percent" else replace(grid, name="change-lfs")


def _pairs(runner: StudyRunner) -> Iterator[tuple[DatasetSummary, DatasetSummary]]:
    """Yield the data sets that have a base: same source, and questions in common."""
    data = list(runner.data())
    named = runner.config.base
    if named and named not in [one.name for one in data]:
        raise MetricError(f"base must be one of {[one.name for one in data]}, got {named!r}")
    for before in data:
        if before.name != named if named else before.labels[0].setting != _BASE:
            continue
        for after in data:
            if after is not before and _pair_up(before, after)[0]:
                yield before, after


def _pair_up(before: DatasetSummary, after: DatasetSummary) -> tuple[list[int], list[int]]:
    """Return the places of the questions that both have, pair by pair."""
    places = {one.question: place for place, one in enumerate(before.labels)}
    both = [
        (places[one.question], place)
        for place, one in enumerate(after.labels)
        if one.question in places
    ]
    return [first for first, _ in both], [second for _, second in both]


def _change_rows(
    runner: StudyRunner,
    pair: tuple[DatasetSummary, DatasetSummary],
    measured: AllValues,
    columns: Sequence[str],
) -> Iterator[Row]:
    before, after = pair
    here, there = _pair_up(before, after)
    names = [
        (row, column)
        for row in dict.fromkeys(row for _, row in measured)
        if {(before.name, row), (after.name, row)} <= measured.keys()
        for column in columns
    ]
    old = [measured[before.name, row].values[name].of_places(here) for row, name in names]
    new = [measured[after.name, row].values[name].of_places(there) for row, name in names]
    found = runner.estimate([*old, *new])
    differences = runner.resampling.differences([*zip(new, old, strict=True)])
    for place, (row, name) in enumerate(names):
        first, second = found[place], found[len(names) + place]
        relative = (second.mean - first.mean) / first.mean if first.mean else None
        cells = (first, second, differences[place], relative)
        yield before.name, after.name, row, name, len(here), *cells


def study_cost(runner: StudyRunner) -> StudyResult:
    """Average what the rankings took when they were made."""
    grid = Grid.told(
        "cost",
        columns=(
            *Column.several("text", "data set", "ranker"),
            Column("passages", "count"),
            *Column.several("seconds", "time", "slowest"),
            *Column.several("count", "calls", "tokens in", "tokens out", "failed"),
        ),
        rows=tuple(map(_cost_row, runner.repeated_runs())),
    )
    return StudyResult(grids=(grid,))


def _cost_row(repeats: list[RankerRun]) -> Row:
    ranked = [question.ranked for run in repeats for question in run.questions]
    seconds = np.array([one.seconds for one in ranked])
    counts = np.array(
        [(one.calls, one.input_tokens, one.output_tokens, one.failed) for one in ranked]
    )
    return (
        *repeats[0].key,
        repeats[0].data.n_candidates,
        float(seconds.mean()),
        float(seconds.max()),
        *map(float, counts.mean(axis=0)),
    )
