"""Where experiments get their rankings: each is made once, kept, and shared by all of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from langchain_core.embeddings import Embeddings
from matplotlib.figure import Figure

from deepera_graph.bench.data.instance import Dataset, Instance, MetricError, UnavailableError
from deepera_graph.bench.figures import CurvePoints
from deepera_graph.bench.metrics.answers import Generator, LfsJudge, ToJudge, answer_overlaps, lfs
from deepera_graph.bench.metrics.ranking import (
    DatasetSummary,
    JudgedRanking,
    check_metric,
    compute,
    summarize_dataset,
)
from deepera_graph.bench.metrics.statistics import (
    N_RESAMPLES,
    Values,
    average,
    bootstraps,
    mean_std,
)
from deepera_graph.bench.rank import QUESTIONS_AT_ONCE, QuestionRanking, cached_rankings
from deepera_graph.bench.rankers.base import (
    Ranker,
    RepeatedRun,
    candidates_of,
    texts_of,
)
from deepera_graph.bench.run import Step, Watch
from deepera_graph.bench.table import MetricEstimate
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.thresholds import Gap, Quantile


@dataclass(frozen=True, slots=True)
class Labels:
    """What is known of a question besides its judgements.

    `types` maps a distractor to its type, ``distractor`` where none was given.
    """

    question: str
    source: str
    setting: str
    subject: str
    types: Mapping[str, str]

    @classmethod
    def of(cls, instance: Instance) -> "Labels":
        """Take them from an instance."""
        return cls(
            question=instance.question,
            source=instance.dataset,
            setting=instance.setting,
            subject=instance.subject,
            types={
                one.id: one.distractor_type or "distractor"
                for one in instance.contexts
                if one.is_distractor
            },
        )


@dataclass(frozen=True, slots=True)
class Scored:
    """One question and what a ranker made of it.

    Attributes:
        judged: The ranking with its labels.
        labels: What else is known of the question.
        first: The candidates in first-stage order; shape (n_candidates,).
        ranked: Cost, and the scores in the order of `judged.ranked`.
    """

    judged: JudgedRanking
    labels: Labels
    first: tuple[str, ...]
    ranked: QuestionRanking

    @classmethod
    def of(cls, candidates: JudgedRanking, labels: Labels, ranked: QuestionRanking) -> "Scored":
        """Join a ranking with the labels of its candidates, these in first-stage order."""
        return cls(candidates.reordered(ranked.places), labels, candidates.ranked, ranked)

    @property
    def scores(self) -> dict[str, float]:
        """Passage to score, best first; a negative one of DeepEra's means it failed."""
        return dict(zip(self.judged.ranked, self.ranked.scores, strict=True))

    @property
    def unproven(self) -> frozenset[str]:
        """Passages that a filter holds back whatever their score: no quote was found in them."""
        return frozenset(self.first[place - 1] for place in self.ranked.unproven)

    def first_stage(self) -> JudgedRanking:
        """Return the same labels in first-stage order."""
        return replace(self.judged, ranked=self.first)

    def cut(self, rule: Gap | Quantile) -> float:
        """Return the threshold that a rule sets for this question, in [0, 1]."""
        return rule.cut([score for score in self.ranked.scores if score >= 0], "other")

    def kept(
        self,
        *,
        threshold: float | None,
        n: int | None = None,
        order: Literal["score", "retrieval"] = "score",
    ) -> JudgedRanking:
        """Return what a filter would hand on, without asking the ranker again.

        Args:
            threshold: Lowest score kept, inclusive; None filters nothing.
            n: Most passages kept; None keeps all.
            order: Order of the kept: by falling score, or as they were retrieved.
        """
        scores, unproven = self.scores, self.unproven
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


METRICS = ("HitRate@1", "HitRate@3", "RP")
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
CUTOFFS = (1, 2, 3, 5, 10, 15, 20, 30)
SHARES = (0.1, 0.5, 1.0)
BM25, LSA = SEARCHERS = ("bm25", "lsa")


