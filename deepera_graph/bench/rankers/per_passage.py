"""One call a passage: a chat model rates each by itself, and the ratings make the order."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from deepera_graph.backends.llm import show
from deepera_graph.backends.llm.answers import Filled, json_schema
from deepera_graph.bench.chat import Chat, together
from deepera_graph.bench.prompts import messages
from deepera_graph.bench.rankers.chat_ranker import EXAMPLE, ChatRanker
from deepera_graph.bench.rankers.ranker import (
    Job,
    Passage,
    Ranking,
    by_score,
)
from deepera_graph.bench.rankers.shown import one_block
from deepera_graph.errors import AnswerError, CallError

FilledT = TypeVar("FilledT", bound=Filled)
FAILED = -1.0


class PerPassage(ChatRanker, Generic[FilledT]):
    """Ranks by what a chat model says of each passage; ties stay in first-stage order.

    A passage that cannot be rated ranks last, with the score -1, and is counted.

    Args:
        chat: The model.
        name: What the table calls it.
        node: The prompt, in `deepera_graph.bench.prompts`.
        kind: What the model fills in.
        score: Reads the score, >= 0, from that.
    """

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

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """It depends on the model, the prompt and the form of the answer."""
        if self._chat.fingerprint is None:
            return None
        return {
            "kind": f"llm {self._node}",
            "model": self._chat.fingerprint,
            "prompt": [one.content for one in self._messages("$question", EXAMPLE)],
            "answer": json_schema(self._kind),
        }

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Do what `rank` does for many questions at once."""
        asked = [self._rate(question, one) for question, passages in jobs for one in passages]
        ratings = iter(together(asked))
        return [by_score(passages, [next(ratings) for _ in passages]) for _, passages in jobs]

    async def _rate(self, question: str, passage: Passage) -> float:
        try:
            filled = await self._chat.ask(self._node, self._messages(question, passage), self._kind)
        except (AnswerError, CallError) as error:
            self.problems.note(1, str(error))
            return FAILED
        return self._score(filled)

    def _messages(self, question: str, passage: Passage) -> list[Any]:
        block = one_block(passage)
        return list(
            messages(
                self._node,
                question=show.one_line(question),
                marker=show.marker(block),
                passage=block,
            )
        )
