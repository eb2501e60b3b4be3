"""Whether a passage answers a question as its golden answer does, by those who read for meaning.

The local judge reads questions that yes or no answers, and names the direction of what it finds;
the chat model that writes the passages checks each of them against the answer, if the plan says so.
"""

from functools import cached_property

from deepera_graph.judges.llm import prompt as show
from deepera_graph.lab.build.plan import PACKAGE, BuilderModel, FilledCheck
from deepera_graph.prompts import messages_of
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.schema import Direction
from deepera_graph.text.questions import asks_yes_or_no
from deepera_graph.text.words import words

VERIFY_STEP = "verify"
_NO: tuple[Direction, ...] = ("contradicts", "no_difference")
_TOLD: dict[str, tuple[Direction, ...]] = {
    "yes": ("supports",),
    "true": ("supports",),
    "no": _NO,
    "false": _NO,
}
_CLEAR: tuple[Direction, ...] = ("supports", "contradicts", "no_difference", "mixed")


class EvidenceCheck:
    """Asks the local judge, which is loaded once it is needed."""

    @cached_property
    def _judge(self) -> EvidenceReranker:
        return EvidenceReranker("local", threshold=0.0, content="passage", top_n=2)

    async def entails(
        self, text: str, *, question: str, answer: str, golden: str, max_evidence: float
    ) -> bool:
        """Tell whether a passage is evidence for the answer of a question of yes or no.

        It is if its score is *max_evidence*, in [0, 1], or more, and its direction is none other
        than the answer's: that of yes or no, else that of the golden passage. Other questions are
        not judged, as a direction says nothing there.
        """
        if max_evidence >= 1 or not asks_yes_or_no(question):
            return False
        result = await self._judge.arerank(question, [text, golden])
        own, gold = sorted(result.passages, key=lambda one: one.id)
        if own.score is None or own.score < max_evidence:
            return False
        told = _TOLD.get(" ".join(words(answer)), (gold.direction,))
        return own.direction not in _CLEAR or own.direction in told or told[0] not in _CLEAR


async def verify(model: BuilderModel, text: str, *, question: str, answer: str) -> bool:
    """Tell whether the chat model finds nothing of the answer in a passage.

    Raises:
        AnswerError: Its reply cannot be used.
        CallError: It cannot be asked.
    """
    messages = messages_of(
        PACKAGE,
        VERIFY_STEP,
        question=show.one_line(question),
        answer=show.one_line(answer),
        passage=show.plain(text),
        marker=show.marker(text),
    )
    found = await model.ask(VERIFY_STEP, messages, FilledCheck)
    return found.relation in ("differs", "silent")
