"""What was dropped on the way, and why; nothing is lost without a line here."""

from collections import Counter
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field


class Loss(BaseModel):
    """A document or a question that went no further."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str = Field(description="Where it was dropped, e.g. 'documents' or 'lmqg'.")
    document: str = Field(description="Id of the document.")
    reason: str = Field(description="A short, stable name.")
    detail: str = Field(default="", description="What exactly was wrong.")


class Rejected(BaseModel):
    """A distractor that did not pass the gates."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str = Field(description="Id of the question.")
    slot: int = Field(ge=1, description="Which of its distractors.")
    attempt: int = Field(ge=1, description="Which try at it.")
    type: str = Field(description="What kind it was meant to be.")
    reasons: tuple[str, ...] = Field(description="Gates it failed, or why there is no text.")
    text: str = Field(default="", description="What was written.")


def counted(losses: Sequence[Loss]) -> dict[str, dict[str, int]]:
    """Return how many were dropped, by stage and reason, both in order of the alphabet."""
    stages = sorted({loss.stage for loss in losses})
    return {
        stage: dict(sorted(Counter(one.reason for one in losses if one.stage == stage).items()))
        for stage in stages
    }
