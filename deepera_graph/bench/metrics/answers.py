"""What a ranker is worth to the answer: token overlap and LFS of answers from its best passages."""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from pydantic import Field, create_model

from deepera_graph.bench.data.instance import Dataset, DatasetError, Instance, MetricError
from deepera_graph.bench.metrics.ranking import survey
from deepera_graph.bench.metrics.statistics import Values
from deepera_graph.bench.rankers.base import EvidenceRanker, Ranker, passages_of, texts_of
from deepera_graph.bench.rankers.llm import Chat, messages, together
from deepera_graph.bench.run import QUESTIONS_AT_ONCE, Ranked, Step, Watch, rankings
from deepera_graph.chat.schema import Number, ReplyModel
from deepera_graph.errors import AnswerError, CallError, SettingsError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.text.sentences import split_sentences

Task = tuple[str, Sequence[str]]


class Produced(NamedTuple):
    """An answer; `problem` says why there is none, and is empty otherwise.

    An answer may be empty without a problem: then the generator found none in the passages.
    """

    text: str
    problem: str = ""


class Generator(Protocol):
    """Answers questions from passages."""

    @property
    def name(self) -> str:
        """What a table calls it."""

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """All that its answers depend on, as plain data; None if that is not known."""

    def answer_many(self, tasks: Sequence[Task]) -> list[Produced]:
        """Return an answer to each (question, passages, best first), in the same order."""


class Extractive:
    """Answers with the first sentences of the best passage; no model, for tests and dry runs."""

    def __init__(self, n_sentences: int = 1) -> None:
        if n_sentences < 1:
            raise SettingsError(f"n_sentences must be >= 1, got {n_sentences}")
        self._n_sentences = n_sentences
        count = "sentence" if n_sentences == 1 else f"{n_sentences} sentences"
        self.name = f"first {count} of the best passage"

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """It depends on the number of sentences."""
        return {"kind": "extractive", "n_sentences": self._n_sentences}

    def answer_many(self, tasks: Sequence[Task]) -> list[Produced]:
        """Return the beginning of each first passage; nothing where there is no passage."""
        return [Produced(self._beginning(passages[0]) if passages else "") for _, passages in tasks]

    def _beginning(self, passage: str) -> str:
        sentences = split_sentences(passage)[: self._n_sentences]
        return passage[sentences[0].start : sentences[-1].end] if sentences else passage.strip()


class FilledText(ReplyModel):
    """An answer."""

    answer: str = Field(description="The answer, as brief as can be; empty if there is none.")


class ChatGenerator:
    """Has a chat model answer from the passages; without any passage the answer is empty."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self.name = chat.name

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """It depends on the model and the prompt."""
        if self._chat.fingerprint is None:
            return None
        prompt = [one.content for one in _messages("$question", ["$passage"])]
        return {"kind": "chat", "model": self._chat.fingerprint, "prompt": prompt}

    def answer_many(self, tasks: Sequence[Task]) -> list[Produced]:
        """Return the answers of the model."""
        return together(self._answer(*task) for task in tasks)

    async def _answer(self, question: str, passages: Sequence[str]) -> Produced:
        if not passages:
            return Produced("")
        try:
            filled = await self._chat.ask("generate", _messages(question, passages), FilledText)
        except (AnswerError, CallError) as error:
            return Produced("", str(error))
        return Produced(filled.answer.strip())


class FunctionGenerator:
    """Answers with a function of yours."""

    def __init__(
        self,
        answer: Callable[[str, Sequence[str]], str],
        *,
        name: str,
        fingerprint: Mapping[str, Any] | None = None,
    ) -> None:
        self._answer = answer
        self.name, self.fingerprint = name, fingerprint

    def answer_many(self, tasks: Sequence[Task]) -> list[Produced]:
        """Return what the function returns; its errors are raised as they are."""
        return [Produced(self._answer(*task)) for task in tasks]


def _messages(question: str, passages: Sequence[str]) -> list[Any]:
    block = "\n\n".join(
        f"[{number}] {' '.join(show.plain(one).split())}"
        for number, one in enumerate(passages, start=1)
    )
    values = {"question": show.one_line(question), "marker": show.marker(block), "passages": block}
    return list(messages("generate", **values))


LOW = 1
HIGH = 5


class ToJudge(NamedTuple):
    """An answer to be judged, with what it should have said."""

    question: str
    gold: str
    answer: str


class Verdict(NamedTuple):
    """A score on the judge's scale; None when there is none, and `reason` then says why."""

    score: int | None
    reason: str


