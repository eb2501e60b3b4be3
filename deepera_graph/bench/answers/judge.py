"""The judge behind LFS: a chat model that compares an answer with the reference answer.

Source:
    DeepEra, section on metrics: a separate model judges factual correctness, logical consistency
    and contextual adequacy, in one number. Neither the prompt nor the scale is printed; 1 to 5 is
    the scale that fits the numbers they report, and it can be changed.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import Field, create_model

from deepera_graph.backends.llm import show
from deepera_graph.backends.llm.answers import Filled, Number
from deepera_graph.bench.chat import Chat, together
from deepera_graph.bench.prompts import messages
from deepera_graph.errors import AnswerError, CallError, SettingsError

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

    Args:
        chat: The model; not the one that wrote the answers.
        low: Lowest score.
        high: Highest score, > *low*.

    Raises:
        SettingsError: The scale is empty.
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
        """Return a verdict on each answer, in the same order.

        Raises:
            BackendError: No call can succeed.
            BudgetError: The budget is spent.
        """
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
def _filled(low: int, high: int) -> type[Filled]:
    """Return what the judge fills in, with its scale in the schema; one class a scale."""
    reason: Any = (str, Field(description="Why, in one or two sentences."))
    score: Any = (Number, Field(ge=low, le=high, description=f"From {low} to {high}."))
    return create_model("FilledVerdict", __base__=Filled, reason=reason, score=score)
