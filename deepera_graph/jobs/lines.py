"""Lines of a question file: a question with its passages, or what is wrong with the line."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

from deepera_graph.errors import InputError
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
    """

    number: int
    end: int
    id: str
    question: str
    passages: list[PassageLike]
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line that cannot be used: its number, its id if that could be read, and why."""

    number: int
    end: int
    id: str | None
    error: str


def read_lines(source: BinaryIO) -> Iterator[QuestionLine | BadLine]:
    """Read one JSON object a line, one line at a time; blank lines are passed over.

    Only a line feed ends a line. An id that an earlier line has is an error; so only the ids are
    remembered, and nothing else of the lines read.
    """
    seen: dict[str, int] = {}
    end = 0
    for number, line in enumerate(source, start=1):
        end += len(line)
        if line.strip():
            yield _read(line.removeprefix(_BOM) if number == 1 else line, number, end, seen)


def _read(line: bytes, number: int, end: int, seen: dict[str, int]) -> QuestionLine | BadLine:
    name: str | None = None
    try:
        fields = _object(line)
        name = _id(fields.pop("id", None), number)
        earlier = seen.setdefault(name, number)
        if earlier != number:
            raise InputError(f"id {name!r} is used twice, first in line {earlier}")
        return QuestionLine(
            number=number,
            end=end,
            id=name,
            question=_question(fields),
            passages=_passages(fields),
            metadata=_metadata(fields),
        )
    except InputError as error:
        return BadLine(number=number, end=end, id=name, error=str(error))


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
