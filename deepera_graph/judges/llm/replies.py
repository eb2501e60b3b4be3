"""The verdicts of one reply on several passages, read one by one."""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from deepera_graph.chat.parsing import UnusableReplyError, remove_spaces, validate_fields
from deepera_graph.chat.schema import Number, ReplyModel, json_schema

LONGEST_REASON = 40  # characters, about 6 words: a reply is written token by token
_SCORE = "Relevance as evidence, in [0, 1]."
_EVIDENCE = "Numbers of the sentences that carry the evidence."
_SUMMARY = "One or two sentences; empty below the score named."


class VerdictReply(ReplyModel):
    """A verdict with a short reason, which comes before the score."""

    reason: str = Field(
        description="Why, in at most 6 words.", json_schema_extra={"maxLength": LONGEST_REASON}
    )
    evidence: list[Number] = Field(description=_EVIDENCE)
    score: float = Field(ge=0, le=1, strict=True, description=_SCORE)


class FusedReply(VerdictReply):
    """A verdict and, after its score, a summary."""

    summary: str = Field(default="", description=_SUMMARY)


class MemberReply(ReplyModel):
    """The verdict on one passage of a group."""

    id: Number = Field(description="The number of the passage.")
    reason: str = Field(
        description="Why, in at most 6 words.", json_schema_extra={"maxLength": LONGEST_REASON}
    )
    evidence: list[Number] = Field(description=_EVIDENCE)
    score: float = Field(ge=0, le=1, strict=True, description=_SCORE)


class FusedMemberReply(MemberReply):
    """The verdict on one passage of a group, with its summary."""

    summary: str = Field(default="", description=_SUMMARY)


class GroupReply(ReplyModel):
    """Verdicts on a group; each is read by itself, so that a bad one spoils no other."""

    verdicts: list[Annotated[Any, WithJsonSchema(json_schema(MemberReply))]] = Field(
        description="One for every passage, in their order."
    )


class FusedGroupReply(GroupReply):
    """Verdicts and summaries on a group; read one by one as well."""

    verdicts: list[Annotated[Any, WithJsonSchema(json_schema(FusedMemberReply))]] = Field(
        description="One for every passage, in their order."
    )


_NO_VERDICT = "the reply on {n} passages has no verdict on this one"
_TWICE = "the reply on {n} passages has two verdicts on this one that differ"
_QUOTED = "the reply on {n} passages repeats a verdict that it was shown"
_FROM_ZERO = "the reply on {n} passages counts them from 0"


def read_verdicts(
    said: Sequence[Any], n: int, kind: type[MemberReply], shown: str
) -> list[MemberReply | str]:
    """Return the verdict on each of *n* passages, or what is wrong with it.

    A verdict counts if it names its passage, follows the schema, is not contradicted by another
    one, and is not a quote of what was shown. One that names no passage of the group is left out;
    but if passages are counted from 0, none can be told, and all are refused.

    Args:
        said: What the reply lists.
        n: How many passages were shown, numbered from 1.
        kind: What a verdict is read as.
        shown: What the model was shown.
    """
    by_id: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for one in said:
        if isinstance(one, dict):
            by_id[_number(one.get("id"))].append(one)
    if 0 in by_id:
        return [_FROM_ZERO.format(n=n)] * n
    known = remove_spaces(shown)
    return [_read(by_id[number], n, kind, known) for number in range(1, n + 1)]


def _read(
    found: list[dict[str, Any]], n: int, kind: type[MemberReply], known: str
) -> MemberReply | str:
    if not found:
        return _NO_VERDICT.format(n=n)
    if any(one != found[0] for one in found):
        return _TWICE.format(n=n)
    if remove_spaces(json.dumps(found[0], ensure_ascii=False)) in known:
        return _QUOTED.format(n=n)
    try:
        return validate_fields(found[0], kind)
    except UnusableReplyError as error:
        return str(error)


def _number(value: object) -> int:
    """Read the number of a passage; -1 if it is none."""
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value[:9])
    return value if isinstance(value, int) and not isinstance(value, bool) else -1
