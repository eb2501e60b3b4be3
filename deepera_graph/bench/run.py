"""Run a benchmark: rankers times data sets, measured and put into a table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deepera_graph.bench.dataset import Dataset
from deepera_graph.bench.errors import MetricError
from deepera_graph.bench.kept import rankings
from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.bench.metrics.named import check_metric, compute
from deepera_graph.bench.metrics.resample import (
    N_RESAMPLES,
    bootstraps,
    paired_bootstraps,
    permutation_tests,
)
from deepera_graph.bench.metrics.spread import average, spread
from deepera_graph.bench.metrics.values import Values
from deepera_graph.bench.rank import Ranked
from deepera_graph.bench.rankers.ranker import Ranker, RepeatedRanker
from deepera_graph.bench.survey import Survey, survey
from deepera_graph.bench.table import Difference, Estimate, Row, Table

ORACLE = "oracle"
METRICS = ("HitRate@1", "HitRate@3", "RP")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How to measure.

    Attributes:
        metrics: Names, see `deepera_graph.bench.metrics.named`.
        baseline: Name of the ranker that the others are compared with; empty compares none.
        n_repeats: Runs of each ranker that differs from run to run, >= 1.
        n_resamples: Bootstrap resamples and permutations, >= 1.
        seed: Of bootstrap and permutation test.
        keep: Folder for rankings, to be read back by the next run; None keeps nothing.
        oracle: Whether to add a row for the best possible order of the candidates, found by
            their labels: the ceiling of any ranker.
    """

    metrics: tuple[str, ...] = METRICS
    baseline: str = ""
    n_repeats: int = 3
    n_resamples: int = N_RESAMPLES
    seed: int = 0
    keep: Path | None = None
    oracle: bool = False

    def __post_init__(self) -> None:
        for metric in self.metrics:
            check_metric(metric)
        for name in ("n_repeats", "n_resamples"):
            if getattr(self, name) < 1:
                raise MetricError(f"{name} must be >= 1, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class _Measured:
    """One ranker on one data set: values a metric, their spread, and what a question cost."""

    ranker: str
    n_repeats: int
    values: list[Values]
    stds: list[float]
    costs: tuple[float, float, float]


def run(rankers: Sequence[Ranker], datasets: Sequence[Dataset], plan: Plan | None = None) -> Table:
    """Rank every data set with every ranker and measure.

    The same rankings give the same table, byte for byte: nothing in it depends on the clock but
    the seconds, and those are kept with the rankings.

    Args:
        rankers: Each with its own name.
        datasets: Each with its own name.
        plan: How to measure; the defaults of `Plan` when None.

    Raises:
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
    for dataset in datasets:
        found = survey(dataset)
        measured = [_measure(one, dataset, found, chosen) for one in rankers]
        if chosen.oracle:
            measured.append(_oracle(found, chosen))
        surveys.append(found)
        rows.extend(_rows(found.name, measured, chosen))
        differences.extend(_differences(found.name, measured, chosen))
    return Table(
        metrics=chosen.metrics,
        surveys=tuple(surveys),
        rows=tuple(rows),
        differences=tuple(differences),
    )


def judged_rankings(ranker: Ranker, dataset: Dataset, keep: Path | None = None) -> list[Judged]:
    """Return every ranking of a data set with its labels, for figures and studies.

    Args:
        ranker: Makes what is missing in *keep*.
        dataset: What to rank.
        keep: Folder for rankings, as in `Plan`.
    """
    found = survey(dataset)
    return _joined(found, list(rankings(ranker, dataset, found, keep)))


def _measure(ranker: Ranker, dataset: Dataset, found: Survey, plan: Plan) -> _Measured:
    repeats = [ranker]
    if isinstance(ranker, RepeatedRanker):
        repeats = [ranker.repeat(number) for number in range(plan.n_repeats)]
    runs = [list(rankings(one, dataset, found, plan.keep)) for one in repeats]
    by_metric = list(zip(*(_values(found, ranked, plan) for ranked in runs), strict=True))
    return _Measured(
        ranker=ranker.name,
        n_repeats=len(runs),
        values=[average(values) for values in by_metric],
        stds=[spread([one.mean() for one in values]).std for values in by_metric],
        costs=_costs([one for ranked in runs for one in ranked]),
    )


def _oracle(found: Survey, plan: Plan) -> _Measured:
    best = [labels.ideal() for labels in found.labels]
    values = [compute(metric, best) for metric in plan.metrics]
    return _Measured(ORACLE, 1, values, [0.0] * len(values), (0.0, 0.0, 0.0))


def _values(found: Survey, ranked: Sequence[Ranked], plan: Plan) -> list[Values]:
    judged = _joined(found, ranked)
    return [compute(metric, judged) for metric in plan.metrics]


def _joined(found: Survey, ranked: Sequence[Ranked]) -> list[Judged]:
    return [labels.reordered(one.places) for labels, one in zip(found.labels, ranked, strict=True)]


def _costs(ranked: Sequence[Ranked]) -> tuple[float, float, float]:
    n = len(ranked)
    tokens = sum(one.input_tokens + one.output_tokens for one in ranked)
    return sum(one.seconds for one in ranked) / n, sum(one.calls for one in ranked) / n, tokens / n


def _rows(dataset: str, measured: Sequence[_Measured], plan: Plan) -> Iterable[Row]:
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
        )


def _differences(dataset: str, measured: Sequence[_Measured], plan: Plan) -> Iterable[Difference]:
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
