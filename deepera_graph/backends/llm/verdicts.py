"""What a language model fills in when one call does the work of several."""

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from deepera_graph.backends.llm.answers import Filled, Number, json_schema

LONGEST_REASON = 40  # characters, about 6 words: a reply is written token by token
_SCORE = "Relevance as evidence, in [0, 1]."
_EVIDENCE = "Numbers of the sentences that carry the evidence."
_SUMMARY = "One or two sentences; empty below the score named."


class FilledVerdict(Filled):
    """A verdict with a short reason, which comes before the score."""

    reason: str = Field(
        description="Why, in at most 6 words.", json_schema_extra={"maxLength": LONGEST_REASON}
    )
    evidence: list[Number] = Field(description=_EVIDENCE)
    score: float = Field(ge=0, le=1, strict=True, description=_SCORE)


class FilledFused(FilledVerdict):
    """A verdict and, after its score, a summary."""

    summary: str = Field(default="", description=_SUMMARY)


class FilledMember(Filled):
    """The verdict on one passage of a group."""

    id: Number = Field(description="The number of the passage.")
    reason: str = Field(
        description="Why, in at most 6 words.", json_schema_extra={"maxLength": LONGEST_REASON}
    )
    evidence: list[Number] = Field(description=_EVIDENCE)
    score: float = Field(ge=0, le=1, strict=True, description=_SCORE)


class FilledFusedMember(FilledMember):
    """The verdict on one passage of a group, with its summary."""

    summary: str = Field(default="", description=_SUMMARY)


class FilledGroup(Filled):
    """Verdicts on a group; each is read by itself, so that a bad one spoils no other."""

    verdicts: list[Annotated[Any, WithJsonSchema(json_schema(FilledMember))]] = Field(
        description="One for every passage, in their order."
    )


class FilledFusedGroup(FilledGroup):
    """Verdicts and summaries on a group; read one by one as well."""

    verdicts: list[Annotated[Any, WithJsonSchema(json_schema(FilledFusedMember))]] = Field(
        description="One for every passage, in their order."
    )
