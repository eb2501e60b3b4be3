"""What all studies share: the settings, the questions as rankers ranked them, and the runner.

A study is a function from a `StudyRunner` to the tables and figures it found. The runner makes
each ranking once, keeps it, and hands it to every study that asks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from langchain_core.embeddings import Embeddings

from deepera_graph.bench.data.instance import Dataset, Instance, MetricError, UnavailableError
from deepera_graph.bench.figures import CurvePoints
from deepera_graph.bench.metrics.answers import Generator, LfsJudge, ToJudge, answer_overlaps, lfs
from deepera_graph.bench.metrics.ranking import (
    DatasetSummary,
    JudgedRanking,
    check_metric,
    summarize_dataset,
)
from deepera_graph.bench.metrics.statistics import N_RESAMPLES, Values, bootstraps
from deepera_graph.bench.rank import QUESTIONS_AT_ONCE, QuestionRanking, cached_rankings
from deepera_graph.bench.rankers.base import Ranker, RepeatedRun, candidates_of, texts_of
from deepera_graph.bench.run import METRICS, DataConfig, Step, Watch
from deepera_graph.bench.studies.results import Column
from deepera_graph.bench.table import MetricEstimate
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.thresholds import Gap, Quantile

BM25, LSA = SEARCHERS = ("bm25", "lsa")


# Source: Threshold 0.8: DeepEra, section 3; cut-off 10: its figure 7; thresholds from 0.6 to 0.9:
# its follow-up study, those below are ours.
@dataclass(frozen=True, slots=True, kw_only=True)
class StudyConfig(DataConfig):
    """What is studied, and how it is measured; a `StudyRunner` looks at the measuring only."""

    rankers: tuple[str, ...] = ("first-stage", "random", "bm25", "deepera:local")
    metrics: tuple[str, ...] = METRICS  # of the main table
    threshold: float = 0.8  # lowest score kept, in [0, 1], where not what is studied
    top_n: int = 10  # most passages kept, >= 1, likewise
    thresholds: tuple[float, ...] = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # each in [0, 1], rising
    # set a threshold from each question's scores
    rules: Mapping[str, Gap | Quantile] = field(
        default_factory=lambda: {"gap": Gap(), "quantile:0.1": Quantile(share=0.1)}
    )
    cutoffs: tuple[int, ...] = (1, 2, 3, 5, 10, 15, 20, 30)  # each >= 1, rising
    # of the look-alikes put into the store, [0, 1], rising
    shares: tuple[float, ...] = (0.1, 0.5, 1.0)
    searchers: tuple[str, ...] = SEARCHERS  # of the embedding study, those that need no model
    embeddings: Mapping[str, Embeddings] = field(default_factory=dict)
    base: str = ""  # data set without look-alikes; if empty found by its setting, ``base``
    generator: Generator | None = None  # None leaves the columns of answers out
    answer_judge: LfsJudge | None = None  # scores answers for LFS; None leaves LFS out
    n_repeats: int = 3  # of a random ranker, and of the stability study, >= 1
    n_sampled: int = 50  # questions a data set of the stability study, >= 1
    n_resamples: int = N_RESAMPLES
    seed: int = 0
    keep: Path | None = None  # folder for rankings and vectors; None keeps nothing
    strict: bool = False

    def __post_init__(self) -> None:
        DataConfig.__post_init__(self)
        for metric in self.metrics:
            check_metric(metric)
        for name in self.searchers:
            if name not in SEARCHERS:
                raise SettingsError(f"searchers must be of {SEARCHERS}, got {name!r}")
        for name in ("top_n", "n_repeats", "n_sampled", "n_resamples"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be >= 1, got {getattr(self, name)}")
        _check_rising("threshold", (self.threshold,), 0, 1)
        if self.thresholds or not self.rules:
            _check_rising("thresholds", self.thresholds, 0, 1)
        _check_rising("cutoffs", self.cutoffs, 1, float("inf"))
        _check_rising("shares", self.shares, 0, 1)


def _check_rising(name: str, values: tuple[float, ...], low: float, high: float) -> None:
    if not values or any(not low <= value <= high for value in values):
        raise SettingsError(f"{name} must be in [{low}, {high}], got {list(values)}")
    if list(values) != sorted(set(values)):
        raise SettingsError(f"{name} must rise, got {list(values)}")


@dataclass(frozen=True, slots=True)
class QuestionLabels:
    """What is known of a question besides its judgements; `types` is distractor id to type."""

    question: str
    source: str
    setting: str
    subject: str
    types: Mapping[str, str]

    @classmethod
    def of(cls, instance: Instance) -> "QuestionLabels":
        """Take them from an instance; a distractor without a type has the type ``distractor``."""
        types = {
            one.id: one.distractor_type or "distractor"
            for one in instance.contexts
            if one.is_distractor
        }
        return cls(instance.question, instance.dataset, instance.setting, instance.subject, types)


@dataclass(frozen=True, slots=True)
class RankedQuestion:
    """One question as a ranker ranked it; `first` holds the candidates in first-stage order."""

    judged: JudgedRanking
    labels: QuestionLabels
    first: tuple[str, ...]
    ranked: QuestionRanking

    @classmethod
    def of(
        cls, candidates: JudgedRanking, labels: QuestionLabels, ranked: QuestionRanking
    ) -> "RankedQuestion":
        """Join a ranking with the labels of its candidates, these in first-stage order."""
        return cls(candidates.reorder(ranked.places), labels, candidates.ranked, ranked)

    @property
    def scores(self) -> dict[str, float]:
        """Passage to score, best first; a negative one of DeepEra's means it failed."""
        return dict(zip(self.judged.ranked, self.ranked.scores, strict=True))

    def threshold_of(self, rule: Gap | Quantile) -> float:
        """Return the threshold that a rule sets for this question, in [0, 1]."""
        return rule.cut([score for score in self.ranked.scores if score >= 0], "other")

    def keep(
        self,
        *,
        threshold: float | None,
        n: int | None = None,
        order: Literal["score", "retrieval"] = "score",
    ) -> JudgedRanking:
        """Return the first *n* a filter hands on; a threshold of None filters nothing."""
        # A passage in which no quote was found is held back whatever its score.
        scores = self.scores
        unproven = {self.first[place - 1] for place in self.ranked.unproven}
        place = {id: number for number, id in enumerate(self.first)}
        chosen = sorted(scores, key=lambda id: (-scores[id], place[id]))
        if threshold is not None:
            chosen = [id for id in chosen if scores[id] >= threshold and id not in unproven]
        chosen = chosen[:n]
        if order == "retrieval":
            chosen.sort(key=place.__getitem__)
        return replace(self.judged, ranked=tuple(chosen))

    def why(self, passage: str) -> tuple[str, str]:
        """Return the reason and the quote for a passage; empty where the ranker gave none."""
        if not self.ranked.reasons:
            return "", ""
        place = self.judged.ranked.index(passage)
        return self.ranked.reasons[place], self.ranked.quotes[place]


