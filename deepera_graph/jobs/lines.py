"""Lines of a question file: a question with its passages, or what is wrong with the line."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, BinaryIO, NoReturn

from deepera_graph.errors import InputError
from deepera_graph.jobs.facts import Facts
from deepera_graph.passages import PassageLike

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
