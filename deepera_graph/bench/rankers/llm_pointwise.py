"""A plain LLM judge: one call a passage, a score from 0 to 1, nothing else.

It differs from DeepEra in what DeepEra adds: no intent, no rubric of evidence, no quote to be
checked. Both ask in the same way and are given the same passage, title and section.
"""

from pydantic import Field

from deepera_graph.backends.llm.answers import Filled
from deepera_graph.bench.chat import Chat
from deepera_graph.bench.rankers.per_passage import PerPassage


class FilledRating(Filled):
    """A rating; the reason comes first, so that the score follows from it."""

    reason: str = Field(description="Why, in one sentence.")
    score: float = Field(ge=0, le=1, strict=True, description="Relevance, in [0, 1].")


def llm_pointwise(chat: Chat, *, name: str = "") -> PerPassage[FilledRating]:
    """Return the ranker; its name is made from the model's when empty."""
    return PerPassage(
        chat,
        name=name or f"LLM pointwise {chat.name}",
        node="pointwise",
        kind=FilledRating,
        score=lambda rating: rating.score,
    )
