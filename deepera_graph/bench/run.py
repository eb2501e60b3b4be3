"""Run a benchmark: rankers times data sets, measured and put into a table."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from deepera_graph.bench.dataset import Dataset
from deepera_graph.bench.errors import MetricError
from deepera_graph.bench.kept import rankings
from deepera_graph.bench.measure import Measured, joined, measure_all, oracle
from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.bench.metrics.resample import (
    bootstraps,
    paired_bootstraps,
    permutation_tests,
)
from deepera_graph.bench.plan import METRICS, ORACLE, Plan, Step, Watch
from deepera_graph.bench.rankers.ranker import Ranker
from deepera_graph.bench.survey import Survey, survey
from deepera_graph.bench.table import Difference, Estimate, Missing, Row, Table

__all__ = ["METRICS", "ORACLE", "Plan", "Step", "Watch", "judged_rankings", "run"]


def run(
    rankers: Sequence[Ranker],
    datasets: Sequence[Dataset],
    plan: Plan | None = None,
    *,
    watch: Watch = lambda step: None,
) -> Table:
    """Rank every data set with every ranker and measure.

    The same rankings give the same table, byte for byte: nothing in it depends on the clock but
    the seconds, and those are kept with the rankings.

    A ranker that is not available on a data set, or all of whose calls fail, gets a line that says
    so; see `Table.missing`.

    Args:
        rankers: Each with its own name.
        datasets: Each with its own name.
        plan: How to measure; the defaults of `Plan` when None.
        watch: Told whenever a question is ranked.

    Raises:
        BudgetError: The budget of a chat model is spent; what was ranked is kept.
        UnavailableError, BackendError: No ranker could run, or one could not and the plan is
            strict.
        DatasetError: A data set cannot be read.
        RankingError: A ranker gave back no ranking.
        MetricError: A metric or the baseline is unknown, or a name is used twice.
    """
    chosen = plan or Plan()
    names = [*(one.name for one in rankers), *([ORACLE] if chosen.oracle else [])]
    _check_names(names, [one.name for one in datasets], chosen)
    surveys: list[Survey] = []
    rows: list[Row] = []
    differences: list[Difference] = []
    missing: list[Missing] = []
    for dataset in datasets:
        found = survey(dataset)
        measured, gone = measure_all(rankers, dataset, found, chosen, watch)
        missing.extend(gone)
        if chosen.oracle:
            measured.append(oracle(found, chosen))
        surveys.append(found)
        rows.extend(_rows(found.name, measured, chosen))
        differences.extend(_differences(found.name, measured, chosen))
    return Table(
        metrics=chosen.metrics,
        surveys=tuple(surveys),
        rows=tuple(rows),
        differences=tuple(differences),
        missing=tuple(missing),
    )


def judged_rankings(ranker: Ranker, dataset: Dataset, keep: Path | None = None) -> list[Judged]:
    """Return every ranking of a data set with its labels, for figures and studies.

    Args:
        ranker: Makes what is missing in *keep*.
        dataset: What to rank.
        keep: Folder for rankings, as in `Plan`.
    """
    found = survey(dataset)
    return joined(found, list(rankings(ranker, dataset, found, keep)))


def _rows(dataset: str, measured: Sequence[Measured], plan: Plan) -> Iterable[Row]:
    columns = [values for one in measured for values in one.values]
    intervals = iter(bootstraps(columns, n_resamples=plan.n_resamples, seed=plan.seed))
    for one in measured:
        seconds, calls, tokens = one.costs
        yield Row(
            dataset=dataset,
            ranker=one.ranker,
            n_repeats=one.n_repeats,
            estimates=tuple(Estimate(*next(intervals), std) for std in one.stds),
            seconds=seconds,
            calls=calls,
            tokens=tokens,
            failed=one.failed,
            problem=one.problem,
        )


def _differences(dataset: str, measured: Sequence[Measured], plan: Plan) -> Iterable[Difference]:
    baseline = next((one for one in measured if one.ranker == plan.baseline), None)
    if baseline is None:
        return
    names = [
        (one, metric)
        for one in measured
        if one is not baseline
        for metric in range(len(plan.metrics))
    ]
    pairs = [(one.values[metric], baseline.values[metric]) for one, metric in names]
    intervals = paired_bootstraps(pairs, n_resamples=plan.n_resamples, seed=plan.seed)
    tests = permutation_tests(pairs, n_resamples=plan.n_resamples, seed=plan.seed)
    for (one, metric), interval, p in zip(names, intervals, tests, strict=True):
        name = plan.metrics[metric]
        yield Difference(dataset, one.ranker, baseline.ranker, name, *interval, p)


def _check_names(rankers: Sequence[str], datasets: Sequence[str], plan: Plan) -> None:
    for names in (rankers, datasets):
        if len(set(names)) < len(names):
            raise MetricError(f"names must differ, got {list(names)}")
    if plan.baseline and plan.baseline not in rankers:
        raise MetricError(f"baseline must be one of {list(rankers)}, got {plan.baseline!r}")
