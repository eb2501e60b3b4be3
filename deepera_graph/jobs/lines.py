"""Lines of a question file: a question with its passages, or what is wrong with the line."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, BinaryIO, NoReturn, TypedDict

from deepera_graph.errors import InputError
from deepera_graph.passages import PassageLike
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.text.terms import missing_terms
from deepera_graph.usage import UsageRecord


class SummarySigns(TypedDict):
    """What the summaries of one question show.

    Attributes:
        statuses: How many have each status.
        terms: ``numbers`` and ``names`` in those handed out.
        retained: Those of `terms` that the passage has too.
    """

    statuses: dict[str, int]
    terms: dict[str, int]
    retained: dict[str, int]


class Signs(TypedDict):
    """What one question shows.

    Attributes:
        n_passages: How many were ranked.
        subject: What it belongs to, if that is known.
        intent: Status of its intent.
        scores: Of the passages judged, in rank order, each in [0, 1].
        threshold: The lowest score kept, as applied.
        n_kept: Passages that passed the filter, without those that `on_empty` filled in.
        summaries: What its summaries show.
    """

    n_passages: int
    subject: str | None
    intent: str
    scores: list[float]
    threshold: float
    n_kept: int
    summaries: SummarySigns


def signs_of(result: RerankResult, subject: str | None) -> Signs:
    """Return what a question shows, and the subject it belongs to if that is known."""
    signs: Signs = {
        "n_passages": len(result.all_passages),
        "subject": subject,
        "intent": result.intent["status"],
        "scores": [one.score for one in result.passages if one.score is not None],
        "threshold": result.threshold,
        "n_kept": 0 if result.fallback else len(result.kept),
        "summaries": _summaries(result),
    }
    return signs


def _summaries(result: RerankResult) -> SummarySigns:
    statuses, terms, retained = Counter[str](), Counter[str](), Counter[str]()
    for passage in result.passages:
        if not passage.summary_status:
            continue
        statuses[passage.summary_status] += 1
        if passage.summary_status not in {"failed", "skipped_budget"}:
            _count_terms(passage, terms, retained)
    return {"statuses": dict(statuses), "terms": dict(terms), "retained": dict(retained)}


def _count_terms(passage: RankedPassage, terms: Counter[str], retained: Counter[str]) -> None:
    title = str(passage.metadata.get("title") or "")
    missing = set(missing_terms(passage.summary, f"{passage.text} {title}"))
    for term in missing_terms(passage.summary, ""):
        kind = "numbers" if any(letter.isdigit() for letter in term) else "names"
        terms[kind] += 1
        retained[kind] += term not in missing


class Facts(TypedDict):
    """What is counted of a question whose line was written.

    Attributes:
        outcome: As in `RerankResult`.
        passages: How many came in.
        kept: How many of them were kept.
        statuses: How many have each status.
        causes: Why passages could not be judged, and how many for each reason.
        usage: Calls and tokens a stage.
        seconds: Wall time a stage.
        signs: What the question shows of failure.
    """

    outcome: str
    passages: int
    kept: int
    statuses: dict[str, int]
    causes: dict[str, int]
    usage: dict[str, UsageRecord]
    seconds: dict[str, float]
    signs: Signs


def facts_of(result: RerankResult, subject: str | None) -> Facts:
    """Return what is counted of a question, and the subject it belongs to if that is known."""
    return {
        "outcome": result.outcome,
        "passages": len(result.all_passages),
        "kept": len(result.kept),
        "statuses": dict(Counter(passage.status for passage in result.all_passages)),
        "causes": dict(Counter(passage.reason for passage in result.failed)),
        "usage": {stage: used.record() for stage, used in result.usage.items()},
        "seconds": dict(result.seconds),
        "signs": signs_of(result, subject),
    }


_BOM = b"\xef\xbb\xbf"
_PASSAGE_FIELDS = ("passages", "contexts")
_SCORE_FIELDS = ("score", "first_stage_score")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionLine:
    """One question of a file.

    Attributes:
        number: Of the line in the file, from 1.
        end: Bytes of the file up to the end of this line.
        id: As given; the line's number when the line has none.
        question: What is asked.
        passages: The candidates, in first-stage order.
        metadata: Every other field of the line.
        digest: SHA-256 of the line without the white space around it, in hexadecimal.
    """

    number: int
    end: int
    id: str
    question: str
    passages: list[PassageLike]
    metadata: dict[str, Any]
    digest: str = field(default="", compare=False, repr=False)

    @property
    def subject(self) -> str | None:
        """What the question belongs to, if its metadata say so."""
        subject = self.metadata.get("subject")
        return subject if isinstance(subject, str) and subject else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line that cannot be used: its number, its id if that could be read, and why."""

    number: int
    end: int
    id: str | None
    error: str
    digest: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneLine:
    """A line that an earlier run is done with.

    Attributes:
        number: Of the line in the file, from 1.
        end: Bytes of the file up to the end of this line.
        id: As read then; None if that could not be read.
        facts: What the report counts of a question; None for a bad line.
        error: What is wrong with a bad line; empty for a question.
    """

    number: int
    end: int
    id: str | None
    facts: Facts | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class RawLine:
    """A line as it stands in the file, not blank."""

    number: int
    end: int
    text: bytes

    @property
    def digest(self) -> str:
        """Hash of the line without the white space around it."""
        return sha256(self.text.strip()).hexdigest()


