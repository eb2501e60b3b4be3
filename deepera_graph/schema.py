"""What the roles fill in: an intent, a survey, a judgement, a summary, an answer."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.errors import BudgetError, CallError, RoleError
from deepera_graph.usage import Usage

IntentKind = Literal[
    "definition", "mechanism", "comparison", "causal inference", "functional role", "other"
]
AnswerType = Literal["numeric", "categorical", "procedural", "descriptive", "other"]


class RoleAnswer(BaseModel):
    """Base of what a role gives back."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    usage: Usage | None = Field(
        default=None,
        exclude=True,
        description="What the answer cost; None counts as one call of unknown size.",
    )
    repaired: bool = Field(
        default=False, exclude=True, description="The first reply was unusable and asked again."
    )
    problem: str = Field(
        default="", exclude=True, description="What was wrong with the first reply, if repaired."
    )


class Intent(RoleAnswer):
    """What a question asks for (DeepEra, section 3.2)."""

    topic: str = Field(description="The scientific domain, e.g. 'molecular biology'.")
    entity_type: str = Field(
        description="The central entities as 'kind: name', in the question's own words."
    )
    intent: IntentKind = Field(description="What kind of relation the question asks about.")
    expected_answer_type: AnswerType = Field(description="What form the answer has.")


class Survey(RoleAnswer):
    """What the passages of one question show when they are seen together."""

    notes: list[dict[str, Annotated[float, Field(strict=True)]]] = Field(
        description="Finite numbers by name, one set a passage, in the order given."
    )


class Judgement(RoleAnswer):
    """How far one passage gives direct evidence for one question."""

    score: float = Field(ge=0, le=1, strict=True, description="Relevance as evidence, in [0, 1].")
    reason: str = Field(default="", description="Why, in a few words.")
    quote: str = Field(default="", description="The evidence, in the passage's own words.")
    summary: str = Field(
        default="", description="A summary given along with the score; empty if there is none."
    )


class Unjudged(RoleAnswer):
    """Why one passage of a group has no judgement."""

    cause: str = Field(description="What went wrong.")
    is_skipped: bool = Field(default=False, description="It was not asked: the budget is spent.")
    unusable: bool = Field(default=False, description="No passage can succeed; see `CallError`.")

    @classmethod
    def of(cls, error: RoleError) -> Self:
        """Write an error down, with what it cost."""
        return cls(
            cause=str(error),
            is_skipped=isinstance(error, BudgetError),
            unusable=isinstance(error, CallError) and error.unusable,
            usage=error.usage,
        )


class GroupJudgement(RoleAnswer):
    """Verdicts on passages that were judged in one call; `usage` is what they cost together."""

    verdicts: list[Judgement | Unjudged] = Field(
        description="One a passage, in the order given; their `usage` adds up to that of all."
    )


class Summary(RoleAnswer):
    """One or two sentences that keep the passage's own terms."""

    text: str = Field(description="The summary; empty when the passage answers nothing.")


class Answer(RoleAnswer):
    """An answer drawn from kept evidence."""

    text: str = Field(description="The answer; evidence is cited as [1], [2], ...")
    citations: list[int] = Field(description="Numbers of the evidence used, each >= 1.")


def told_with(words: str, answer: RoleAnswer) -> str:
    """Return some words about an answer; with why it was asked for twice, if it was."""
    again = f"asked twice, as {answer.problem}" if answer.problem else ""
    return "; ".join(filter(None, (words, again)))
