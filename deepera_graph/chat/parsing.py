"""The JSON objects of a reply, found among whatever a model wrote around them.

What is repaired is only form: comments, trailing commas, Python literals.
"""

import ast
import json
import re
import warnings
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from deepera_graph.chat.schema import Filled, names_of
from deepera_graph.errors import AnswerError

_THINKING = "think|thinking|thought|reasoning"
_MARK = re.compile(rf"\{{|<(?P<close>/?)(?P<name>{_THINKING})>", re.IGNORECASE)
_STRING = r'"(?:\\.|[^"\\])*+(?:"|\\?\Z)'  # one that nothing closes reaches to the end
_BRACE = re.compile(rf"{_STRING}|[{{}}]", re.DOTALL)
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_NO_LITERAL = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)


class _TwiceError(Exception):
    """A field is named twice in one object."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A brace and all up to the one that closes it, or to the end of the reply.

    Attributes:
        text: The piece as written.
        value: What it says; None if it cannot be read.
        names_twice: Whether it cannot be read because an object in it names a field twice.
        is_cut: Whether it cannot be read because no brace closes it.
    """

    text: str
    value: dict[str, Any] | None
    names_twice: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Spoken:
    """A reply without its thinking: its outermost objects in order, and the words between them."""

    pieces: list[Piece]
    words: str


def spoken(text: str) -> Spoken:
    """Take a reply apart.

    A thinking block is left out with all that is in it; one that is not closed reaches to the end.
    If a block is closed that was never opened, as with templates that open it in the prompt, all
    before it is thinking. Tags within the strings of an object are words like any other.
    Takes time linear in the length.
    """
    pieces: list[Piece] = []
    words: list[str] = []
    place = 0
    while mark := _MARK.search(text, place):
        words.append(text[place : mark.start()])
        if mark.group() == "{":
            pieces.append(_piece_at(text, mark.start()))
            place = mark.start() + len(pieces[-1].text)
        elif mark["close"]:
            pieces.clear()
            words.clear()
            place = mark.end()
        else:
            place = _end_of_thinking(text, mark)
    return Spoken(pieces, "".join([*words, text[place:]]).strip("\ufeff \t\r\n"))


def _end_of_thinking(text: str, opened: "re.Match[str]") -> int:
    closed = re.compile(f"</{opened['name']}>", re.IGNORECASE).search(text, opened.end())
    return closed.end() if closed else len(text)


def _piece_at(text: str, start: int) -> Piece:
    decoder = json.JSONDecoder(object_pairs_hook=_once, strict=False)
    try:
        value, end = decoder.raw_decode(text, start)
    except (ValueError, RecursionError, _TwiceError):  # ValueError: also thousands of digits
        closing = _closing(text, start)
        if closing is None:
            return Piece(text[start:], None, is_cut=True)  # what is inside of it is no answer
        return _repaired(text[start:closing])
    return Piece(text[start:end], value)


def _closing(text: str, start: int) -> int | None:
    """Return the offset after the brace that closes the one at *start*; None if none does."""
    depth = 0
    for mark in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(mark.group(), 0)
        if depth == 0:
            return mark.end()
    return None


def _repaired(piece: str) -> Piece:
    """Read an object with comments or trailing commas, or one written as a Python literal."""
    bare = _TRAILING_COMMA.sub(_kept, _COMMENT.sub(_kept, piece))
    try:
        return Piece(piece, json.loads(bare, object_pairs_hook=_once, strict=False))
    except _TwiceError:
        return Piece(piece, None, names_twice=True)
    except (ValueError, RecursionError):
        return _literal(piece)


def _kept(match: "re.Match[str]") -> str:
    return match[1] or ""


def _literal(piece: str) -> Piece:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a backslash of LaTeX is an unknown escape
            tree = ast.parse(piece.strip(), mode="eval")
            value = ast.literal_eval(tree)
    except _NO_LITERAL:
        return Piece(piece, None)
    if any(_names_twice(node) for node in ast.walk(tree)):
        return Piece(piece, None, names_twice=True)
    return Piece(piece, value if isinstance(value, dict) else None)


def _names_twice(node: ast.AST) -> bool:
    if not isinstance(node, ast.Dict):
        return False
    keys = [ast.dump(key) for key in node.keys if key is not None]
    return len(set(keys)) < len(keys)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise _TwiceError
    return values