Lookup = Callable[[RawLine], DoneLine | None]


def read_lines(source: BinaryIO) -> Iterator[QuestionLine | BadLine]:
    """Read one JSON object a line, one line at a time; blank lines are passed over.

    Only a line feed ends a line. An id that an earlier line has is an error; so only the ids are
    remembered, and nothing else of the lines read.
    """
    seen: dict[str, int] = {}
    for line in _raw_lines(source):
        yield _read(line, seen)


def read_rest(source: BinaryIO, done: Lookup) -> Iterator[QuestionLine | BadLine | DoneLine]:
    """Do what `read_lines` does, but leave those lines unread that *done* knows."""
    seen: dict[str, int] = {}
    for line in _raw_lines(source):
        found = done(line)
        if found is not None and found.id is not None:
            seen.setdefault(found.id, found.number)
        yield found or _read(line, seen)


def _raw_lines(source: BinaryIO) -> Iterator[RawLine]:
    end = 0
    for number, line in enumerate(source, start=1):
        end += len(line)
        if line.strip():
            yield RawLine(number, end, line.removeprefix(_BOM) if number == 1 else line)


def _read(line: RawLine, seen: dict[str, int]) -> QuestionLine | BadLine:
    name: str | None = None
    try:
        fields = _object(line.text)
        name = _id(fields.pop("id", None), line.number)
        earlier = seen.setdefault(name, line.number)
        if earlier != line.number:
            raise InputError(f"id {name!r} is used twice, first in line {earlier}")
        return QuestionLine(
            number=line.number,
            end=line.end,
            id=name,
            question=_question(fields),
            passages=_passages(fields),
            metadata=_metadata(fields),
            digest=line.digest,
        )
    except InputError as error:
        return BadLine(
            number=line.number, end=line.end, id=name, error=str(error), digest=line.digest
        )


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line.decode(), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8: {error.reason} at byte {error.start + 1}") from error
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} at column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"must be a JSON object, got {value!r:.80}")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _id(value: object, number: int) -> str:
    if value is None:
        return str(number)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise InputError(f"id must be a string, got {value!r:.80}")
    return str(value)


def _question(fields: dict[str, Any]) -> str:
    question = fields.pop("question", None)
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"question must be a text, not blank, got {question!r:.80}")
    return question


def _passages(fields: dict[str, Any]) -> list[PassageLike]:
    name = next((name for name in _PASSAGE_FIELDS if name in fields), None)
    if name is None:
        raise InputError(f"has no passages, only {', '.join(fields) or 'a question'}")
    items = fields.pop(name)
    if not isinstance(items, list):
        raise InputError(f"{name} must be a list, got {items!r:.80}")
    return [_with_score(item) for item in items]


def _with_score(item: Any) -> Any:
    """Give a passage the first score it has; what else is wrong with it, the reranker says."""
    if not isinstance(item, Mapping):
        return item
    scores = [item[name] for name in _SCORE_FIELDS if item.get(name) is not None]
    others = {name: value for name, value in item.items() if name not in _SCORE_FIELDS}
    return {**others, "score": scores[0]} if scores else others


def _metadata(fields: dict[str, Any]) -> dict[str, Any]:
    metadata = fields.pop("metadata", None)
    if not isinstance(metadata, Mapping | None):
        raise InputError(f"metadata must be an object, got {metadata!r:.80}")
    return {**fields, **(metadata or {})}
