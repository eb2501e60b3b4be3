"""What is sent back: JSON, and errors in one form, ``{"error": {"kind", "message"}}``."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field
from starlette.responses import Response

from deepera_graph.errors import (
    BackendError,
    DeepEraError,
    InputError,
    MissingStoreError,
    RoleError,
    SettingsError,
    StoreError,
)
from deepera_graph.settings.ranges import suggest_name
from deepera_graph.web import JSON, describe_problem, to_json

EVENTS = "text/event-stream"
_SHOULD = re.compile(r"^(?:Input|List|String|Dictionary) should")
_COUNTED = ("too_long", "too_short", "string_too_long", "string_too_short")
_FORMS = frozenset(  # of a place in a body: where it is, and forms one of which fits
    {
        "body",
        "str",
        "int",
        "float",
        "dict[str,any]",
        "GivenPassage",
        "GivenFile",
        "documents form",
        "texts form",
    }
)


def name_problems(
    errors: Iterable[Mapping[str, Any]], known: Iterable[str], what: str
) -> list[str]:
    """Return what is wrong, a text for each place; *what* is how a field of a form is called."""
    places: dict[str, list[Mapping[str, Any]]] = {}
    for one in errors:
        name = ".".join(str(part) for part in one["loc"] if part not in _FORMS)
        places.setdefault(name, []).append(one)
    return [_say(name, problems, list(known), what) for name, problems in places.items()]


def _say(name: str, problems: Sequence[Mapping[str, Any]], known: list[str], what: str) -> str:
    problem = problems[0]
    if problem["type"] == "missing":
        return f"{name} is missing"
    if problem["type"] == "extra_forbidden":
        if name != str(problem["loc"][-1]):  # in a part of the form, whose fields are not *known*
            return f"unknown {what} {name!r}"
        hint = suggest_name(name, known) or f"it takes {', '.join(known) or 'none'}"
        return f"unknown {what} {name!r}; {hint}"
    said = (_SHOULD.sub("must", one["msg"].removeprefix("Value error, ")) for one in problems)
    whole = " or ".join(dict.fromkeys(said)).replace(" or must be ", " or ")
    message = f"{name} {whole}".strip()
    counted = not name or problem["type"] in _COUNTED
    return message if counted else f"{message}, got {problem['input']!r:.80}"


_OLD_NAMES = {"collection": "library", "base": "library"}  # of fields, until 0.11
_OTHER_NAMES = {**_OLD_NAMES, "top_n": "n"}  # the last is what rerank clients say


def rename_fields(plain: dict[str, Any], known: Collection[str]) -> tuple[dict[str, Any], str]:
    """Return plain data with fields as the form calls them, and a note if a name was an old one.

    Raises:
        InputError: A field is given by both of its names.
    """
    notes = []
    for name, new in _OTHER_NAMES.items():
        if {name, new} <= plain.keys() and new in known and name not in {*known, *_OLD_NAMES}:
            raise InputError(f"give {new} or {name}, which are the same, not both")
        if name in plain and name not in known and new in known and new not in plain:
            plain = {new if name == one else one: value for one, value in plain.items()}
            if name in _OLD_NAMES:
                notes.append(f"{name} is now {new}; the old name ends with 0.11")
    return plain, "; ".join(notes)


class RequestRefusedError(DeepEraError):
    """A request that is not answered with what it asks for; `kind` is one word, for programs."""

    def __init__(
        self, status: int, kind: str, message: str, *, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.retry_after = status, kind, retry_after


class Problem(BaseModel):
    """What is wrong."""

    kind: str = Field(description="One word, for programs.")
    message: str = Field(description="In words, with the value that is wrong.")


class ErrorReply(BaseModel):
    """Why a request is not answered with what it asks for."""

    error: Problem


_KINDS: tuple[tuple[type[DeepEraError], int, str], ...] = (  # the first that fits
    (InputError, 422, "input"),
    (SettingsError, 422, "settings"),
    (MissingStoreError, 404, "missing"),
    (StoreError, 503, "store"),
    (BackendError, 502, "backend"),
    (RoleError, 502, "backend"),
)


def as_refused(error: DeepEraError) -> RequestRefusedError:
    """Return an error of this package as it is told to a client."""
    if isinstance(error, RequestRefusedError):
        return error
    for kind, status, name in _KINDS:
        if isinstance(error, kind):
            return RequestRefusedError(status, name, str(error))
    return RequestRefusedError(500, "internal", str(error))


def describe(error: RequestRefusedError) -> dict[str, Any]:
    """Return an error as plain data."""
    return describe_problem(error.kind, str(error))


def reply(plain: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return plain data as a response."""
    given = None if headers is None else dict(headers)
    return Response(to_json(plain), status_code=status, media_type=JSON, headers=given)


def reply_error(error: RequestRefusedError, *, for_clients: bool = False) -> Response:
    """Return an error as a response."""
    # Clients of other services look for its words under ``detail`` or ``message``; *for_clients*
    # puts them there, too.
    plain = describe(error)
    if for_clients:
        plain |= {"message": str(error), "detail": str(error)}
    headers = {}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    return reply(plain, error.status, headers)


def write_event(name: str, plain: Any) -> bytes:
    """Return an event as EventSource reads it; JSON has no line feed of its own."""
    # Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
    return b"event: " + name.encode() + b"\ndata: " + to_json(plain) + b"\n\n"


def write_error(error: RequestRefusedError) -> bytes:
    """Return an error as the last event of a stream."""
    return write_event("error", describe(error))
