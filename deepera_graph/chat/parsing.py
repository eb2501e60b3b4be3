"""Replies of a chat model: their JSON schemas, the objects in what it wrote, made safe to show."""

import ast
import json
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from hashlib import sha256
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    WithJsonSchema,
)

from deepera_graph.errors import AnswerError
from deepera_graph.schema import LONGEST_POSITION

_NOT_SHOWN = frozenset({"title", "default"})
DIRECTION = "What it says to the question: a direction, a position, or none."
_DIGITS = re.compile(r"-?[0-9]{1,9}")


def _check_whole(value: object) -> object:
    """Take a number, or one written as text; true is none."""
    if isinstance(value, bool) or (isinstance(value, str) and not _DIGITS.fullmatch(value.strip())):
        raise ValueError("this is not a whole number")
    return value


Number = Annotated[int, BeforeValidator(_check_whole)]
# Anything is taken, and none too: what is no direction and no position costs no score.
DirectionWord = Annotated[Any, WithJsonSchema({"type": "string", "maxLength": LONGEST_POSITION})]


class ReplyModel(BaseModel):
    """Base of what a model replies with."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)

    @classmethod
    def from_words(cls, words: str, prompt: str = "") -> Self | None:
        """Return what a reply without any object says; None if it must be asked for again."""
        # *prompt* is what it answers, all messages together.
        return None


@lru_cache(maxsize=64)
def json_schema(kind: type[ReplyModel], *, bounded: bool = True) -> dict[str, Any]:
    """Return the JSON schema of a reply, every field required, in the order of the class."""
    # It is made once and shared: do not change it. *bounded*: whether the lengths of texts are
    # bounded, where the class says how.
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


ReplyT = TypeVar("ReplyT", bound=ReplyModel)
_THINKING = "think|thinking|thought|reasoning"
_MARK = re.compile(rf"\{{|<(?P<close>/?)(?P<name>{_THINKING})>", re.IGNORECASE)
_CLOSE = re.compile(rf"</(?:{_THINKING})>", re.IGNORECASE)
_STRING = r'"(?:\\.|[^"\\])*+(?:"|\\?\Z)'  # one that nothing closes reaches to the end
_BRACE = re.compile(rf"{_STRING}|[{{}}]", re.DOTALL)
_OUTSIDE = re.compile(rf"{_STRING}|(?P<close>{_CLOSE.pattern})", re.DOTALL | re.IGNORECASE)
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_NO_LITERAL = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)
_DECIMAL = re.compile(r"(?:0(?:\.[0-9]+)?|1(?:\.0+)?|\.[0-9]+)")
_SAFE_TO_REPEAT = re.compile(r"[\w.,/%+-]{0,12}")
_LONGEST_EXCERPT = 120


class UnusableReplyError(AnswerError):
    """A reply cannot be used.

    `repair_note` is what the model may be told of it: none of the reply's own words, as these may
    be those of a hostile passage.
    """

    def __init__(self, message: str, *, repair_note: str = "") -> None:
        super().__init__(message)
        self.repair_note = repair_note or message


class EmptyAnswerError(UnusableReplyError):
    """The reply held nothing at all, or an empty object."""


class DoubleFieldError(UnusableReplyError):
    """A field is named twice in one object."""

    def __init__(self) -> None:
        super().__init__("the reply holds an object that names a field twice")


def extract_json(text: str) -> tuple[list[str], str]:
    """Take a reply apart, in time linear in its length: its outermost objects, and other words."""
    # An object reaches from a brace to the one that closes it, or to the end of the reply.
    # A thinking block is left out with all that is in it; one that is not closed reaches to the
    # end. If a block is closed that was never opened, as with templates that open it in the prompt,
    # all before it is thinking, also where an object or what cannot be read begins in it. Tags
    # within the strings of an object are words like any other.
    pieces: list[str] = []
    words: list[str] = []
    place = 0
    while mark := _MARK.search(text, place):
        words.append(text[place : mark.start()])
        n_thought = 0
        if mark.group() == "{":
            piece = text[mark.start() : _find_closing(text, mark.start())]
            pieces.append(piece)
            n_thought = _end_of_thinking(piece) if "</" in piece else 0
            place = mark.start() + (n_thought or len(piece))
        elif mark["close"]:
            n_thought = place = mark.end()
        else:
            closing = re.compile(f"</{mark['name']}>", re.IGNORECASE).search(text, mark.end())
            place = closing.end() if closing else len(text)
        if n_thought:
            pieces.clear()
            words.clear()
    return pieces, "".join([*words, text[place:]]).strip("\ufeff \t\r\n")


def _end_of_thinking(piece: str) -> int:
    """Return the offset after the last closing tag outside of strings; 0 if there is none."""
    end = max((tag.end() for tag in _OUTSIDE.finditer(piece) if tag["close"]), default=0)
    with suppress(DoubleFieldError):  # written in Python, strings may have other quotation marks
        if end and len(_CLOSE.findall(piece)) == len(_CLOSE.findall(str(_read_literal(piece)))):
            return 0
    return end


def _find_closing(text: str, start: int) -> int | None:
    """Return the offset after the brace that closes the one at *start*; None if none does."""
    depth = 0
    for mark in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(mark.group(), 0)
        if depth == 0:
            return mark.end()
    return None


def _read_object(piece: str) -> dict[str, Any] | None:
    """Read an object, also with comments or trailing commas, or written as a Python literal."""
    # None if it cannot be read.
    # Raises `DoubleFieldError` if an object in it names a field twice.
    if _find_closing(piece, 0) is None:
        return None  # what is inside of it is no answer
    try:
        return _load(piece)
    except (ValueError, RecursionError):  # ValueError: also thousands of digits
        bare = _TRAILING_COMMA.sub(_keep_string, _COMMENT.sub(_keep_string, piece))
    try:
        return _load(bare)
    except (ValueError, RecursionError):
        return _read_literal(piece)


def _keep_string(match: "re.Match[str]") -> str:
    return match[1] or ""


def _read_literal(piece: str) -> dict[str, Any] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a backslash of LaTeX is an unknown escape
            tree = ast.parse(piece.strip(), mode="eval")
            value = ast.literal_eval(tree)
    except _NO_LITERAL:
        return None
    if any(_has_double(node) for node in ast.walk(tree)):
        raise DoubleFieldError
    return value if isinstance(value, dict) else None


def _has_double(node: ast.AST) -> bool:
    if not isinstance(node, ast.Dict):
        return False
    keys = [ast.dump(key) for key in node.keys if key is not None]
    return len(set(keys)) < len(keys)


def refuse_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Read one object for `json.loads`; a field that is named twice raises."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise DoubleFieldError
    return values


_load: Callable[[str], dict[str, Any]] = partial(
    json.loads, object_pairs_hook=refuse_doubles, strict=False
)


def parse_reply(text: str, kind: type[ReplyT], prompt: str = "") -> ReplyT:
    """Read a reply of one kind, or raise what is wrong with it; nothing is guessed."""
    # An object that stands in the *prompt* is no answer but a quote.
    pieces, words = extract_json(text)
    if not pieces and not words:
        raise EmptyAnswerError("the reply is empty")
    read = {piece: _read_object(piece) for piece in pieces}
    found = {piece: value for piece, value in read.items() if value is not None}
    if not found:
        said = None if pieces else kind.from_words(words, prompt)
        if said is not None:
            return said
        problem = "the reply holds no complete JSON object"
        excerpt = (words or pieces[0])[:_LONGEST_EXCERPT]
        raise UnusableReplyError(f"{problem}: {excerpt!r}", repair_note=problem)
    _refuse_unclear([piece for piece in pieces if piece not in found], words, kind)
    found = {one: v for one, v in found.items() if field_names(kind) & v.keys()} or found
    written, values = next(iter(found.items()))
    if any(one != values for one in found.values()):
        raise UnusableReplyError(f"the reply holds {len(found)} JSON objects that differ")
    if not values:
        raise EmptyAnswerError("the reply is an empty object")
    if remove_spaces(written) in remove_spaces(prompt):
        raise UnusableReplyError("the reply repeats an object that it was shown")
    return validate_fields(values, kind)


def remove_spaces(text: str) -> str:
    """Return a text without white space."""
    return "".join(text.split())


def _refuse_unclear(broken: Sequence[str], words: str, kind: type[ReplyModel]) -> None:
    """Refuse a reply of which a part that cannot be read may say something else."""
    if "}" in words:
        raise UnusableReplyError("the reply holds a closing brace too many")
    named = rf"\b(?:{'|'.join(field_names(kind))})\b[\"']?\s*[:=]"  # a field of an answer
    if any(_find_closing(one, 0) is None or re.search(named, one) for one in broken):
        raise UnusableReplyError("the reply holds an object that is not JSON beside one that is")


def validate_fields(values: dict[str, Any], kind: type[ReplyT]) -> ReplyT:
    """Check the fields of an answer against its schema; a score may be written as text."""
    score = values.get("score")
    if isinstance(score, str) and _DECIMAL.fullmatch(score.strip()):
        values = {**values, "score": float(score)}
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        found = [
            (f"{'.'.join(map(str, one['loc']))}: {one['msg']}", one["input"])
            for one in error.errors()
        ]
        breaks = "the reply breaks the schema: "
        raise UnusableReplyError(
            breaks + "; ".join(f"{what}, got {value!r:.60}" for what, value in found),
            repair_note=breaks + "; ".join(f"{what}, got {_describe(v)}" for what, v in found),
        ) from error


def _describe(value: object) -> str:
    """Show a number or a short word; of all else its kind."""
    if value is None or isinstance(value, bool | int | float):
        return f"{value!r:.20}"
    if isinstance(value, str) and _SAFE_TO_REPEAT.fullmatch(value):
        return repr(value)
    return {"str": "a text", "list": "a list", "dict": "an object"}.get(type(value).__name__, "it")


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # control, format, surrogates, separators
# Letters and marks without a shape of their own (Default_Ignorable_Code_Point of Unicode 15.1,
# DerivedCoreProperties.txt, as far as `_UNSEEN` leaves them out), and the blank Braille cell.
_SHAPELESS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
    "|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]"  # one of these chooses a shape, more hide a text
)
# What chat templates and models take for the bounds of a message, a thought or a tool call.
_TOKEN_NAMES = (
    "s|bos|eos|unk|pad|sop|eop|im_start|im_end|think|thinking|thought|reasoning|system|user|"
    "assistant|human|tool|tools|function|tool_calls?|tool_responses?|function_calls?|"
    "start_of_turn|end_of_turn|end_of_text|start_header_id|end_header_id|eot_id|"
    "instructions?|answer|passage|evidence|document|documents|context"
)
_ANGLE = re.compile(rf"<(?=[|｜]|/?(?:{_TOKEN_NAMES})\b[^<>\n]{{0,40}}>|</?SYS>>)", re.IGNORECASE)
_SQUARE = re.compile(
    r"\[(?=/?(?:INST|SYSTEM_PROMPT|THINK|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS|gMASK|SYS)\])",
    re.IGNORECASE,
)
_RULE = re.compile("[=＝]{5,}")  # what our own marker lines begin with
_ORDINARY = re.compile(r"(?:[\n -;>-Z\\-~]|=(?!=)|< )*+")  # printable ASCII of which no rule speaks
_INSTEAD = "\ufffd"


def sanitize(text: str) -> str:
    """Replace control, direction and unseen characters, break the tokens of chat templates."""
    # Line breaks stay; white space of other kinds becomes a space. A rule of equals signs, as in
    # our marker lines, becomes one of dashes.
    if _ORDINARY.fullmatch(text):
        return text
    seen = "".join(
        one if one == "\n" or unicodedata.category(one) not in _UNSEEN else _stand_in(one)
        for one in text
    )
    shaped = _SHAPELESS.sub(_INSTEAD, seen)
    ruled = _RULE.sub(lambda rule: "-" * len(rule.group()), shaped)
    return _SQUARE.sub("［", _ANGLE.sub("‹", ruled))


def sanitize_line(text: str) -> str:
    """Return the text as `sanitize` does, in one line."""
    return " ".join(sanitize(text).split())


def _stand_in(unseen: str) -> str:
    """A tab, a carriage return and a page break are white space like any other."""
    return " " if unseen.isspace() else _INSTEAD
