"""A chat model for whatever in the benchmark asks one, and rankers by what it says."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Generic, Self, TypeVar

from langchain_core.messages import BaseMessage
from pydantic import Field

from deepera_graph.chat.parsing import Number, ReplyModel, json_schema
from deepera_graph.errors import AnswerError, CallError, SettingsError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.listwise import (
    MAX_WORDS,
    FilledOrder,
    fill_listwise,
    list_headings,
    read_order,
)
from deepera_graph.lab.asking import Chat, run_together
from deepera_graph.lab.rankers.base import CandidatePassage, Job, Ranker, Ranking, rank_by_score
from deepera_graph.prompts import messages_of
from deepera_graph.usage import Usage

FilledT = TypeVar("FilledT", bound=ReplyModel)
T = TypeVar("T")
EXAMPLE = CandidatePassage(id="1", text="$text", title="$title", section="$section")
FAILED = -1.0
SIZE = 20  # passages in a window
STEP = 10  # how far it moves


def fill_prompt(node: str, /, **values: str) -> list[BaseMessage]:
    """Fill the templates of a node."""
    return messages_of("deepera_graph.lab.rankers.prompts", node, **values)


class ChatRanker(Ranker):
    """Ranks with a chat model, many questions at once; what fails is noted in `problems`."""

    asks_model = True

    def __init__(self, chat: Chat, name: str) -> None:
        self.name = name
        self._chat = chat

    def repeat(self, number: int) -> Self:
        """Return this ranker with the model of one run."""
        if not number:
            return self
        made = copy(self)
        made.__dict__.pop("problems", None)
        made._chat = self._chat.repeat(number)
        if self.fingerprint is not None:
            made.fingerprint = {**self.fingerprint, "model": made._chat.fingerprint}
        return made

    @property
    def usage(self) -> Usage:
        """Model calls and tokens so far."""
        return self._chat.usage

    def _identify(
        self, kind: str, prompt: Sequence[BaseMessage], answer: type[ReplyModel], **rest: Any
    ) -> Mapping[str, Any] | None:
        """Return a fingerprint: the model, the prompt and the form of the answer."""
        return self._chat.fingerprint and {
            "kind": kind,
            "model": self._chat.fingerprint,
            "prompt": [one.content for one in prompt],
            "answer": json_schema(answer),
            **rest,
        }


def format_block(passage: CandidatePassage) -> str:
    """Return a passage with its title and section, on lines of their own where there are any."""
    head = [f"{name}: {text}" for name, text in list_headings(passage)]
    return "\n".join([*head, show.plain(passage["text"])])


class PerPassage(ChatRanker, Generic[FilledT]):
    """Ranks by what a chat model says of each passage; one it cannot rate has -1, and counts."""

    marks_failures = True

    def __init__(
        self,
        chat: Chat,
        *,
        name: str,
        node: str,
        kind: type[FilledT],
        score: Callable[[FilledT], float],
    ) -> None:
        super().__init__(chat, name)
        self._node, self._kind, self._score = node, kind, score
        prompt = self._messages("$question", EXAMPLE)
        self.fingerprint = self._identify(f"llm {node}", prompt, kind)

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Do what `rank` does for many questions at once."""
        asked = [(question, one) for question, passages in jobs for one in passages]
        ratings = iter(run_together(lambda pair: self._rate(*pair), asked))
        return [rank_by_score(passages, [next(ratings) for _ in passages]) for _, passages in jobs]

    async def _rate(self, question: str, passage: CandidatePassage) -> float:
        try:
            filled = await self._chat.ask(self._node, self._messages(question, passage), self._kind)
        except (AnswerError, CallError) as error:
            self.problems.note(1, str(error))
            return FAILED
        return self._score(filled)

    def _messages(self, question: str, passage: CandidatePassage) -> list[BaseMessage]:
        block = format_block(passage)
        shown = {"question": show.one_line(question), "marker": show.marker(block)}
        return fill_prompt(self._node, passage=block, **shown)


class FilledRating(ReplyModel):
    """A rating; the reason comes first, so that the score follows from it."""

    reason: str = Field(description="Why, in one sentence.")
    score: float = Field(ge=0, le=1, strict=True, description="Relevance, in [0, 1].")


def llm_pointwise(chat: Chat) -> PerPassage[FilledRating]:
    """Return a plain LLM judge: one call a passage, a score from 0 to 1, nothing else."""
    # Without what DeepEra adds: no intent, no rubric of evidence, no quote to be checked.
    return PerPassage(
        chat,
        name=f"LLM pointwise {chat.name}",
        node="pointwise",
        kind=FilledRating,
        score=lambda rating: rating.score,
    )


