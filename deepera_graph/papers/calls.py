"""One answer by every route: a call with plain arguments, and the JSON text that it gives.

In process, over HTTP and as a tool of an agent the same call gives the same bytes.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from typing_extensions import TypedDict

from deepera_graph.errors import DeepEraError, MissingStoreError, SettingsError, StoreError
from deepera_graph.papers.paper import Paper
from deepera_graph.papers.results import Hits, Neighbours, Scope, TitleMatch, to_json

if TYPE_CHECKING:
    from deepera_graph.papers.base import PaperBase

OK, BAD_REQUEST, NOT_FOUND, UNAVAILABLE = 200, 400, 404, 503
LIMITS = (*(one.name for one in fields(Scope)), "where")
_LISTS = ("venues", "not_venues", "hide")
_WHOLE = ("k", "offset", "year_from", "year_to")
_NUMBER = re.compile(r"-?\d{1,18}")


class PaperCallReply(NamedTuple):
    """What a call gives: the status of HTTP that fits, and JSON."""

    code: int
    text: str


class PaperCall(NamedTuple):
    """A call: what it needs, takes beside limits of a scope, and gives; its name as a tool."""

    needs: str
    takes: tuple[str, ...]
    run: Callable[["PaperBase", dict[str, Any]], Any]
    about: str
    tool: str
    gives: type[Any]


class GotPaper(TypedDict):
    """A paper, if there is one of that id."""

    status: Literal["ok", "unknown"]
    paper: Paper | None


def _get(base: "PaperBase", given: dict[str, Any]) -> dict[str, Any]:
    paper = base.get(given.pop("id"), **given)
    if paper is None:
        return {"status": "unknown", "paper": None}
    return {"status": "ok", "paper": paper.to_dict()}


CALLS = {
    "search": PaperCall(
        "query",
        ("mode", "k", "offset"),
        lambda base, given: base.search(given.pop("query"), **given).to_dict(),
        "Papers that fit a query, best first.",
        "search_papers",
        Hits,
    ),
    "title": PaperCall(
        "title",
        (),
        lambda base, given: base.title(given.pop("title"), **given).to_dict(),
        "The paper that a title names.",
        "match_title",
        TitleMatch,
    ),
    "get": PaperCall("id", (), _get, "A paper by any of its ids.", "get_paper", GotPaper),
    "references": PaperCall(
        "id",
        ("k", "offset"),
        lambda base, given: base.references(given.pop("id"), **given).to_dict(),
        "What a paper cites.",
        "references",
        Neighbours,
    ),
    "citations": PaperCall(
        "id",
        ("k", "offset"),
        lambda base, given: base.citations(given.pop("id"), **given).to_dict(),
        "What cites a paper, newest first.",
        "citations",
        Neighbours,
    ),
}

_TEXT, _NAMES = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
_ARGUMENTS: dict[str, tuple[dict[str, Any], str]] = {  # of all calls: their form, and what they are
    "query": (_TEXT, "A few words on what the papers are about; no letter is an operator."),
    "title": (_TEXT, "The title of one paper; a few typos do no harm."),
    "id": (_TEXT, "The id of a paper, as other tools give it; or its DOI or arXiv id."),
    "mode": (
        {"type": "string", "enum": ["sparse", "dense", "hybrid"]},
        "sparse (words), dense (meaning) or hybrid (both); the last two need a base with vectors.",
    ),
    "k": ({"type": "integer", "minimum": 1}, "Most papers returned."),
    "offset": ({"type": "integer", "minimum": 0}, "How many to leave out, for the next page."),
    "year_from": ({"type": "integer"}, "Earliest year of publication, inclusive."),
    "year_to": ({"type": "integer"}, "Latest year of publication, inclusive."),
    "venues": (_NAMES, "Papers of these venues alone."),
    "not_venues": (_NAMES, "No papers of these venues."),
    "hide": (_NAMES, "Ids of papers that are not to be seen."),
    "as_of": (_TEXT, "Nothing later than this day, month or year, e.g. 2021-08."),
    "undated": (
        {"type": "string", "enum": ["keep", "drop"]},
        "Whether a limit keeps papers without a date.",
    ),
    "where": (
        {"type": "array", "items": {"type": "string"}},
        "The same limits as conditions: year>=2015, journal=NAME, journal!=NAME, id!=ID, "
        "date<=2021-08, undated=drop.",
    ),
}


class CallInfo(NamedTuple):
    """A call as an agent is told of it: name of the tool, schema of arguments, form of replies."""

    call: str
    tool: str
    about: str
    arguments: dict[str, Any]
    gives: type[Any]


def describe_paper_calls() -> tuple[CallInfo, ...]:
    """Return all calls of a base of papers as tools: the same for LangChain and for MCP."""
    return tuple(
        CallInfo(name, call.tool, call.about, _describe_arguments(call), call.gives)
        for name, call in CALLS.items()
    )


def _describe_arguments(call: PaperCall) -> dict[str, Any]:
    taken = (call.needs, *call.takes, *LIMITS)
    return {
        "type": "object",
        "properties": {
            one: {**_ARGUMENTS[one][0], "description": _ARGUMENTS[one][1]} for one in taken
        },
        "required": [call.needs],
        "additionalProperties": False,
    }


def answer_call(base: "PaperBase", name: str, arguments: Mapping[str, Any]) -> PaperCallReply:
    """Answer a call with plain arguments; what goes wrong is an answer, too.

    Args:
        base: Who answers.
        name: ``search``, ``title``, ``get``, ``references`` or ``citations``.
        arguments: Of the call, and the limits of a scope beside them; numbers may be text, and
            lists text with commas.

    Returns:
        Code 200; 400 for bad arguments; 404 for a paper that is not there or not in scope; 503 if
        the base cannot be read. Errors are ``{"error": {"kind": ..., "message": ...}}``.
    """
    try:
        plain = _run(base, name, arguments)
    except DeepEraError as error:
        return describe_error(error)
    is_missing = name != "search" and plain["status"] == "unknown"
    return PaperCallReply(NOT_FOUND if is_missing else OK, to_json(plain))


def describe_error(error: DeepEraError) -> PaperCallReply:
    """Return an error as an answer."""
    kind, code = "settings", BAD_REQUEST
    if isinstance(error, StoreError):
        kind, code = ("missing" if isinstance(error, MissingStoreError) else "store"), UNAVAILABLE
    message = str(error).encode("utf-8", "replace").decode()
    return PaperCallReply(code, to_json({"error": {"kind": kind, "message": message}}))


def read_error(plain: Mapping[str, Any]) -> DeepEraError:
    """Return the error that `describe_error` has described."""
    kinds = {"settings": SettingsError, "missing": MissingStoreError, "store": StoreError}
    return kinds.get(str(plain.get("kind")), StoreError)(str(plain.get("message")))


def _run(base: "PaperBase", name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    call = CALLS.get(name)
    if call is None:
        raise SettingsError(f"unknown call {name!r}; available: {', '.join(CALLS)}")
    allowed = (call.needs, *call.takes, *LIMITS)
    for given in arguments:
        if given not in allowed:
            near = get_close_matches(given, allowed, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise SettingsError(f"{name} takes no argument {given!r:.80}{hint}")
    if call.needs not in arguments:
        raise SettingsError(f"{name} needs {call.needs}")
    read = {one: _read(one, value) for one, value in arguments.items() if value is not None}
    limits = {one: read.pop(one) for one in LIMITS if one in read}
    limits = _join_limits(limits, Scope.of(limits.pop("where", None)).to_dict())
    read.setdefault(call.needs, arguments[call.needs])
    plain: dict[str, Any] = call.run(base, {**read, "scope": Scope.from_dict(limits)})
    return plain


def _join_limits(limits: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
    if both := sorted(limits.keys() & conditions.keys()):
        raise SettingsError(f"give {', '.join(both)} or where, not both")
    return {**limits, **conditions}


def _read(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if name in _WHOLE and _NUMBER.fullmatch(value.strip()):
        return int(value)
    if name in _LISTS:
        return tuple(filter(None, map(str.strip, value.split(","))))
    return value
