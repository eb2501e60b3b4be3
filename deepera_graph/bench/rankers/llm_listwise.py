"""A chat model sorts passages by comparing them: all at once, or in sliding windows (RankGPT).

Source:
    Sun et al. (2023), Is ChatGPT Good at Search?, sliding windows of 20 passages, step 10,
    passages cut after 300 words (their code). The wording is ours, and the order is asked for as a
    list of numbers rather than as text.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from deepera_graph.backends.llm import show
from deepera_graph.backends.llm.answers import Filled, Number, json_schema
from deepera_graph.bench.chat import Chat, together
from deepera_graph.bench.prompts import messages
from deepera_graph.bench.rankers.chat_ranker import EXAMPLE, ChatRanker
from deepera_graph.bench.rankers.ranker import Job, Passage, Ranking
from deepera_graph.bench.rankers.shown import one_line
from deepera_graph.bench.rankers.windows import SIZE, STEP, slide
from deepera_graph.errors import AnswerError, CallError, SettingsError

MAX_WORDS = 300


class FilledOrder(Filled):
    """An order."""

    order: list[Number] = Field(description="Numbers of all passages, the most relevant first.")


class ListwiseLlm(ChatRanker):
    """Ranks by the orders that a chat model gives.

    A window whose call fails stays as it is, and its passages are counted as failed.

    Args:
        chat: The model.
        size: Passages in a window, >= 2; None shows all of them at once.
        step: How far a window moves, from 1 to *size* - 1.
        max_words: Words of a passage that are shown, >= 1.
        name: What the table calls it; made from the model's when empty.

    Raises:
        SettingsError: A number is out of range.
    """

    def __init__(
        self,
        chat: Chat,
        *,
        size: int | None = SIZE,
        step: int = STEP,
        max_words: int = MAX_WORDS,
        name: str = "",
    ) -> None:
        if size is not None and not 1 <= step < size:
            raise SettingsError(f"step must be from 1 to size - 1 = {size - 1}, got {step}")
        if max_words < 1:
            raise SettingsError(f"max_words must be >= 1, got {max_words}")
        kind = "LLM listwise" if size is None else "RankGPT"
        super().__init__(chat, name or f"{kind} {chat.name}")
        self._size, self._step, self._max_words = size, step, max_words

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """It depends on the model, the prompt, the form of the answer and the windows."""
        if self._chat.fingerprint is None:
            return None
        return {
            "kind": "llm listwise",
            "model": self._chat.fingerprint,
            "prompt": [one.content for one in self._messages("$question", [EXAMPLE])],
            "answer": json_schema(FilledOrder),
            "windows": [self._size, self._step, self._max_words],
        }

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Do what `rank` does for many questions at once; the windows of one follow each other."""
        return together(self._rank(question, passages) for question, passages in jobs)

    async def _rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        failed: dict[str, str] = {}

        async def sort(seen: Sequence[Passage]) -> list[int]:
            try:
                asked = self._messages(question, seen)
                return (await self._chat.ask("listwise", asked, FilledOrder)).order
            except (AnswerError, CallError) as error:
                failed.update(dict.fromkeys((one["id"] for one in seen), str(error)))
                return []

        size = self._size or max(len(passages), 2)
        step = self._step if self._size else 1
        ordered = await slide(passages, sort, size=size, step=step)
        if failed:
            self.problems.note(len(failed), next(iter(failed.values())))
        return [(one["id"], -float(rank)) for rank, one in enumerate(ordered, start=1)]

    def _messages(self, question: str, passages: Sequence[Passage]) -> list[Any]:
        block = "\n\n".join(
            f"[{number}] {one_line(one, max_words=self._max_words)}"
            for number, one in enumerate(passages, start=1)
        )
        return list(
            messages(
                "listwise",
                question=show.one_line(question),
                marker=show.marker(block),
                passages=block,
                n=str(len(passages)),
            )
        )
