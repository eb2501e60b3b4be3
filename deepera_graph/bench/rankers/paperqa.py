"""Score and summary in one call a passage, as paper-qa gathers evidence.

Source:
    Skarlinski et al. (2024), Language agents achieve superhuman synthesis of scientific knowledge,
    step "ranking and contextual summarization": each excerpt is summarized for the question and
    rated from 0 to 10 in the same call, and the ratings rank the excerpts. The wording is ours;
    what becomes of the summaries is not measured here.
"""

from pydantic import Field

from deepera_graph.backends.llm.answers import Filled, Number
from deepera_graph.bench.chat import Chat
from deepera_graph.bench.rankers.per_passage import PerPassage


class FilledExcerpt(Filled):
    """A contextual summary and its rating."""

    summary: str = Field(description="What the excerpt contributes, at most 100 words, or empty.")
    relevance_score: Number = Field(ge=0, le=10, description="A whole number from 0 to 10.")


def paperqa(chat: Chat, *, name: str = "") -> PerPassage[FilledExcerpt]:
    """Return the ranker; its name is made from the model's when empty."""
    return PerPassage(
        chat,
        name=name or f"paper-qa style {chat.name}",
        node="gather",
        kind=FilledExcerpt,
        score=lambda excerpt: float(excerpt.relevance_score),
    )