@dataclass(frozen=True, slots=True)
class StudyData:
    """A data set with what is known of it; `labels` holds one a question."""

    dataset: Dataset
    summary: DatasetSummary
    labels: tuple[QuestionLabels, ...]

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self.summary.name

    @classmethod
    def read(cls, dataset: Dataset) -> "StudyData":
        """Read a data set once, for its summary and its labels."""
        labels: list[QuestionLabels] = []

        def tap() -> Iterator[Instance]:
            for instance in dataset:
                labels.append(QuestionLabels.of(instance))
                yield instance

        found = summarize_dataset(Dataset(dataset.name, tap, dataset.first_stage))
        return cls(dataset, found, tuple(labels))


class NoFilterError(SettingsError):
    """No ranker says what to keep."""


class RankerRun(NamedTuple):
    """A ranker that went over a data set once."""

    ranker: Ranker
    data: StudyData
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
        self._data: dict[str, StudyData] = {}
        self._runs: dict[tuple[str, str, str], RankerRun] = {}

    def data(self) -> Iterator[StudyData]:
        """Yield the data sets; each is read once."""
        for dataset in self.datasets:
            if dataset.name not in self._data:
                self._data[dataset.name] = StudyData.read(dataset)
            yield self._data[dataset.name]

    def runs(self) -> Iterator[RankerRun]:
        """Yield one run a data set and ranker, those that are available."""
        return (repeats[0] for repeats in self.repeated_runs())

    def repeated_runs(self) -> Iterator[list[RankerRun]]:
        """Yield all runs of each ranker over each data set: several if it differs by the run."""
        return self._over(self.data(), self.rankers, self._repeats)

    def fresh_runs(self) -> Iterator[list[RankerRun]]:
        """Yield runs over the first questions of each data set, every one judged anew."""
        sampled = (StudyData.read(one.first(self.config.n_sampled)) for one in self.datasets)
        return self._over(sampled, self.rankers, self._repeats_anew)

    def filter_runs(self) -> Iterator[RankerRun]:
        """Yield the runs of the rankers whose scores in [0, 1] say what to keep."""
        rankers = [one for one in self.rankers if one.says_why]
        if not rankers:
            raise NoFilterError(
                "this experiment needs a ranker that filters, e.g. deepera:local; got "
                f"{', '.join(one.name for one in self.rankers) or 'none'}"
            )
        for run, *_ in self._over(self.data(), rankers, self._repeats):
            if any(len(one.judged.ranked) < len(one.first) for one in run.questions):
                raise SettingsError(
                    f"{run.ranker.name!r} drops passages itself; this experiment filters on its "
                    "own and needs the ranker that keeps them all, e.g. deepera:local instead of "
                    "deepera-kept:local"
                )
            yield run

    def run_once(self, ranker: Ranker, data: StudyData) -> RankerRun:
        """Return a run, from what is kept if it is there."""
        told = ranker.fingerprint
        what = str(id(ranker)) if told is None else repr(told)  # the run keeps the ranker alive
        key = (data.summary.fingerprint, ranker.name, what)
        if key not in self._runs:
            self._runs[key] = self._run(ranker, data)
        return self._runs[key]

    def estimate(self, columns: Sequence[Values]) -> list[MetricEstimate]:
        """Return mean and 95 % interval of each column, all over the same questions."""
        if not columns:
            return []
        found = bootstraps(columns, n_resamples=self.config.n_resamples, seed=self.config.seed)
        return [MetricEstimate(*one, 0.0) for one in found]

    def _over(
        self,
        data: Iterable[StudyData],
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
                    problem = error
                else:
                    n_done += 1
                    yield runs
        if problem is not None and not n_done:
            raise problem

    def _run(self, ranker: Ranker, data: StudyData) -> RankerRun:
        found = data.summary
        ranked: list[QuestionRanking] = []
        for one in cached_rankings(ranker, data.dataset, found, self.config.keep):
            ranked.append(one)
            self._watch(Step(found.name, ranker.name, len(ranked), found.n_questions))
        if all(one.failed >= found.n_candidates - 1e-9 for one in ranked):
            raise UnavailableError(f"no passage could be judged: {ranked[-1].problem}")
        questions = map(RankedQuestion.of, found.labels, data.labels, ranked)
        return RankerRun(ranker, data, tuple(questions))

    def _repeats(self, ranker: Ranker) -> list[Ranker]:
        if ranker.is_random:
            return [ranker.repeat(number) for number in range(self.config.n_repeats)]
        return [ranker]

    def _repeats_anew(self, ranker: Ranker) -> list[Ranker]:
        if ranker.is_random:
            return self._repeats(ranker)
        return [RepeatedRun(ranker, number) for number in range(self.config.n_repeats)]


def answer_columns(config: StudyConfig) -> tuple[Column, ...]:
    """Return F1, precision and recall of the answers, and LFS if there is a judge of answers."""
    if config.generator is None:
        return ()
    scored = (Column("LFS", "number"),) if config.answer_judge else ()
    return (*(Column(name, "percent") for name in ("F1", "P", "R")), *scored)


def measure_answers(
    config: StudyConfig, given: Iterable[tuple[Instance, Sequence[str]]]
) -> list[Values]:
    """Answer each question from the texts it comes with; a value a column of `answer_columns`."""
    # A question without a reference, or whose generator failed, has weight 0.
    generator, judge = config.generator, config.answer_judge
    if generator is None:
        return []
    rows: list[_Answer] = []
    rest = iter(given)
    while chunk := list(islice(rest, QUESTIONS_AT_ONCE)):
        rows += _answer(generator, judge, chunk)
    overlaps = answer_overlaps(
        [(row.text, row.gold) for row in rows], [float(row.counts) for row in rows]
    )
    found = [overlaps.f1, overlaps.precision, overlaps.recall]
    if judge is not None:
        found.append(lfs([row.mark for row in rows], low=judge.low, high=judge.high).values)
    return found


class _Answer(NamedTuple):
    text: str
    gold: str
    counts: bool
    mark: int | None


def _answer(
    generator: Generator, judge: LfsJudge | None, given: list[tuple[Instance, Sequence[str]]]
) -> list[_Answer]:
    produced = generator.answer_many([(one.question, texts) for one, texts in given])
    rows = [
        _Answer(
            answer.text, one.gold_answer, bool(one.gold_answer.strip() and not answer.problem), None
        )
        for (one, _), answer in zip(given, produced, strict=True)
    ]
    if judge is None:
        return rows
    places = [place for place, row in enumerate(rows) if row.counts]
    tasks = [ToJudge(given[at][0].question, rows[at].gold, rows[at].text) for at in places]
    for place, verdict in zip(places, judge.judge_many(tasks), strict=True):
        rows[place] = rows[place]._replace(mark=verdict.score)
    return rows


def measure_answers_from(
    config: StudyConfig, data: StudyData, kept: Sequence[JudgedRanking]
) -> list[Values]:
    """Answer every question from its kept passages; see `measure_answers`."""
    return measure_answers(config, _texts_of_kept(data, kept)) if config.generator else []


def _texts_of_kept(
    data: StudyData, kept: Sequence[JudgedRanking]
) -> Iterator[tuple[Instance, Sequence[str]]]:
    for instance, one in zip(data.dataset, kept, strict=True):
        texts = texts_of(candidates_of(instance))
        of = {context.id: text for context, text in zip(instance.contexts, texts, strict=True)}
        yield instance, [of[id] for id in one.ranked]


def draw_curve(
    x: Sequence[float], means: Sequence[MetricEstimate], *, dashed: bool = False
) -> CurvePoints:
    """Return a curve in percent, without the points that have nothing to measure."""
    points = [(at, one) for at, one in zip(x, means, strict=True) if one.mean == one.mean]
    return CurvePoints(
        x=[at for at, _ in points],
        y=[100 * one.mean for _, one in points],
        low=[100 * one.low for _, one in points],
        high=[100 * one.high for _, one in points],
        dashed=dashed,
    )
