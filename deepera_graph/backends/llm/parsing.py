"""Reading one JSON object out of whatever a model wrote around it.

What is repaired is only form: thinking, fences, prose, trailing commas, Python literals. A value is
taken as it stands; a number out of range or on another scale is an error, never rescaled.
"""

import ast
import json
import re
from typing import Any, TypeVar

from pydantic import ValidationError

from deepera_graph.backends.llm.answers import Filled
from deepera_graph.errors import AnswerError

FilledT = TypeVar("FilledT", bound=Filled)
_THINKING = re.compile(r"<(think(?:ing)?|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_DECIMAL = re.compile(r"(?:0(?:\.\d+)?|1(?:\.0+)?|\.\d+)")
_BRACE_OR_STRING = re.compile(r'"(?:\\.|[^"\\])*"|[{}]', re.DOTALL)
_SHOWN = 120


class EmptyAnswerError(AnswerError):
    """The reply held nothing at all, or an empty object."""


def parse(text: str, kind: type[FilledT]) -> FilledT:
    """Read an answer of one kind.

    Raises:
        EmptyAnswerError: There is nothing, or an object without fields.
        AnswerError: There is no object, there are several that differ, or it breaks the schema.
    """
    spoken = _THOUGHT.sub("", _THINKING.sub("", text)).strip()
    if not spoken:
        raise EmptyAnswerError("the reply is empty")
    found = _objects(spoken)
    if not found:
        raise AnswerError(f"the reply holds no complete JSON object: {spoken[:_SHOWN]!r}")
    fitting = [one for one in found if kind.model_fields.keys() & one.keys()] or found
    if any(one != fitting[0] for one in fitting[1:]):
        raise AnswerError(f"the reply holds {len(fitting)} JSON objects that differ")
    if not fitting[0]:
        raise EmptyAnswerError("the reply is an empty object")
    return _validated(fitting[0], kind)


def _validated(values: dict[str, Any], kind: type[FilledT]) -> FilledT:
    plain = {name: _number(value) if name == "score" else value for name, value in values.items()}
    try:
        return kind.model_validate(plain)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'answer'}: {one['msg']}, got {one['input']!r:.60}"
            for one in error.errors()
        )
        raise AnswerError(f"the reply breaks the schema: {problems}") from error


def _number(value: object) -> object:
    """Take a plain decimal in [0, 1] that was written as text; leave all else to the schema."""
    if isinstance(value, str) and _DECIMAL.fullmatch(value.strip()):
        return float(value)
    return value


def _objects(text: str) -> list[dict[str, Any]]:
    """All outermost objects of a text, in order; one with a key written twice is an error."""
    found: list[dict[str, Any]] = []
    place = text.find("{")
    while place >= 0:
        value, end = _object_at(text, place)
        if value is not None:
            found.append(value)
        place = text.find("{", end)
    return found


def _object_at(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    decoder = json.JSONDecoder(object_pairs_hook=_once, strict=False)
    try:
        return decoder.raw_decode(text, start)
    except (ValueError, RecursionError):  # also for a number of thousands of digits
        end = _closing(text, start)
    if end is None:
        return None, len(text)  # cut off: what is inside of it is not an answer
    return _repaired(text[start:end]), end


def _repaired(piece: str) -> dict[str, Any] | None:
    """Read an object with trailing commas, or one written as a Python literal."""
    try:
        value = json.loads(_TRAILING_COMMA.sub(r"\1", piece), object_pairs_hook=_once, strict=False)
    except (ValueError, RecursionError):
        try:
            value = ast.literal_eval(piece)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _closing(text: str, start: int) -> int | None:
    """Return the offset after the brace that closes the one at *start*; None if none does."""
    depth = 0
    for mark in _BRACE_OR_STRING.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(mark.group(), 0)
        if depth == 0:
            return mark.end()
    return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise AnswerError("the reply holds an object that names a field twice")
    return values