FilledT = TypeVar("FilledT", bound=Filled)
_DECIMAL = re.compile(r"(?:0(?:\.[0-9]+)?|1(?:\.0+)?|\.[0-9]+)")
_HARMLESS = re.compile(r"[\w.,/%+-]{0,12}")
_SHOWN = 120


class UnusableReplyError(AnswerError):
    """A reply cannot be used.

    Attributes:
        told: What the model may be told of it: none of the reply's own words, as these may be
            those of a hostile passage.
    """

    def __init__(self, message: str, *, told: str = "") -> None:
        super().__init__(message)
        self.told = told or message


class EmptyAnswerError(UnusableReplyError):
    """The reply held nothing at all, or an empty object."""


def parse(text: str, kind: type[FilledT], shown: str = "") -> FilledT:
    """Read an answer of one kind.

    Args:
        text: The reply.
        kind: What is to be filled in.
        shown: What the model was shown; an object that stands there is no answer but a quote.

    Raises:
        EmptyAnswerError: There is nothing, or an object without fields.
        UnusableReplyError: There is no object, there are several that differ, it breaks the
            schema, or it is a quote.
    """
    said = spoken(text)
    if not said.pieces and not said.words:
        raise EmptyAnswerError("the reply is empty")
    _refuse_unclear(said, kind)
    found = {piece.text: piece.value for piece in said.pieces if piece.value is not None}
    if not found:
        problem = "the reply holds no complete JSON object"
        shown = said.words or said.pieces[0].text
        raise UnusableReplyError(f"{problem}: {shown[:_SHOWN]!r}", told=problem)
    fitting = {one: value for one, value in found.items() if names_of(kind) & value.keys()}
    written, values = next(iter((fitting or found).items()))
    if any(one != values for one in (fitting or found).values()):
        raise UnusableReplyError(
            f"the reply holds {len(fitting or found)} JSON objects that differ"
        )
    if not values:
        raise EmptyAnswerError("the reply is an empty object")
    if squeezed(written) in squeezed(shown):
        raise UnusableReplyError("the reply repeats an object that it was shown")
    return validated(values, kind)


def squeezed(text: str) -> str:
    """Return a text without white space."""
    return "".join(text.split())


def _refuse_unclear(said: Spoken, kind: type[Filled]) -> None:
    """Refuse a reply of which a part that cannot be read may say something else."""
    if any(piece.names_twice for piece in said.pieces):
        raise UnusableReplyError("the reply holds an object that names a field twice")
    readable = any(piece.value is not None for piece in said.pieces)
    if readable and "}" in said.words:
        raise UnusableReplyError("the reply holds a closing brace too many")
    if readable and any(_is_a_broken_answer(piece, kind) for piece in said.pieces):
        raise UnusableReplyError("the reply holds an object that is not JSON beside one that is")


def _is_a_broken_answer(piece: Piece, kind: type[Filled]) -> bool:
    fields = "|".join(names_of(kind))
    if piece.value is not None:
        return False
    return piece.is_cut or bool(re.search(rf"\b(?:{fields})\b[\"']?\s*[:=]", piece.text))


def validated(values: dict[str, Any], kind: type[FilledT]) -> FilledT:
    """Read the fields of an answer; a score may be written as text.

    Raises:
        UnusableReplyError: They break the schema.
    """
    plain = {name: _number(value) if name == "score" else value for name, value in values.items()}
    try:
        return kind.model_validate(plain)
    except ValidationError as error:
        found = [
            (f"{'.'.join(map(str, one['loc']))}: {one['msg']}", one["input"])
            for one in error.errors()
        ]
        raise UnusableReplyError(
            "the reply breaks the schema: "
            + "; ".join(f"{what}, got {value!r:.60}" for what, value in found),
            told="the reply breaks the schema: "
            + "; ".join(f"{what}, got {_harmless(value)}" for what, value in found),
        ) from error


def _harmless(value: object) -> str:
    """Show a number or a short word; of all else its kind."""
    if value is None or isinstance(value, bool | int | float):
        return f"{value!r:.20}"
    if isinstance(value, str) and _HARMLESS.fullmatch(value):
        return repr(value)
    return {"str": "a text", "list": "a list", "dict": "an object"}.get(type(value).__name__, "it")


def _number(value: object) -> object:
    """Take a plain decimal in [0, 1] that was written as text; leave all else to the schema."""
    if isinstance(value, str) and _DECIMAL.fullmatch(value.strip()):
        return float(value)
    return value
