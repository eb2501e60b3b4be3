"""Answers in studies: from what they are made, what they are worth, and what failed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from deepera_graph.calibration.instance import Instance
from deepera_graph.calibration.statistics import Values, mean_std, pool_runs
from deepera_graph.errors import FailedShareError
from deepera_graph.lab.bench.figures import Drawing
from deepera_graph.lab.bench.rank import QUESTIONS_AT_ONCE, RankedQuestion
from deepera_graph.lab.metrics.answers import (
    Generator,
    LfsJudge,
    Produced,
    Repeatable,
    ToJudge,
    Verdict,
    answer_overlaps,
    lfs,
)
from deepera_graph.lab.metrics.ranking import DatasetSummary, JudgedRanking
from deepera_graph.lab.rankers.base import Note, candidates_of, texts_of
from deepera_graph.lab.rankers.deepera import DeepEra, HandedOn
from deepera_graph.lab.studies.base import RankerRun, StudyRunner
from deepera_graph.lab.studies.experiment import Failures, StudyResult
from deepera_graph.lab.tables import Column, Grid, MetricEstimate

OVERLAPS = ("F1", "P", "R")
# A passage that has the words of the answer and does not answer raises recall, and lowers LFS.
RECALL_ALONE = "R without LFS"
LFS, LFS_STD = "LFS", "LFS std"
NO_ANSWER, NOT_JUDGED, NO_SUMMARY = "answer failed", "answer not judged", "summary failed"
Given = Iterable[tuple[Instance, Sequence[str]]]  # a question, and the texts it is answered from
Source = Callable[[], Given]
T = TypeVar("T")


class _Answer(NamedTuple):
    gold: str  # empty where there is nothing to compare with
    produced: Produced
    verdict: Verdict | None  # None where nobody was to judge


class MeasuredRow(NamedTuple):
    """What lists are worth: values by column, the spread of their means over runs, and costs."""

    values: Mapping[str, Values]
    stds: Mapping[str, float]
    n_runs: int
    costs: tuple[float, ...] = ()

    def join(self, other: "MeasuredRow") -> "MeasuredRow":
        """Return the columns of both."""
        n_runs = max(self.n_runs, other.n_runs)
        return MeasuredRow({**self.values, **other.values}, {**self.stds, **other.stds}, n_runs)

    def fill(self, means: Iterator[MetricEstimate]) -> dict[str, MetricEstimate]:
        """Take the next mean for each column, and give it the spread."""
        return {name: next(means)._replace(std=self.stds[name]) for name in self.values}


class AnswerStudy:
    """Has questions answered for the rows of one study, and keeps count of what failed.

    A question without an answer, as the generator failed, counts as an empty answer; an answer
    that could not be judged has the lowest LFS. Both are counted, and too many raise.
    """

    def __init__(self, runner: StudyRunner) -> None:
        self._runner, self._config = runner, runner.config
        self._failures: dict[tuple[str, str, str], Failures] = {}
        self._without_reference: set[str] = set()
        self._summaries: dict[tuple[str, ...], list[dict[str, HandedOn]]] = {}

    @property
    def is_on(self) -> bool:
        """Whether there is who answers."""
        return self._config.generator is not None

    @property
    def n_runs(self) -> int:
        """How often generator and judge are asked; once if they give the same in every run."""
        both = (self._config.generator, self._config.answer_judge)
        differs = any(isinstance(one, Repeatable) for one in both)
        return self._config.n_answer_runs if differs else 1

    @property
    def overlaps(self) -> tuple[str, ...]:
        """Names of F1, precision and recall; that of recall says so if it stands without LFS."""
        return OVERLAPS if self._config.answer_judge is not None else (*OVERLAPS[:2], RECALL_ALONE)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of a row: overlaps, LFS with its range and its spread over answers, failures."""
        judge = self._config.answer_judge
        if not self.is_on:
            return ()
        found = Column.several("percent", *self.overlaps)
        if judge is not None:
            found += (
                Column(LFS, "number", range=(judge.low, judge.high)),
                Column(LFS_STD, "number"),
            )
        return (*found, *Column.several("percent", *self._counted))

    @property
    def _counted(self) -> tuple[str, ...]:
        return (NO_ANSWER,) if self._config.answer_judge is None else (NO_ANSWER, NOT_JUDGED)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that are measured question by question."""
        return tuple(one.name for one in self.columns if one.name != LFS_STD)

    def measure(self, data: str, row: str, runs: Sequence[Source]) -> MeasuredRow:
        """Answer each question from the texts it comes with, run by run."""
        # Raises `FailedShareError` if too many answers failed, or could not be judged.
        columns: dict[str, list[Values]] = {name: [] for name in self.names}
        for number in range(max(self.n_runs, len(runs))):
            answers = list(self._answer(runs[min(number, len(runs) - 1)](), number))
            self._check(data, row, answers)
            for name, values in self._score(answers).items():
                columns[name].append(values)
        return MeasuredRow(
            {name: pool_runs(each) for name, each in columns.items()},
            {name: mean_std([one.mean() for one in each]).std for name, each in columns.items()},
            self.n_runs,
        )

    def _answer(self, given: Given, number: int) -> Iterator[_Answer]:
        generator = _of_run(self._config.generator, number)
        judge = _of_run(self._config.answer_judge, number)
        assert generator is not None  # as it is on
        rest = iter(given)
        while chunk := list(islice(rest, QUESTIONS_AT_ONCE)):
            yield from _answer_chunk(generator, judge, chunk)

    def _score(self, answers: Sequence[_Answer]) -> dict[str, Values]:
        """Return a value a question and column; one without a reference has weight 0."""
        weights = [float(bool(one.gold)) for one in answers]
        pairs = [(one.produced.text, one.gold) for one in answers]
        overlaps = answer_overlaps(pairs, weights)
        failed = [float(bool(one.produced.problem)) for one in answers]
        found = dict(
            zip(self.overlaps, (overlaps.f1, overlaps.precision, overlaps.recall), strict=True)
        )
        judge = self._config.answer_judge
        if judge is not None:
            scores = [None if one.verdict is None else one.verdict.score for one in answers]
            marks = lfs(scores, low=judge.low, high=judge.high)
            found[LFS] = Values.of(marks.values, marks.weights * weights)
        found[NO_ANSWER] = Values.of(failed, weights)
        if judge is not None:
            unjudged = [float(one.verdict is not None and _problem(one.verdict) != "")
                        for one in answers]  # fmt: skip
            found[NOT_JUDGED] = Values.of(unjudged, weights)
        return found

    def _check(self, data: str, row: str, answers: Sequence[_Answer]) -> None:
        """Note what failed; too much of it is no measurement."""
        asked = [one for one in answers if one.gold]
        if not asked:
            self._without_reference.add(data)
        self._note(data, row, NO_ANSWER, [one.produced.problem for one in asked])
        verdicts = [one.verdict for one in asked if one.verdict is not None]
        self._note(data, row, NOT_JUDGED, [_problem(one) for one in verdicts])

    def _note(self, data: str, row: str, what: str, problems: Sequence[str]) -> None:
        failed = [one for one in problems if one]
        if not failed:
            return
        share, most = len(failed) / len(problems), self._config.max_failed_share
        if share > most:
            raise FailedShareError(
                f"{row} on {data}: {what} {len(failed)} times of {len(problems)}, "
                f"{100 * share:.1f} %, more than {100 * most:g} %: {failed[-1]}"
            )
        before = self._failures.get((data, row, what))
        if before is None or before.share < share:
            self._failures[data, row, what] = Failures(data, row, what, share, failed[-1])

    def spread(self, values: Mapping[str, Values]) -> dict[str, MetricEstimate]:
        """Return the spread of LFS over answers; nothing without a judge of answers."""
        if LFS not in values:
            return {}
        std = values[LFS].std() if values[LFS].weights.any() else float("nan")
        return {LFS_STD: MetricEstimate(std, float("nan"), float("nan"), 0.0)}

    def passages(self, data: DatasetSummary, kept: Sequence[JudgedRanking]) -> Given:
        """Yield every question with the passages that were kept, best first."""
        for instance, one in zip(data.dataset, kept, strict=True):
            texts = texts_of(candidates_of(instance))
            of = {context.id: text for context, text in zip(instance.contexts, texts, strict=True)}
            yield instance, [of[id] for id in one.ranked]

    def summaries(self, run: RankerRun, kept: Sequence[JudgedRanking], *, row: str) -> Given:
        """Yield every question with the summaries of what DeepEra kept, in rank order."""
        # Each passage is summarized once a study. One in which the summarizer finds no answer is
        # not handed on; of one whose summary failed the passage itself is, and that is noted.
        ranker = run.ranker
        assert isinstance(ranker, DeepEra)
        key = (*run.key, repr(ranker.fingerprint or id(ranker)))
        known = self._summaries.setdefault(key, [{} for _ in run.questions])
        rest = iter(zip(run.data.dataset, run.questions, kept, known, strict=True))
        problems: list[str] = []
        while chunk := list(islice(rest, QUESTIONS_AT_ONCE)):
            _summarize(ranker, [(one, ranked, list_, of) for one, ranked, list_, of in chunk])
            for instance, _, one, of in chunk:
                handed = [of[id] for id in one.ranked]
                problems += [each.problem for each in handed]
                yield instance, [each.text for each in handed if each.text]
        self._note(run.data.name, row, NO_SUMMARY, problems)

    @property
    def failures(self) -> tuple[Failures, ...]:
        """What failed in any row: the worst run of each."""
        return tuple(self._failures.values())

    def conclude(
        self, *grids: Grid, drawings: Iterable[Drawing] = (), findings: Iterable[str] = ()
    ) -> StudyResult:
        """Return what a study found, with what is to be said of the answers in it."""
        return StudyResult(
            grids=grids,
            drawings=tuple(drawings),
            findings=(*self.findings(), *findings),
            facts=self.facts(),
            failures=self.failures,
        )

    def findings(self) -> tuple[str, ...]:
        """Warn of a judge that judges its own answers, and of a spread that was not measured."""
        generator, judge = self._config.generator, self._config.answer_judge
        warning = warn_of_one_model(generator, judge)
        found = [] if warning is None else [warning]
        found += [
            f"{name}: no question has a reference answer, so answers are not measured."
            for name in sorted(self._without_reference)
        ]
        asks = any(isinstance(one, Repeatable) for one in (generator, judge))
        if asks and self.n_runs == 1:
            found.append(
                "Answers come from one run, so their spread over runs is not measured; "
                "--repeats 3 asks rankers, generator and answer judge three times."
            )
        return tuple(found)

    def facts(self) -> dict[str, Any]:
        """Return what a manifest says of the answers."""
        generator, judge = self._config.generator, self._config.answer_judge
        if generator is None:
            return {}
        plain: dict[str, Any] = {"generator": generator.name, "runs": self.n_runs}
        if judge is not None:
            plain["answer_judge"] = judge.name
            plain["lfs_range"] = [judge.low, judge.high]
            plain["judges_its_own_answers"] = warn_of_one_model(generator, judge) is not None
        return {"answers": plain}


def warn_of_one_model(generator: Generator | None, judge: LfsJudge | None) -> str | None:
    """Say what LFS is worth where the model that answers is the one that judges; else None."""
    if generator is None or judge is None or generator.name != judge.name:
        return None
    return (
        f"{judge.name} judges its own answers: a model tends to prefer what it wrote itself, so "
        "its LFS is no independent measure. Name another model with --answer-judge."
    )


def _problem(verdict: Verdict) -> str:
    return (verdict.reason or "no verdict") if verdict.score is None else ""


def _of_run(one: T, number: int) -> T:
    """Return a generator or judge for one run; one that gives the same in every run as it is."""
    return one.repeat(number) if isinstance(one, Repeatable) else one


def _answer_chunk(
    generator: Generator, judge: LfsJudge | None, given: list[tuple[Instance, Sequence[str]]]
) -> list[_Answer]:
    """Answer and judge a few questions; only those that have a reference are asked."""
    golds = [one.gold_answer.strip() for one, _ in given]
    places = [place for place, gold in enumerate(golds) if gold]
    tasks = [(given[at][0].question, given[at][1]) for at in places]
    produced = dict(zip(places, generator.answer_many(tasks), strict=True))
    verdicts: dict[int, Verdict] = {}
    if judge is not None:
        asked = [ToJudge(given[at][0].question, golds[at], produced[at].text) for at in places]
        verdicts = dict(zip(places, judge.judge_many(asked), strict=True))
    return [
        _Answer(gold, produced.get(place, Produced("")), verdicts.get(place))
        for place, gold in enumerate(golds)
    ]


_Kept = tuple[Instance, RankedQuestion, JudgedRanking, dict[str, HandedOn]]


def _summarize(ranker: DeepEra, chunk: Sequence[_Kept]) -> None:
    """Add the summaries that are missing of what was kept of a few questions."""
    missing = []
    for instance, ranked, kept, known in chunk:
        open = [id for id in kept.ranked if id not in known]
        if open:
            missing.append((instance, ranked, open, known))
    if not missing:
        return
    jobs, notes, intents = [], [], []
    for instance, ranked, ids, _ in missing:
        shown = candidates_of(instance)
        places = [ranked.first.index(id) for id in ids]
        jobs.append((instance.question, [shown[place] for place in places]))
        noted: dict[str, Note] = {
            shown[place]["id"]: ranked.note(id) for place, id in zip(places, ids, strict=True)
        }
        notes.append(noted)
        intents.append(ranked.ranked.intent)
    made = ranker.summarize_many(jobs, notes, intents)
    for (_, ranked, ids, known), handed in zip(missing, made, strict=True):
        for id in ids:
            known[id] = handed[str(ranked.first.index(id) + 1)]
