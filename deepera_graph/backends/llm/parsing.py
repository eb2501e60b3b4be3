"""Reading one answer out of a reply.

A value is taken as it stands; a number out of range or on another scale is an error, never
rescaled. Where a reply can be read in two ways, it is not read at all.
"""

import re
from typing import Any, TypeVar

from pydantic import ValidationError

from deepera_graph.backends.llm.answers import Filled, names_of
from deepera_graph.backends.llm.objects import Piece, Spoken, spoken
from deepera_graph.errors import AnswerError

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
