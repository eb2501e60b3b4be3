"""How passages are shown to a model, in blocks they cannot close, and its verdicts on them read."""

import json
from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, Any

from pydantic import (
    AliasChoices,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from deepera_graph.chat.parsing import (
    DIRECTION,
    DirectionWord,
    Number,
    ReplyModel,
    UnusableReplyError,
    json_schema,
    remove_spaces,
    sanitize,
    sanitize_line,
    validate_fields,
)
from deepera_graph.schema import AnswerType, EvidenceItem, IntentFields, IntentKind, PassageTask
from deepera_graph.text.questions import name_direction
from deepera_graph.text.words import Sentence

NOT_KNOWN = "(not known: judge by the question alone)"
NONE = "(none)"
OPENING = "====="  # of a passage of a group, before its number
_MANY = 10_000  # sentences: a higher number of one was not counted


def marker(text: str, *beside: str) -> str:
    """Return 8 hex digits for a block's marker line, from a hash of its text.

    They occur neither in the text nor in what stands *beside* the block.
    """
    turn = 0
    while True:
        digest = sha256(f"{turn}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
        if not any(digest in one for one in (text, *beside)):
            return digest
        turn += 1


plain = sanitize  # how a text is shown with its line breaks


def one_line(text: str) -> str:
    """Fold a title or a section into one line."""
    return sanitize_line(text) or NONE


def numbered(sentences: list[Sentence]) -> str:
    """Write every sentence on a line of its own, with its number from 1."""
    return "\n".join(
        f"{number}: {sanitize_line(one.text)}" for number, one in enumerate(sentences, start=1)
    )


def intent_values(fields: IntentFields) -> dict[str, str]:
    """Return the four intent values of a prompt."""
    if not fields["topic"]:
        return dict.fromkeys(fields, NOT_KNOWN)
    return {name: one_line(str(value)) for name, value in fields.items()}


def passage_values(task: PassageTask, passage: str) -> dict[str, str]:
    """Return the values of a prompt about one passage; title and section are data like its text."""
    block = _headed(task, passage)
    beside = {"question": one_line(task["question"]), **intent_values(task["intent"])}
    return {**beside, "marker": marker(block, *beside.values()), "passage": block}


def group_values(tasks: Sequence[PassageTask], passages: Sequence[str]) -> dict[str, str]:
    """Return the values of a prompt about several passages of a question, numbered from 1.

    A passage begins after a line of equals signs and its number. No passage can begin another: its
    lines begin with the number of a sentence, or with the name of a head, and a rule of equals
    signs in it has become one of dashes.
    """
    texts = [_headed(task, text) for task, text in zip(tasks, passages, strict=True)]
    beside = {"question": one_line(tasks[0]["question"]), **intent_values(tasks[0]["intent"])}
    block = "\n".join(f"{OPENING}{number}\n{text}" for number, text in enumerate(texts, start=1))
    return {**beside, "marker": marker(block, *beside.values()), "passages": block}


def wanted_values(task: PassageTask) -> dict[str, str]:
    """Say from which score on a finding, and a summary in it, is wanted."""
    lowest = task.get("summary_from")
    return {
        "finding": _from(FINDING_FROM if lowest is None else min(FINDING_FROM, lowest)),
        "summary": "none is wanted" if lowest is None else _from(lowest),
    }


def _from(lowest: float) -> str:
    """Write a score with two digits, rounded down."""
    near = round(lowest, 2)
    return f"from {near if near <= lowest else near - 0.01:.2g}"


def quoted(text: str, sentences: list[Sentence], numbers: list[int]) -> str:
    """Cut the evidence out of the passage: from the first to the last sentence of its best run.

    Numbers out of range are ignored. Sentences that do not follow each other cannot make one
    verbatim quote, so the first run of neighbours is taken.
    """
    valid = sorted({number for number in numbers if 1 <= number <= len(sentences)})
    if not valid:
        return ""
    last = valid[0]
    for number in valid[1:]:
        if number != last + 1:
            break
        last = number
    return text[sentences[valid[0] - 1].start : sentences[last - 1].end]


def describe_unknown(sentences: list[Sentence], numbers: list[int]) -> str:
    """Say which sentence was named that the passage does not have; empty if it has one of them.

    Numbers below 1 are how some models say that there is none.
    """
    n = len(sentences)
    unknown = [number for number in numbers if number > n]
    if not unknown or any(1 <= number <= n for number in numbers):
        return ""
    shown = str(unknown[0]) if unknown[0] < _MANY else f"above {_MANY}"
    return f"it named sentence {shown} of {n} as evidence"


def evidence_block(items: list[EvidenceItem]) -> str:
    """Write the kept evidence, numbered from 1: the summary if there is one, else the text.

    Before it stands what the judge took it to say to the question, if that is known.
    """
    return "\n\n".join(
        f"[{number}] {_said(item)}{one_line(item['title'])}: {sanitize_line(_best(item))}"
        for number, item in enumerate(items, start=1)
    )


def _said(item: EvidenceItem) -> str:
    direction, position = name_direction(item.get("direction")), item.get("position", "")
    said = f"direction: {direction}" if direction else position and f"position: {position}"
    return f"({said}) " if said else ""


def _headed(task: PassageTask, passage: str) -> str:
    """Put title and section before a passage, as far as it has them."""
    heads = (("Title", task["title"]), ("Section", task["section"]))
    lines = [f"{name}: {one_line(value)}" for name, value in heads if value.strip()]
    return "\n".join([*lines, passage])


def _best(item: EvidenceItem) -> str:
    return item["summary"] or item["text"]


LONGEST_REASON = 40  # characters, about 6 words: a reply is written token by token
FINDING_FROM = 0.5  # what scores less says nothing to the question, by the rules of the prompt
_LOWEST_OF_TOPIC = 0.2
_TOPIC_ONLY = "shares the topic or the terms only"
_UNRELATED = "unrelated, or under other conditions"
_REASON = "Why, in at most 6 words."
_SCORE = "Relevance as evidence, in [0, 1]."
_EVIDENCE = "Numbers of the sentences that carry the evidence."
_SUMMARY = "One or two sentences; empty below the score named."


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
    direction: DirectionWord = Field(default=None, description=DIRECTION)


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


class FindingReply(ReplyModel):
    """What a passage says to the question."""

    evidence: list[Number] = Field(description=_EVIDENCE)
    direction: DirectionWord = Field(default=None, description=DIRECTION)


class FusedFindingReply(FindingReply):
    """What a passage says to the question, with a summary."""

    summary: str = Field(default="", description=_SUMMARY)


def _or_null(kind: type[ReplyModel]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [json_schema(kind), {"type": "null"}]})


_Finding = Annotated[FindingReply | None, _or_null(FindingReply)]
_FusedFinding = Annotated[FusedFindingReply | None, _or_null(FusedFindingReply)]
_NO_FINDING = frozenset({"", "none", "null"})


class _Verdict(ReplyModel):
    """A score with, from `FINDING_FROM` on, a finding; without one it is not usable there."""

    @model_validator(mode="before")
    @classmethod
    def _nest(cls, values: Any) -> Any:
        """Read the form of 0.9 and before, too: the fields of a finding beside its score."""
        if not isinstance(values, dict):
            return values
        given = values.get("finding")
        if isinstance(given, str) and given.strip().lower() in _NO_FINDING:
            given = None
        beside = {name: values[name] for name in FusedFindingReply.model_fields if name in values}
        finding = {**beside, **given} if isinstance(given, dict) else given or beside
        return {**values, "finding": finding or None}

    @field_validator("finding", check_fields=False)
    @classmethod
    def _check_whole(cls, finding: FindingReply | None, info: ValidationInfo) -> object:
        if info.data.get("score", 0) >= FINDING_FROM:
            missing = [
                name
                for name, value in (("reason", info.data.get("reason", "")), ("finding", finding))
                if value is None
            ]
            if missing:
                raise ValueError(f"from a score of {FINDING_FROM} on, {missing[0]} is needed")
        return finding


class VerdictReply(_Verdict):
    """A verdict with a short reason, which comes before the score."""

    reason: str = Field(description=_REASON, json_schema_extra={"maxLength": LONGEST_REASON})
    score: float = Field(ge=0, le=1, strict=True, description=_SCORE)
    finding: _Finding = Field(default=None, validate_default=True)


class FusedReply(VerdictReply):
    """A verdict with a summary in its finding."""

    finding: _FusedFinding = Field(default=None, validate_default=True)


class MemberReply(_Verdict):
    """The verdict on one passage of a group; its reason may be missing where it fails."""

    id: Number = Field(description="The number of the passage.")
    reason: Annotated[
        str | None, WithJsonSchema({"type": "string", "maxLength": LONGEST_REASON})
    ] = Field(default=None, description=_REASON)
    score: float = Field(ge=0, le=1, strict=True, description=_SCORE)
    finding: _Finding = Field(default=None, validate_default=True)


class FusedMemberReply(MemberReply):
    """The verdict on one passage of a group, with a summary in its finding."""

    finding: _FusedFinding = Field(default=None, validate_default=True)


def _short_or_whole(kind: type[MemberReply]) -> WithJsonSchema:
    """Return the schema of a verdict: number and score alone, for what fails, or all fields."""
    whole = json_schema(kind)
    names = ["id", "score"]
    fields = {name: whole["properties"][name] for name in names}
    return WithJsonSchema({"anyOf": [{**whole, "properties": fields, "required": names}, whole]})


class GroupReply(ReplyModel):
    """Verdicts on a group; each is read by itself, so that a bad one spoils no other."""

    verdicts: list[Annotated[Any, _short_or_whole(MemberReply)]] = Field(
        description="One for every passage, in their order."
    )


class FusedGroupReply(GroupReply):
    """Verdicts and summaries on a group; read one by one as well."""

    verdicts: list[Annotated[Any, _short_or_whole(FusedMemberReply)]] = Field(
        description="One for every passage, in their order."
    )


def describe_score(score: float) -> str:
    """Say what a score means that came without a reason, as the prompt has it."""
    return _TOPIC_ONLY if score >= _LOWEST_OF_TOPIC else _UNRELATED


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