class LfsJudge:
    """Scores answers from *low* to *high*, a reason first.

    An empty answer gets the lowest score without a call.
    """

    def __init__(self, chat: Chat, *, low: int = LOW, high: int = HIGH) -> None:
        if low >= high:
            raise SettingsError(f"low must be less than high, got {low} and {high}")
        self.low, self.high = low, high
        self.name = chat.name
        self._chat = chat

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """It depends on the model, the prompt and the scale."""
        if self._chat.fingerprint is None:
            return None
        prompt = [one.content for one in self._messages(ToJudge("$question", "$gold", "$answer"))]
        return {"kind": "lfs", "model": self._chat.fingerprint, "prompt": prompt}

    def judge_many(self, tasks: Sequence[ToJudge]) -> list[Verdict]:
        """Return a verdict on each answer, in the same order."""
        return together(map(self._judge, tasks))

    async def _judge(self, task: ToJudge) -> Verdict:
        if not task.answer.strip():
            return Verdict(self.low, "there is no answer")
        kind = _filled(self.low, self.high)
        try:
            filled: Any = await self._chat.ask("lfs", self._messages(task), kind)
        except (AnswerError, CallError) as error:
            return Verdict(None, str(error))
        return Verdict(filled.score, filled.reason)

    def _messages(self, task: ToJudge) -> list[Any]:
        answer = show.plain(task.answer)
        return list(
            messages(
                "lfs",
                low=str(self.low),
                high=str(self.high),
                question=show.one_line(task.question),
                gold=show.one_line(task.gold),
                marker=show.marker(answer),
                answer=answer,
            )
        )


@lru_cache(maxsize=8)
def _filled(low: int, high: int) -> type[ReplyModel]:
    """Return what the judge fills in, with its scale in the schema; one class a scale."""
    reason: Any = (str, Field(description="Why, in one or two sentences."))
    score: Any = (Number, Field(ge=low, le=high, description=f"From {low} to {high}."))
    return create_model("FilledVerdict", __base__=ReplyModel, reason=reason, score=score)


_ARTICLE = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Overlap(NamedTuple):
    """Token overlap of an answer with the gold answer, each in [0, 1]."""

    precision: float
    recall: float
    f1: float


class Overlaps(NamedTuple):
    """The three over many answers; their means are means over answers, not of counts."""

    precision: Values
    recall: Values
    f1: Values


def answer_tokens(text: str) -> list[str]:
    """Return the words in lower case, without punctuation and English articles.

    Source:
        Rajpurkar et al. (2016), SQuAD, section 6.1.
    """
    return _ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def token_overlap(answer: str, gold: str) -> Overlap:
    """Return precision, recall and F1 over shared tokens, each token as often as both have it.

    All three are 1 when neither text has a token, and 0 when only one has.

    Source:
        Rajpurkar et al. (2016, 2018), SQuAD 1.1 and 2.0.
    """
    found, wanted = answer_tokens(answer), answer_tokens(gold)
    if not found or not wanted:
        same = float(found == wanted)
        return Overlap(same, same, same)
    shared = (Counter(found) & Counter(wanted)).total()
    if not shared:
        return Overlap(0.0, 0.0, 0.0)
    precision, recall = shared / len(found), shared / len(wanted)
    return Overlap(precision, recall, 2 * precision * recall / (precision + recall))


def answer_overlaps(
    pairs: Iterable[tuple[str, str]], weights: Sequence[float] | None = None
) -> Overlaps:
    """Return the overlap of each (answer, gold answer).

    F1 is a mean of F1s, hence not the harmonic mean of the two other means.
    """
    overlaps = [token_overlap(answer, gold) for answer, gold in pairs]
    return Overlaps(
        Values.of([one.precision for one in overlaps], weights),
        Values.of([one.recall for one in overlaps], weights),
        Values.of([one.f1 for one in overlaps], weights),
    )


@dataclass(frozen=True, slots=True)
class Lfs:
    """Judged answers."""

    values: Values
    std: float
    n_failed: int
    low: int
    high: int

    @property
    def mean(self) -> float:
        """The mean score, from `low` to `high`; not a number if no answer has one."""
        return self.values.mean()

    def __str__(self) -> str:
        """Name mean, spread and scale, e.g. ``4.02 ± 0.81 (1 to 5, 3 not judged)``."""
        failed = f", {self.n_failed} not judged" if self.n_failed else ""
        return f"{self.mean:.2f} ± {self.std:.2f} ({self.low} to {self.high}{failed})"