class FilledExcerpt(ReplyModel):
    """A contextual summary and its rating."""

    summary: str = Field(description="What the excerpt contributes, at most 100 words, or empty.")
    relevance_score: Number = Field(ge=0, le=10, description="A whole number from 0 to 10.")


def paperqa(chat: Chat) -> PerPassage[FilledExcerpt]:
    """Return a ranker that summarizes and rates each passage in one call, as paper-qa does."""
    # Source: Skarlinski et al. (2024), Language agents achieve superhuman synthesis of scientific
    # knowledge, step "ranking and contextual summarization", ratings from 0 to 10. The wording is
    # ours; what becomes of the summaries is not measured here.
    return PerPassage(
        chat,
        name=f"paper-qa style {chat.name}",
        node="gather",
        kind=FilledExcerpt,
        score=lambda excerpt: float(excerpt.relevance_score),
    )


def sliding_windows(n: int, *, size: int = SIZE, step: int = STEP) -> list[tuple[int, int]]:
    """Return [start, end) of each window over *n* items, the last items first."""
    spans = []
    for end in range(n, 0, -step):
        spans.append((max(0, end - size), end))
        if end <= size:
            break
    return spans


async def slide(
    items: Sequence[T],
    sort: Callable[[Sequence[T]], Awaitable[Iterable[int]]],
    *,
    size: int = SIZE,
    step: int = STEP,
) -> list[T]:
    """Sort a list too long to be sorted in one go; nothing is lost, whatever *sort* says."""
    # A window moves from the end to the front, *step* items at a time, and takes the best along: in
    # front end the best ``size - step`` of the whole list.
    # Source: Sun et al. (2023), Is ChatGPT Good at Search?, sliding windows of 20, step 10. Their
    # code leaves out the front of a list that does not fit a whole number of steps, and a list
    # shorter than a window; here the last window covers what is left.
    sorted_items = list(items)
    for start, end in sliding_windows(len(items), size=size, step=step):
        seen = sorted_items[start:end]
        if len(seen) > 1:
            order = read_order(await sort(seen), len(seen)).order
            sorted_items[start:end] = [seen[place - 1] for place in order]
    return sorted_items


# A window whose call fails stays as it is, and its passages are counted as failed.
# Source: RankGPT, Sun et al. (2023). The wording is ours, and the order is asked for as a list of
# numbers rather than as text.
class ListwiseLlm(ChatRanker):
    """Ranks by the orders that a chat model gives; all passages at once if *size* is None."""

    def __init__(
        self,
        chat: Chat,
        *,
        size: int | None = SIZE,
        step: int = STEP,
        max_words: int = MAX_WORDS,
    ) -> None:
        if size is not None and not 1 <= step < size:
            raise SettingsError(f"step must be from 1 to size - 1 = {size - 1}, got {step}")
        if max_words < 1:
            raise SettingsError(f"max_words must be >= 1, got {max_words}")
        kind = "LLM listwise" if size is None else "RankGPT"
        super().__init__(chat, f"{kind} {chat.name}")
        self._size, self._step, self._max_words = size, step, max_words
        self.fingerprint = self._identify(
            "llm listwise",
            self._messages("$question", [EXAMPLE]),
            FilledOrder,
            windows=[size, step, max_words],
        )

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Do what `rank` does for many questions at once; the windows of one follow each other."""
        return run_together(lambda job: self._rank(*job), jobs)

    async def _rank(self, question: str, passages: Sequence[CandidatePassage]) -> Ranking:
        failed: dict[str, str] = {}

        async def sort(seen: Sequence[CandidatePassage]) -> list[int]:
            try:
                asked = self._messages(question, seen)
                order = (await self._chat.ask("listwise", asked, FilledOrder)).order
                if read_order(order, len(seen)).names_none:
                    raise AnswerError("the reply names none of the passages")
                return order
            except (AnswerError, CallError) as error:
                failed.update(dict.fromkeys((one["id"] for one in seen), str(error)))
                return []

        size = self._size or max(len(passages), 2)
        step = self._step if self._size else 1
        ordered = await slide(passages, sort, size=size, step=step)
        if failed:
            self.problems.note(len(failed), next(iter(failed.values())))
        return [(one["id"], -float(rank)) for rank, one in enumerate(ordered, start=1)]

    def _messages(self, question: str, passages: Sequence[CandidatePassage]) -> list[BaseMessage]:
        return fill_listwise(question, passages, max_words=self._max_words)
