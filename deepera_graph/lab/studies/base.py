"""What all studies share: the settings, the questions as rankers ranked them, and the runner.

A study is a function from a `StudyRunner` to the tables and figures it found. The runner makes
each ranking once, keeps it, and hands it to every study that asks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from langchain_core.embeddings import Embeddings

from deepera_graph.calibration.instance import Dataset, MetricError, UnavailableError
from deepera_graph.calibration.statistics import Values
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.jobs.forms import RunSource
from deepera_graph.lab.bench.rank import (
    QuestionRanking,
    RankedQuestion,
    Step,
    Watch,
    cached_rankings,
)
from deepera_graph.lab.data.readers import name_paths, open_dataset
from deepera_graph.lab.data.runs import open_judged_run
from deepera_graph.lab.metrics.answers import Generator, LfsJudge
from deepera_graph.lab.metrics.ranking import (
    UNANSWERED_METRICS,
    DatasetSummary,
    name_metric,
    summarize_dataset,
)
from deepera_graph.lab.rankers.base import N_SHUFFLES, Ranker, RepeatedRun, UnavailableRanker
from deepera_graph.lab.rankers.named import Models, make_ranker
from deepera_graph.lab.settings import StudySettings, check_rising
from deepera_graph.lab.studies.experiment import Failures, Resampling
from deepera_graph.lab.tables import MetricEstimate
from deepera_graph.settings.thresholds import Calibrated, Gap, PerIntent, Quantile, Threshold

BM25, LSA = SEARCHERS = ("bm25", "lsa")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyConfig(StudySettings):
    """What is studied, and how it is measured; a `StudyRunner` looks at the measuring only."""

    data: tuple[Path, ...] = ()  # files and folders, see `deepera_graph.lab.data.readers`
    models: Models = field(default_factory=Models)
    oracle: bool = False  # a row of the table for the best order of the candidates, by their labels
    # set a threshold from each question's scores or intent
    rules: Mapping[str, Gap | Quantile | PerIntent | Calibrated] = field(
        default_factory=lambda: {"gap": Gap(), "quantile:0.1": Quantile(share=0.1)}
    )
    searchers: tuple[str, ...] = SEARCHERS  # of the embedding study, those that need no model
    embeddings: Mapping[str, Embeddings] = field(default_factory=dict)
    generator: Generator | None = None  # None leaves the columns of answers out
    answer_judge: LfsJudge | None = None  # scores answers for LFS; None leaves LFS out

    def __post_init__(self) -> None:
        StudySettings.__post_init__(self)
        given = [one is not None for one in (self.queries, self.corpus, self.qrels)]
        if any(given) and not all(given):
            raise SettingsError("queries, corpus and qrels go together, with TREC runs as data")
        object.__setattr__(self, "metrics", tuple(map(name_metric, self.metrics)))
        for name in self.searchers:
            if name not in SEARCHERS:
                raise SettingsError(f"searchers must be of {SEARCHERS}, got {name!r}")
        if not self.rules:
            check_rising("thresholds", self.thresholds)

    def open_datasets(self) -> list[Dataset]:
        """Open the data; each set is read when it is iterated."""
        # Nothing need answer any question if all that is measured is what is kept without reason.
        if not self.data:
            raise SettingsError("data must name at least one file or folder")
        named = zip(self.data, name_paths(self.data), strict=True)
        found = [self._open(path, name) for path, name in named]
        needs_golden = not {*self.metrics} <= UNANSWERED_METRICS
        found = [replace(one, needs_golden=needs_golden) for one in found]
        return found if self.limit is None else [one.first(self.limit) for one in found]

    def _open(self, path: Path, name: str) -> Dataset:
        if self.queries is None or self.corpus is None or self.qrels is None:
            return open_dataset(path, name=name, split=self.split, n_candidates=self.n_candidates)
        source = RunSource(path, queries=self.queries, corpus=self.corpus)
        return open_judged_run(source, self.qrels, name=name)

    def make_rankers(self) -> list[Ranker]:
        """Return the rankers; one that cannot run says why, unless *strict*."""
        return [self._make_ranker(name) for name in self.rankers]

    def _make_ranker(self, name: str) -> Ranker:
        try:
            return make_ranker(name, seed=self.seed, models=self.models)
        except UnavailableError as error:
            if self.strict:
                raise
            return UnavailableRanker(name, str(error))

    @property
    def threshold_told(self) -> str:
        """What a filter keeps from on, in words."""
        return "the ranker's own threshold" if self.threshold is None else f"{self.threshold:g}"

    @property
    def n_fresh_runs(self) -> int:
        """How often the stability study asks, >= 1."""
        return self.n_repeats or N_SHUFFLES

    @property
    def n_answer_runs(self) -> int:
        """How often generator and answer judge are asked, >= 1."""
        return self.n_repeats or 1


class NoFilterError(SettingsError):
    """No ranker says what to keep."""


class RankerRun(NamedTuple):
    """A ranker that went over a data set once."""

    ranker: Ranker
    data: DatasetSummary
    questions: tuple[RankedQuestion, ...]

    @property
    def key(self) -> tuple[str, str]:
        """Names of data set and ranker."""
        return self.data.name, self.ranker.name


# `missing` tells why a ranker did not rank a data set, by the names of data set and ranker. If none
# ranks, or the settings are strict, the reason is raised.
class StudyRunner:
    """Runs rankers, each with its own name, over data sets, each once and when it is asked for."""

    def __init__(
        self,
        rankers: Sequence[Ranker],
        datasets: Sequence[Dataset],
        config: StudyConfig | None = None,
        *,
        watch: Watch = lambda step: None,
    ) -> None:
        for names in ([one.name for one in rankers], [one.name for one in datasets]):
            if len(set(names)) < len(names):
                raise MetricError(f"names must differ, got {names}")
        self.rankers, self.datasets = tuple(rankers), tuple(datasets)
        self.config = config or StudyConfig()
        self.missing: dict[tuple[str, str], str] = {}
        self._watch = watch
        self._failures: dict[tuple[str, str], Failures] = {}
        self._data: dict[str, DatasetSummary] = {}
        self._runs: dict[tuple[str, str, str, str], RankerRun] = {}

    def data(self) -> Iterator[DatasetSummary]:
        """Yield the data sets; each is read once."""
        for dataset in self.datasets:
            if dataset.name not in self._data:
                self._data[dataset.name] = summarize_dataset(dataset)
            yield self._data[dataset.name]

    def runs(self) -> Iterator[RankerRun]:
        """Yield one run a data set and ranker, those that are available."""
        return (run for run, *_ in self._over(self.data(), self.rankers, lambda one: [one]))

    def repeated_runs(self) -> Iterator[list[RankerRun]]:
        """Yield all runs of each ranker over each data set: several if it differs by the run."""
        n_repeats = self.config.n_repeats
        return self._over(self.data(), self.rankers, lambda one: one.runs(n_repeats))

    def fresh_runs(self) -> Iterator[list[RankerRun]]:
        """Yield runs over the first questions of each data set, every one judged anew."""
        sampled = (summarize_dataset(one.first(self.config.n_sampled)) for one in self.datasets)
        return self._over(sampled, self.rankers, self._repeats_anew)

    def filter_runs(self) -> Iterator[list[RankerRun]]:
        """Yield all runs of the rankers whose scores in [0, 1] say what to keep."""
        rankers = [one for one in self.rankers if one.says_why]
        if not rankers:
            raise NoFilterError(
                "this experiment needs a ranker that filters, e.g. deepera:local; got "
                f"{', '.join(one.name for one in self.rankers) or 'none'}"
            )
        n_repeats = self.config.n_repeats
        for runs in self._over(self.data(), rankers, lambda one: one.runs(n_repeats)):
            if any(len(one.judged.ranked) < len(one.first) for one in runs[0].questions):
                raise SettingsError(
                    f"{runs[0].ranker.name!r} drops passages itself; this experiment filters on "
                    "its own and needs the ranker that keeps them all, e.g. deepera:local instead "
                    "of deepera-kept:local"
                )
            yield runs

    def run_once(self, ranker: Ranker, data: DatasetSummary) -> RankerRun:
        """Return a run, from what is kept if it is there."""
        told = ranker.fingerprint
        what = str(id(ranker)) if told is None else repr(told)  # the run keeps the ranker alive
        key = (data.name, data.fingerprint, ranker.name, what)
        if key not in self._runs:
            self._runs[key] = self._run(ranker, data)
        return self._runs[key]

    def threshold_of(self, ranker: Ranker) -> Threshold:
        """Return what a ranker keeps from on, where that is not what is studied."""
        return ranker.operating_point if self.config.threshold is None else self.config.threshold

    @property
    def failures(self) -> tuple[Failures, ...]:
        """What rankers could not judge, of those that were run so far."""
        return tuple(self._failures.values())

    def estimate(self, columns: Sequence[Values]) -> list[MetricEstimate]:
        """Return mean and 95 % interval of each column, all over the same questions."""
        return self.resampling.estimate(columns)

    @property
    def resampling(self) -> Resampling:
        """How figures get their intervals."""
        return Resampling(n_resamples=self.config.n_resamples, seed=self.config.seed)

    def _over(
        self,
        data: Iterable[DatasetSummary],
        rankers: Sequence[Ranker],
        repeats: Callable[[Ranker], Sequence[Ranker]],
    ) -> Iterator[list[RankerRun]]:
        n_done, problem = 0, None
        for one in data:
            for ranker in rankers:
                try:
                    runs = [self.run_once(repeat, one) for repeat in repeats(ranker)]
                except (UnavailableError, BackendError) as error:
                    if self.config.strict:
                        raise
                    self.missing[one.name, ranker.name] = str(error)
                    problem = problem or error
                else:
                    n_done += 1
                    yield runs
        if problem is not None and not n_done:
            raise problem

    def _run(self, ranker: Ranker, data: DatasetSummary) -> RankerRun:
        ranked: list[QuestionRanking] = []
        again, keep = self.config.retry_failed, self.config.keep
        for one in cached_rankings(ranker, data, keep, retry_failed=again):
            ranked.append(one)
            self._watch(Step(data.name, ranker.name, len(ranked), data.n_questions))
        self._check_failures(ranker, data, ranked)
        return RankerRun(ranker, data, tuple(map(RankedQuestion.of, data.labels, ranked)))

    def _check_failures(
        self, ranker: Ranker, data: DatasetSummary, ranked: Sequence[QuestionRanking]
    ) -> None:
        """Note what could not be judged; too much of it is no ranking."""
        share = sum(one.failed for one in ranked) / (data.n_candidates * data.n_questions)
        if not share:
            return
        problem = next(one.problem for one in reversed(ranked) if one.problem or one is ranked[0])
        if share > 1 - 1e-9:
            raise UnavailableError(f"no passage could be judged: {problem}")
        if share > self.config.max_failed_share:
            raise UnavailableError(
                f"{100 * share:.1f} % of the passages could not be judged, more than "
                f"{100 * self.config.max_failed_share:g} %: {problem}"
            )
        found = Failures(data.name, ranker.name, "passages not judged", share, problem)
        self._failures[found.data, found.who] = found

    def _repeats_anew(self, ranker: Ranker) -> list[Ranker]:
        n_runs = self.config.n_fresh_runs
        if ranker.is_random:
            return ranker.runs(n_runs)
        return [RepeatedRun(ranker, number) for number in range(n_runs)]