def lfs(scores: Sequence[int | None], *, low: int, high: int) -> Lfs:
    """Return mean and spread of the scores of a judge.

    Source:
        DeepEra, section on metrics: a judge's score of factual correctness, logical consistency
        and contextual adequacy, as mean and standard deviation. The scale is not printed.
    """
    judged = [one for one in scores if one is not None]
    for one in judged:
        if not low <= one <= high:
            raise MetricError(f"score must be from {low} to {high}, got {one}")
    values = [float(low if one is None else one) for one in scores]
    weights = [float(one is not None) for one in scores]
    std = float(np.std(judged, ddof=1)) if len(judged) > 1 else 0.0
    return Lfs(Values.of(values, weights), std, len(scores) - len(judged), low, high)


N_PASSAGES = 10
_NOT_JUDGED = Verdict(None, "")


class AnswerRow(NamedTuple):
    """One question's answer; `problem` says why there is none.

    `lfs` is None without a judge, or when the answer could not be judged; `reason` then says why.
    """

    id: str
    gold: str
    answer: str
    problem: str
    lfs: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerScores:
    """Answers from the best passages of one ranker on one data set."""

    dataset: str
    ranker: str
    generator: str
    judge: str
    n: int
    rows: tuple[AnswerRow, ...]
    overlaps: Overlaps
    lfs: Lfs | None
    n_failed: int
    n_without_gold: int


def answer_scores(
    ranker: Ranker,
    dataset: Dataset,
    generator: Generator,
    judge: LfsJudge | None = None,
    *,
    n: int = N_PASSAGES,
    keep: Path | None = None,
    own_evidence: bool = False,
    watch: Watch = lambda step: None,
) -> AnswerScores:
    """Answer every question from the best passages of a ranker, and compare with the reference.

    Rankings are read back from *keep*; answers and verdicts of chat models come from the cache of
    their `Chat`. So a second run makes no call and gives the same.
    """
    if n < 1:
        raise MetricError(f"n must be >= 1, got {n}")
    rows: list[AnswerRow] = []
    found = survey(dataset)
    pairs = _with_evidence(ranker, dataset, n, keep, own_evidence=own_evidence)
    n_seen = 0
    while chunk := list(islice(pairs, QUESTIONS_AT_ONCE)):
        rows += _answered([pair for pair in chunk if pair[0].gold_answer.strip()], generator, judge)
        n_seen += len(chunk)
        watch(Step(found.name, ranker.name, n_seen, found.n_questions))
    if not rows:
        raise DatasetError(f"no question of {dataset.name!r} has a reference answer")
    return AnswerScores(
        dataset=dataset.name,
        ranker=ranker.name,
        generator=generator.name,
        judge=judge.name if judge else "",
        n=n,
        rows=tuple(rows),
        overlaps=answer_overlaps(
            [(row.answer, row.gold) for row in rows], [float(not row.problem) for row in rows]
        ),
        lfs=lfs([row.lfs for row in rows], low=judge.low, high=judge.high) if judge else None,
        n_failed=sum(bool(row.problem) for row in rows),
        n_without_gold=n_seen - len(rows),
    )


def _with_evidence(
    ranker: Ranker, dataset: Dataset, n: int, keep: Path | None, *, own_evidence: bool
) -> Iterator[tuple[Instance, Sequence[str]]]:
    """Yield each instance with what the generator is to see of it."""
    if not own_evidence:
        ranked = rankings(ranker, dataset, survey(dataset), keep)
        for instance, one in zip(dataset, ranked, strict=True):
            yield instance, _best(instance, one, n)
        return
    if not isinstance(ranker, EvidenceRanker):
        raise MetricError(f"ranker {ranker.name!r} makes no evidence of its own")
    instances = iter(dataset)
    while chunk := list(islice(instances, QUESTIONS_AT_ONCE)):
        jobs = [(one.question, passages_of(one)) for one in chunk]
        yield from zip(chunk, ranker.evidence_many(jobs, n), strict=True)


def _best(instance: Instance, ranked: Ranked, n: int) -> list[str]:
    texts = texts_of(passages_of(instance))
    return [texts[place - 1] for place in ranked.places[:n]]


def _answered(
    pairs: Sequence[tuple[Instance, Sequence[str]]], generator: Generator, judge: LfsJudge | None
) -> Iterator[AnswerRow]:
    answers = generator.answer_many([(one.question, evidence) for one, evidence in pairs])
    verdicts = [_NOT_JUDGED] * len(pairs)
    if judge is not None:
        whole = [place for place, one in enumerate(answers) if not one.problem]
        tasks = [
            ToJudge(pairs[place][0].question, pairs[place][0].gold_answer, answers[place].text)
            for place in whole
        ]
        for place, verdict in zip(whole, judge.judge_many(tasks), strict=True):
            verdicts[place] = verdict
    for (one, _), answer, verdict in zip(pairs, answers, verdicts, strict=True):
        yield AnswerRow(
            one.id, one.gold_answer, answer.text, answer.problem, verdict.score, verdict.reason
        )
