"""What answers from the passages are worth: generators, token overlap, and a judge behind LFS."""

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

from langchain_core.messages import BaseMessage
from pydantic import Field, create_model

from deepera_graph.calibration.instance import MetricError
from deepera_graph.calibration.statistics import Values
from deepera_graph.chat.parsing import Number, ReplyModel
from deepera_graph.errors import AnswerError, CallError, SettingsError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.lab.asking import Chat, run_together
from deepera_graph.lab.rankers.llm import fill_prompt
from deepera_graph.text.words import split_sentences

Task = tuple[str, Sequence[str]]
LOW = 1
HIGH = 5
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Produced(NamedTuple):
    """An answer, maybe empty as none was found; `problem` says why there is none, else empty."""

    text: str
    problem: str = ""


@runtime_checkable
class Repeatable(Protocol):
    """What may differ from run to run: a generator, or a judge of answers."""

    def repeat(self, number: int) -> Self:
        """Return the one of a run; number 0 is this one."""


class Generator(Protocol):
    """Answers questions from passages."""

    @property
    def name(self) -> str:
        """What a table calls it."""

    def answer_many(self, tasks: Sequence[Task]) -> list[Produced]:
        """Return an answer to each (question, passages, best first), in the same order."""


class Extractive:
    """Answers with the first sentence of the best passage; no model, for tests and dry runs."""

    name = "first sentence of the best passage"

    def answer_many(self, tasks: Sequence[Task]) -> list[Produced]:
        """Return the beginning of each first passage; nothing where there is no passage."""
        best = [passages[0] if passages else "" for _, passages in tasks]
        first = [(one, next(iter(split_sentences(one)), None)) for one in best]
        return [Produced(one.strip() if found is None else found.text) for one, found in first]


class FilledText(ReplyModel):
    """An answer."""

    answer: str = Field(description="The answer, as brief as can be; empty if there is none.")


class ChatGenerator:
    """Has a chat model answer from the passages; without any passage the answer is empty."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self.name = chat.name

    def repeat(self, number: int) -> Self:
        """Return the generator of one run, which a cache answers with nothing of other runs."""
        return type(self)(self._chat.repeat(number))

    def answer_many(self, tasks: Sequence[Task]) -> list[Produced]:
        """Return the answers of the model."""
        return run_together(lambda task: self._answer(*task), tasks)

    async def _answer(self, question: str, passages: Sequence[str]) -> Produced:
        if not passages:
            return Produced("")
        try:
            filled = await self._chat.ask("generate", _messages(question, passages), FilledText)
        except (AnswerError, CallError) as error:
            return Produced("", str(error))
        return Produced(filled.answer.strip())


def _messages(question: str, passages: Sequence[str]) -> list[BaseMessage]:
    block = "\n\n".join(
        f"[{number}] {' '.join(show.plain(one).split())}"
        for number, one in enumerate(passages, start=1)
    )
    values = {"question": show.one_line(question), "marker": show.marker(block), "passages": block}
    return fill_prompt("generate", **values)


class ToJudge(NamedTuple):
    """An answer to be judged, with what it should have said."""

    question: str
    gold: str
    answer: str


class Verdict(NamedTuple):
    """A score on the judge's scale; None when there is none, and `reason` then says why."""

    score: int | None
    reason: str


# Source: DeepEra, section on metrics: a separate model judges factual correctness, logical
# consistency and contextual adequacy, in one number. Neither the prompt nor the scale is printed; 1
# to 5 fits the numbers they report, and it can be changed.
class LfsJudge:
    """Scores answers from *low* to *high*, a reason first; an empty one is *low* without a call."""

    def __init__(self, chat: Chat, *, low: int = LOW, high: int = HIGH) -> None:
        if low >= high:
            raise SettingsError(f"low must be less than high, got {low} and {high}")
        self.low, self.high = low, high
        self.name = chat.name
        self._chat = chat

    def repeat(self, number: int) -> Self:
        """Return the judge of one run, which a cache answers with nothing of other runs."""
        return type(self)(self._chat.repeat(number), low=self.low, high=self.high)

    def judge_many(self, tasks: Sequence[ToJudge]) -> list[Verdict]:
        """Return a verdict on each answer, in the same order."""
        return run_together(self._judge, tasks)

    async def _judge(self, task: ToJudge) -> Verdict:
        if not task.answer.strip():
            return Verdict(self.low, "no answer was given")
        kind = _verdict_schema(self.low, self.high)
        try:
            filled: Any = await self._chat.ask("lfs", self._messages(task), kind)
        except (AnswerError, CallError) as error:
            return Verdict(None, str(error))
        return Verdict(filled.score, filled.reason)

    def _messages(self, task: ToJudge) -> list[BaseMessage]:
        answer = show.plain(task.answer)
        return fill_prompt(
            "lfs",
            low=str(self.low),
            high=str(self.high),
            question=show.one_line(task.question),
            gold=show.one_line(task.gold),
            marker=show.marker(answer),
            answer=answer,
        )


@lru_cache(maxsize=8)
def _verdict_schema(low: int, high: int) -> type[ReplyModel]:
    """Return what the judge fills in, with its scale in the schema; one class a scale."""
    reason: Any = (str, Field(description="Why, in one or two sentences."))
    score: Any = (Number, Field(ge=low, le=high, description=f"From {low} to {high}."))
    return create_model("FilledVerdict", __base__=ReplyModel, reason=reason, score=score)


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
    """Return the words in lower case, without punctuation and English articles."""
    # Source: Rajpurkar et al. (2016), SQuAD, section 6.1.
    return _ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def token_overlap(answer: str, gold: str) -> Overlap:
    """Return precision, recall and F1 over shared tokens; 1 if neither has one, 0 if one has."""
    # Source: Rajpurkar et al. (2016, 2018), SQuAD 1.1 and 2.0.
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
    """Return the overlap of each (answer, gold answer); F1 is a mean of F1s."""
    overlaps = [token_overlap(answer, gold) for answer, gold in pairs]
    return Overlaps(
        Values.of([one.precision for one in overlaps], weights),
        Values.of([one.recall for one in overlaps], weights),
        Values.of([one.f1 for one in overlaps], weights),
    )


def lfs(scores: Sequence[int | None], *, low: int, high: int) -> Values:
    """Return the scores of a judge; None, for no verdict, counts as *low*."""
    # Source: DeepEra, section on metrics: a judge's score of factual correctness, logical
    # consistency and contextual adequacy, as mean and standard deviation. The scale is not printed.
    # What could not be judged counts as the lowest: left out, it would make the mean look better
    # wherever judging fails on bad answers. Where nothing was judged there is no mean.
    judged = [one for one in scores if one is not None]
    for one in judged:
        if not low <= one <= high:
            raise MetricError(f"score must be from {low} to {high}, got {one}")
    values = [float(low if one is None else one) for one in scores]
    return Values.of(values, [float(bool(judged))] * len(scores))
