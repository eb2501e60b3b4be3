"""What a chat model replies with; becomes the JSON schema that it is shown."""

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from deepera_graph.schema import AnswerType, IntentKind

_NOT_SHOWN = frozenset({"title", "default"})
_DIGITS = re.compile(r"-?[0-9]{1,9}")


def _check_whole(value: object) -> object:
    """Take a number, or one written as text; true is none."""
    if isinstance(value, bool) or (isinstance(value, str) and not _DIGITS.fullmatch(value.strip())):
        raise ValueError("this is not a whole number")
    return value


Number = Annotated[int, BeforeValidator(_check_whole)]


class ReplyModel(BaseModel):
    """Base of what a model replies with."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class IntentReply(ReplyModel):
    """What a question asks for.

    Its names are short in the reply, for which all judging waits; the long ones are read, too.
    """

    topic: str = Field(description="The scientific domain.")
    entity_type: str = Field(
        validation_alias=AliasChoices("entities", "entity_type"),
        description="The central entities as 'kind: name', '; ' between them.",
    )
    intent: IntentKind = Field(description="What kind of relation is asked about.")
    expected_answer_type: AnswerType = Field(
        validation_alias=AliasChoices("form", "expected_answer_type"),
        description="What form the answer has.",
    )


class JudgementReply(ReplyModel):
    """A verdict; the reason comes first, so that the score follows from it."""

    reason: str = Field(description="Why, in at most 25 words.")
    evidence: list[Number] = Field(description="Numbers of the sentences that carry the evidence.")
    score: float = Field(ge=0, le=1, strict=True, description="Relevance as evidence, in [0, 1].")


class SummaryReply(ReplyModel):
    """A summary."""

    text: str = Field(description="One or two sentences, or empty if nothing answers the question.")


class AnswerReply(ReplyModel):
    """An answer."""

    text: str = Field(description="The answer, with its evidence as [1], [2], ...")
    citations: list[Number] = Field(description="Numbers of the evidence cited.")

    @field_validator("text")
    @classmethod
    def _check_not_blank(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("an answer must not be empty")
        return text


@lru_cache(maxsize=64)
def json_schema(kind: type[ReplyModel], *, bounded: bool = True) -> dict[str, Any]:
    """Return the JSON schema of a reply, every field required, in the order of the class.

    It is made once and shared: do not change it. *bounded*: whether the lengths of texts are
    bounded, where the class says how.
    """
    schema = kind.model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        _make_strict(part)
    return schema if bounded else _without_bounds(schema)


@lru_cache(maxsize=64)
def field_names(kind: type[ReplyModel]) -> frozenset[str]:
    """Return the names by which the fields of an answer are known: our own, and those shown."""
    return frozenset(kind.model_fields) | frozenset(json_schema(kind)["properties"])


def schemas_hash(kinds: Iterable[type[ReplyModel]]) -> str:
    """Return 12 hex digits that change when the schema of any of these answers changes."""
    schemas = [[kind.__name__, json_schema(kind)] for kind in kinds]
    return sha256(json.dumps(schemas).encode()).hexdigest()[:12]


def _without_bounds(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _without_bounds(one) for name, one in part.items() if name != "maxLength"}
    return [_without_bounds(one) for one in part] if isinstance(part, list) else part


def _make_strict(schema: dict[str, Any]) -> None:
    """Forbid other fields than those of an object, and leave out what only people read."""
    for unwanted in ("title", "description"):
        schema.pop(unwanted, None)
    if "properties" in schema:
        schema["additionalProperties"] = False
        schema["required"] = list(schema["properties"])
        schema["properties"] = {
            name: {key: value for key, value in field.items() if key not in _NOT_SHOWN}
            for name, field in schema["properties"].items()
        }