def _rules() -> dict[str, Gap | Quantile]:
    return {"gap": Gap(), "quantile:0.1": Quantile(share=0.1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How to measure.

    Attributes:
        metrics: Of the main table; see `deepera_graph.bench.metrics.ranking`.
        threshold: Lowest score kept, in [0, 1], where it is not what is studied.
        top_n: Most passages kept, >= 1, where it is not what is studied.
        thresholds: What the threshold study tries, each in [0, 1], rising.
        rules: Rules that set a threshold from the scores of each question, by name; for the same
            study.
        cutoffs: What the cut-off study tries, each >= 1, rising.
        shares: Shares of the look-alikes put into the store, each in [0, 1], rising.
        searchers: Of the embedding study, those that need no model: ``bm25``, ``lsa``.
        embeddings: Of the embedding study, by name.
        generator: Who answers from what was handed on; None leaves the columns of answers out.
        answer_judge: Who scores those answers for LFS; None leaves LFS out.
        base: Name of the data set without look-alikes; found by its setting, ``base``, when empty.
        n_repeats: Runs of a ranker that differs from run to run, and of the stability study, >= 1.
        n_sampled: Questions a data set that the stability study takes, >= 1.
        n_resamples: Bootstrap resamples, >= 1.
        seed: Of the resamples and of what is drawn at random.
        keep: Folder for rankings and vectors, read back by the next run; None keeps nothing.
        strict: Whether a ranker that is not available is an error.

    Raises:
        SettingsError: A value is out of range.
        MetricError: A metric is unknown.

    Source:
        Threshold 0.8: DeepEra, section 3; cut-off 10: its figure 7; thresholds from 0.6 to 0.9: its
        follow-up study, those below are ours.
    """

    metrics: tuple[str, ...] = METRICS
    threshold: float = 0.8
    top_n: int = 10
    thresholds: tuple[float, ...] = THRESHOLDS
    rules: Mapping[str, Gap | Quantile] = field(default_factory=_rules)
    cutoffs: tuple[int, ...] = CUTOFFS
    shares: tuple[float, ...] = SHARES
    searchers: tuple[str, ...] = SEARCHERS
    embeddings: Mapping[str, Embeddings] = field(default_factory=dict)
    generator: Generator | None = None
    answer_judge: LfsJudge | None = None
    base: str = ""
    n_repeats: int = 3
    n_sampled: int = 50
    n_resamples: int = N_RESAMPLES
    seed: int = 0
    keep: Path | None = None
    strict: bool = False

    def __post_init__(self) -> None:
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
class Material:
    """A data set with what is known of it; `labels` holds one a question."""

    dataset: Dataset
    survey: DatasetSummary
    labels: tuple[Labels, ...]

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self.survey.name


class NoFilterError(SettingsError):
    """No ranker says what to keep."""


class Pass(NamedTuple):
    """A ranker that went over a data set once."""

    ranker: Ranker
    material: Material
    questions: tuple[Scored, ...]


class Lab:
    """Rankers, data sets and a setup.

    Args:
        rankers: Each with its own name.
        datasets: Each with its own name.
        setup: How to measure; the defaults when None.
        watch: Told whenever a question is ranked.

    Raises:
        MetricError: A name is used twice.
    """

    def __init__(
        self,
        rankers: Sequence[Ranker],
        datasets: Sequence[Dataset],
        setup: Setup | None = None,
        *,
        watch: Watch = lambda step: None,
    ) -> None:
        for names in ([one.name for one in rankers], [one.name for one in datasets]):
            if len(set(names)) < len(names):
                raise MetricError(f"names must differ, got {names}")
        self.rankers, self.datasets = tuple(rankers), tuple(datasets)
        self.setup = setup or Setup()
        self.missing: dict[tuple[str, str], str] = {}
        self._watch = watch
        self._materials: dict[str, Material] = {}
        self._passes: dict[tuple[str, str, str], Pass] = {}

    def materials(self) -> Iterator[Material]:
        """Yield the data sets; each is read once.

        Raises:
            DatasetError: One cannot be read.
        """
        for dataset in self.datasets:
            if dataset.name not in self._materials:
                self._materials[dataset.name] = read_material(dataset)
            yield self._materials[dataset.name]

    def passes(self) -> Iterator[Pass]:
        """Yield one pass a data set and ranker, those that are available.

        Raises:
            UnavailableError, BackendError: None is available, or one is not and the setup is
                strict.
        """
        for repeats in self.repeated():
            yield repeats[0]

    def repeated(self) -> Iterator[list[Pass]]:
        """Yield all passes of each ranker over each data set: several if it differs by the run."""
        yield from self._over(self.materials(), self.rankers, self._repeats)

    def asked_again(self) -> Iterator[list[Pass]]:
        """Yield passes over the first questions of each data set, every one judged anew."""
        sampled = (read_material(one.first(self.setup.n_sampled)) for one in self.datasets)
        yield from self._over(sampled, self.rankers, self._again)

    def filtering(self) -> Iterator[Pass]:
        """Yield the passes of the rankers whose scores in [0, 1] say what to keep.

        Raises:
            NoFilterError: There is none.
            SettingsError: One of them drops passages itself.
        """
        rankers = [one for one in self.rankers if one.says_why]
        if not rankers:
            raise NoFilterError(
                "this experiment needs a ranker that filters, e.g. deepera:local; got "
                f"{', '.join(one.name for one in self.rankers) or 'none'}"
            )
        for repeats in self._over(self.materials(), rankers, self._repeats):
            _check_whole(repeats[0])
            yield repeats[0]

    def once(self, ranker: Ranker, material: Material) -> Pass:
        """Return a pass, from what is kept if it is there.

        Raises:
            UnavailableError, BackendError: The ranker cannot run here.
        """
        told = ranker.fingerprint
        what = str(id(ranker)) if told is None else repr(told)  # the pass keeps the ranker alive
        key = (material.survey.fingerprint, ranker.name, what)
        if key not in self._passes:
            self._passes[key] = self._run(ranker, material)
        return self._passes[key]

    def _over(
        self,
        materials: Iterable[Material],
        rankers: Sequence[Ranker],
        repeats: Callable[[Ranker], Sequence[Ranker]],
    ) -> Iterator[list[Pass]]:
        n_done, problem = 0, None
        for material in materials:
            for ranker in rankers:
                try:
                    passes = [self.once(one, material) for one in repeats(ranker)]
                except (UnavailableError, BackendError) as error:
                    if self.setup.strict:
                        raise
                    self.missing[material.name, ranker.name] = str(error)
                    problem = error
                else:
                    n_done += 1
                    yield passes
        if problem is not None and not n_done:
            raise problem

    def _run(self, ranker: Ranker, material: Material) -> Pass:
        found = material.survey
        ranked: list[QuestionRanking] = []
        for one in cached_rankings(ranker, material.dataset, found, self.setup.keep):
            ranked.append(one)
            self._watch(Step(found.name, ranker.name, len(ranked), found.n_questions))
        if all(one.failed >= found.n_candidates - 1e-9 for one in ranked):
            raise UnavailableError(f"no passage could be judged: {ranked[-1].problem}")
        questions = map(Scored.of, found.labels, material.labels, ranked)
        return Pass(ranker, material, tuple(questions))

    def _repeats(self, ranker: Ranker) -> list[Ranker]:
        if ranker.is_random:
            return [ranker.repeat(number) for number in range(self.setup.n_repeats)]
        return [ranker]

    def _again(self, ranker: Ranker) -> list[Ranker]:
        if ranker.is_random:
            return self._repeats(ranker)
        return [RepeatedRun(ranker, number) for number in range(self.setup.n_repeats)]


def read_material(dataset: Dataset) -> Material:
    """Read a data set once, for its survey and its labels.

    Raises:
        DatasetError: It cannot be read, or is empty.
    """
    labels: list[Labels] = []

    def tapped() -> Iterator[Instance]:
        for instance in dataset:
            labels.append(Labels.of(instance))
            yield instance

    found = summarize_dataset(Dataset(dataset.name, tapped, dataset.first_stage))
    return Material(dataset, found, tuple(labels))


def _check_whole(one: Pass) -> None:
    if any(len(question.judged.ranked) < len(question.first) for question in one.questions):
        raise SettingsError(
            f"{one.ranker.name!r} drops passages itself; this experiment filters on its own and "
            "needs the ranker that keeps them all, e.g. deepera:local instead of "
            "deepera-kept:local"
        )


Unit = Literal["text", "percent", "number", "count", "seconds"]
Cell = str | int | float | MetricEstimate | None


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a grid.

    `unit` says what its numbers are: ``percent`` is a fraction that people see times 100; ``count``
    is seen as a whole number if it is one.
    """

    name: str
    unit: Unit = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table of named columns.

    Attributes:
        name: Names its files: lower case and hyphens.
        title: For people.
        columns: At least one.
        rows: Cells in the order of the columns; None where there is nothing to measure.
        note: How to read it, in a sentence or two.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


class Drawing(Protocol):
    """A figure that draws itself; the same numbers give the same figure."""

    @property
    def name(self) -> str:
        """Names its files: lower case and hyphens."""

    @property
    def title(self) -> str:
        """What it shows, for people."""

    def draw(self) -> Figure:
        """Draw it anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentResult:
    """What an experiment found.

    Attributes:
        grids: Tables, the main one first.
        drawings: Figures.
        findings: What was checked on the way, a sentence each.
        facts: What it depended on besides rankers, data and settings; for the manifest.
    """

    grids: tuple[Grid, ...]
    drawings: tuple[Drawing, ...] = ()
    findings: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment.

    Attributes:
        name: What the command line calls it.
        title: Its name for people.
        measures: What it measures, in a sentence or two.
        run: Measures it.
        asks_again: Whether it must not be answered from a cache.
    """

    name: str
    title: str
    measures: str
    run: Callable[[Lab], ExperimentResult]
    asks_again: bool = False


_OVERLAPS = ("F1", "P", "R")
_Given = tuple[Instance, Sequence[str]]


def answer_columns(lab: Lab) -> tuple[Column, ...]:
    """Return F1, precision and recall of the answers, and LFS if there is a judge of answers."""
    if lab.setup.generator is None:
        return ()
    scored = (Column("LFS", "number"),) if lab.setup.answer_judge else ()
    return (*(Column(name, "percent") for name in _OVERLAPS), *scored)


def answer_values(lab: Lab, material: Material, kept: Sequence[JudgedRanking]) -> list[Values]:
    """Answer every question from its kept passages; a value a column of `answer_columns`.

    A question without a reference answer, or without an answer because the generator failed, has
    weight 0.
    """
    if lab.setup.generator is None:
        return []
    return values_of(lab, _passages(material, kept))


def values_of(lab: Lab, given: Iterator[_Given]) -> list[Values]:
    """Answer every question from the texts it comes with; see `answer_values`."""
    pairs: list[tuple[str, str]] = []
    weights: list[float] = []
    scores: list[int | None] = []
    while chunk := list(islice(given, QUESTIONS_AT_ONCE)):
        golds = [instance.gold_answer for instance, _ in chunk]
        answers, problems, marks = _answered(lab, chunk)
        pairs += zip(answers, golds, strict=True)
        weights += [
            float(bool(gold.strip()) and not problem)
            for gold, problem in zip(golds, problems, strict=True)
        ]
        scores += marks
    overlaps = answer_overlaps(pairs, weights)
    found = [overlaps.f1, overlaps.precision, overlaps.recall]
    judge = lab.setup.answer_judge
    if judge is not None:
        found.append(lfs(scores, low=judge.low, high=judge.high).values)
    return found


def _passages(material: Material, kept: Sequence[JudgedRanking]) -> Iterator[_Given]:
    for instance, one in zip(material.dataset, kept, strict=True):
        texts = texts_of(candidates_of(instance))
        of = {context.id: text for context, text in zip(instance.contexts, texts, strict=True)}
        yield instance, [of[id] for id in one.ranked]


def _answered(lab: Lab, chunk: list[_Given]) -> tuple[list[str], list[str], list[int | None]]:
    generator, judge = lab.setup.generator, lab.setup.answer_judge
    if generator is None:
        raise AssertionError("values are asked for only where there is a generator")
    produced = generator.answer_many([(instance.question, given) for instance, given in chunk])
    marks: list[int | None] = [None] * len(chunk)
    if judge is not None:
        places = [
            place
            for place, one in enumerate(produced)
            if not one.problem and chunk[place][0].gold_answer.strip()
        ]
        tasks = [
            ToJudge(chunk[at][0].question, chunk[at][0].gold_answer, produced[at].text)
            for at in places
        ]
        for place, verdict in zip(places, judge.judge_many(tasks), strict=True):
            marks[place] = verdict.score
    return [one.text for one in produced], [one.problem for one in produced], marks


class Measured(NamedTuple):
    """A ranker on a data set: values a column, and their standard deviations over runs."""

    material: Material
    ranker: str
    values: list[Values]
    stds: list[float]


All = dict[tuple[str, str], Measured]


def metric_columns(lab: Lab) -> tuple[Column, ...]:
    """Return the columns: those of answers if the lab has a generator, then the metrics."""
    return *answer_columns(lab), *(Column(metric, "percent") for metric in lab.setup.metrics)


def measure(lab: Lab, repeats: Sequence[Pass]) -> Measured:
    """Measure a ranker that went over a data set once, or several times."""
    by_column = list(zip(*(_columns(lab, one) for one in repeats), strict=True))
    return Measured(
        repeats[0].material,
        repeats[0].ranker.name,
        [average(runs) for runs in by_column],
        [mean_std([one.mean() for one in runs]).std for runs in by_column],
    )


def _columns(lab: Lab, one: Pass) -> list[Values]:
    """Return what one run is worth: answers from its best passages, then its ranks."""
    judged = [question.judged for question in one.questions]
    best = [replace(each, ranked=each.ranked[: lab.setup.top_n]) for each in judged]
    answers = answer_values(lab, one.material, best)
    return [*answers, *(compute(metric, judged) for metric in lab.setup.metrics)]


def estimates(columns: Sequence[Values], setup: Setup) -> list[MetricEstimate]:
    """Return mean and 95 % interval of each column, all over the same questions."""
    if not columns:
        return []
    found = bootstraps(columns, n_resamples=setup.n_resamples, seed=setup.seed)
    return [MetricEstimate(*one, 0.0) for one in found]


def n_kept(kept: Sequence[JudgedRanking]) -> Values:
    """Passages kept a question."""
    return Values.of([len(one.ranked) for one in kept])


def empty(kept: Sequence[JudgedRanking]) -> Values:
    """1 where nothing was kept, else 0."""
    return Values.of([not one.ranked for one in kept])


def precision(kept: Sequence[JudgedRanking]) -> Values:
    """Share of the kept passages that are golden, each passage with the same weight, in [0, 1]."""
    counts = np.array([len(one.ranked) for one in kept], dtype=np.float64)
    golden = [sum(id in one.golden for id in one.ranked) for one in kept]
    return Values.of(golden / np.maximum(counts, 1), counts)


def found_golden(kept: Sequence[JudgedRanking]) -> Values:
    """1 where a golden passage is among the kept, else 0; HitRate of the whole list."""
    return Values.of([not one.golden.keys().isdisjoint(one.ranked) for one in kept])


KEPT, EMPTY, PRECISION, GOLDEN = "kept", "nothing kept", "precision of the kept", "golden kept"
_RANK_METRICS = ("HitRate@1", "HitRate@3", "RP")


@dataclass(frozen=True, slots=True)
class Way:
    """One way measured: what it is called, and a mean a column of `way_columns`."""

    material: str
    ranker: str
    label: tuple[str | float, ...]
    means: Mapping[str, MetricEstimate]


def way_columns(lab: Lab) -> tuple[Column, ...]:
    """Return the columns of every way; those of answers only if the lab has a generator."""
    return (
        Column(KEPT, "count"),
        Column(EMPTY, "percent"),
        Column(PRECISION, "percent"),
        *(Column(metric, "percent") for metric in _RANK_METRICS),
        Column(GOLDEN, "percent"),
        *answer_columns(lab),
    )


def measure_ways(
    lab: Lab, one: Pass, ways: Mapping[tuple[str | float, ...], Sequence[JudgedRanking]]
) -> list[Way]:
    """Measure what each way hands on of every question of a pass."""
    columns = way_columns(lab)
    values = [value for kept in ways.values() for value in [
        n_kept(kept),
        empty(kept),
        precision(kept),
        *(compute(metric, kept) for metric in _RANK_METRICS),
        found_golden(kept),
        *answer_values(lab, one.material, kept),
    ]]  # fmt: skip
    found = iter(estimates(values, lab.setup))
    return [
        Way(
            one.material.name,
            one.ranker.name,
            label,
            {column.name: next(found) for column in columns},
        )
        for label in ways
    ]


def way_rows(ways: Sequence[Way]) -> tuple[tuple[str | float | MetricEstimate, ...], ...]:
    """Return the rows of a grid: data set, ranker, label, means."""
    return tuple((way.material, way.ranker, *way.label, *way.means.values()) for way in ways)


def curve(
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
