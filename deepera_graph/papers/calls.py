"""One answer by every route: a call with plain arguments, and the JSON text that it gives.

In process, over HTTP and as a tool of an agent the same call gives the same bytes. `RemotePapers`
makes the calls of a base behind an address.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import fields
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from deepera_graph.errors import DeepEraError, MissingStoreError, SettingsError, StoreError
from deepera_graph.papers.paper import Paper
from deepera_graph.papers.results import (
    Hits,
    Neighbours,
    Scope,
    SearchMode,
    TitleMatch,
    Way,
    to_json,
)
from deepera_graph.settings.ranges import check_positive, suggest_value
from deepera_graph.text.plain import read_lists
from deepera_graph.web import describe_problem

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


class GotPaper(TypedDict):
    """A paper, if there is one of that id."""

    status: Literal["ok", "unknown"]
    paper: Paper | None


_TOLD = read_lists(__file__)


class PaperCall(NamedTuple):
    """A call: what it needs, takes beside limits of a scope, and gives; its name as a tool."""

    call: str
    needs: str
    takes: tuple[str, ...]
    about: str
    tool: str
    gives: type[Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """JSON Schema of what it may be given."""
        return {
            "type": "object",
            "properties": {one: deepcopy(_TOLD["arguments"][one]) for one in self.allowed},
            "required": [self.needs],
            "additionalProperties": False,
        }

    @property
    def allowed(self) -> tuple[str, ...]:
        """Names of what it may be given."""
        return (self.needs, *self.takes, *LIMITS)


_GIVES: Mapping[str, type[Any]] = {
    "search": Hits,
    "title": TitleMatch,
    "get": GotPaper,
    "references": Neighbours,
    "citations": Neighbours,
}
CALLS = {
    name: PaperCall(call=name, gives=_GIVES[name], **{**about, "takes": tuple(about["takes"])})
    for name, about in _TOLD["calls"].items()
}


def describe_paper_calls() -> tuple[PaperCall, ...]:
    """Return all calls of a base of papers as tools: the same for LangChain and for MCP."""
    return tuple(CALLS.values())


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
    return PaperCallReply(code, to_json(describe_problem(kind, str(error))))


def read_error(plain: Mapping[str, Any]) -> DeepEraError:
    """Return the error that `describe_error` has described."""
    kinds = {"settings": SettingsError, "missing": MissingStoreError, "store": StoreError}
    return kinds.get(str(plain.get("kind")), StoreError)(str(plain.get("message")))


def _run(base: "PaperBase", name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    call = CALLS.get(name)
    if call is None:
        raise SettingsError(f"unknown call {name!r}; available: {', '.join(CALLS)}")
    for given in arguments:
        if given not in call.allowed:
            hint = suggest_value(given, call.allowed)
            raise SettingsError(f"{name} takes no argument {given!r:.80}{hint}")
    if call.needs not in arguments:
        raise SettingsError(f"{name} needs {call.needs}")
    read = {one: _read(one, value) for one, value in arguments.items() if value is not None}
    limits = {one: read.pop(one) for one in LIMITS if one in read}
    conditions = Scope.of(limits.pop("where", None)).to_dict()
    if both := sorted(limits.keys() & conditions.keys()):
        raise SettingsError(f"give {', '.join(both)} or where, not both")
    asked, scope = read.pop(call.needs, arguments[call.needs]), {**limits, **conditions}
    seen = Scope.from_dict(scope)
    found = getattr(base, name)(asked, **read, scope=seen)
    if name == "get":
        [paper] = base.mark([found], scope=seen) if found else [None]
        return {"status": "ok" if paper else "unknown", "paper": paper and paper.to_dict()}
    plain: dict[str, Any] = found.with_papers(base.mark(found.papers, scope=seen)).to_dict()
    return plain


def _read(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if name in _WHOLE and _NUMBER.fullmatch(value.strip()):
        return int(value)
    if name in _LISTS:
        return tuple(filter(None, map(str.strip, value.split(","))))
    return value


_OF_HEALTH = ("status", "modes", "names")
_HITS, _NEIGHBOURS, _MATCH = (TypeAdapter(Hits), TypeAdapter(Neighbours), TypeAdapter(TitleMatch))
_ATTEMPTS = 2  # a connection that was kept may have been closed by the server meanwhile


class RemotePapers:
    """A base that `deepera_graph.papers.rest` serves; see `PaperBase.connect`."""

    def __init__(self, url: str, *, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"{url!r} is no address such as http://localhost:8080")
        check_positive("timeout", timeout)
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._host, self._port, self._timeout = str(parts.hostname), parts.port, timeout
        self._root = parts.path.rstrip("/")
        self.place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{self._root}"
        self._free: list[HTTPConnection] = []
        self._lock = Lock()

    @property
    def has_vectors(self) -> bool:
        """Whether it can be searched by meaning."""
        return "dense" in self._ask("GET", "/v1/health")["modes"]

    def search(
        self, query: str, *, mode: SearchMode | None, k: int, scope: Scope, offset: int
    ) -> Hits:
        """Return a page of a ranking."""
        more = {} if mode is None else {"mode": mode}
        given = {"query": query, "k": k, "offset": offset, **more, **scope.to_dict()}
        return _HITS.validate_python(self._ask("POST", "/v1/search", given))

    def get(self, id: str, *, scope: Scope) -> Paper | None:
        """Return a paper."""
        paper = self._ask("POST", "/v1/get", {"id": id, **scope.to_dict()})["paper"]
        return None if paper is None else Paper.from_dict(paper)

    def title(self, title: str, *, scope: Scope) -> TitleMatch:
        """Return the paper that a title names."""
        given = {"title": title, **scope.to_dict()}
        return _MATCH.validate_python(self._ask("POST", "/v1/title", given))

    def follow(self, way: Way, id: str, *, k: int, scope: Scope, offset: int) -> Neighbours:
        """Return what a paper cites, or what cites it."""
        given = {"id": id, "k": k, "offset": offset, **scope.to_dict()}
        return _NEIGHBOURS.validate_python(self._ask("POST", f"/v1/{way}", given))

    def describe(self) -> dict[str, Any]:
        """Return what the base holds, in numbers."""
        about = self._ask("GET", "/v1/health")
        return {one: value for one, value in about.items() if one not in _OF_HEALTH}

    def venues(self) -> list[str]:
        """Return all venues."""
        return [str(one) for one in self._ask("GET", "/v1/health")["names"]]

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            while self._free:
                self._free.pop().close()

    def _ask(
        self, method: str, path: str, given: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        body = None if given is None else json.dumps(given).encode()
        for attempt in range(_ATTEMPTS):
            with self._lock:
                kept = self._free.pop() if self._free and not attempt else None
            connection = kept or self._kind(self._host, self._port, timeout=self._timeout)
            try:
                connection.request(
                    method, self._root + path, body, {"Content-Type": "application/json"}
                )
                response = connection.getresponse()
                text = response.read()
            except (OSError, HTTPException) as error:
                connection.close()
                if kept is None:
                    raise StoreError(f"the base at {self.place} gave no answer: {error}") from error
                continue
            with self._lock:
                self._free.append(connection)
            return self._read(response.status, text)
        raise StoreError(f"the base at {self.place} gave no answer")

    def _read(self, status: int, text: bytes) -> dict[str, Any]:
        plain: Any = None
        with suppress(ValueError):
            plain = json.loads(text)
        if not isinstance(plain, dict) or ("error" not in plain and "status" not in plain):
            raise StoreError(
                f"{self.place} answered HTTP {status}, but not as a base of papers: {text[:80]!r}"
            )
        if "error" in plain:
            raise read_error(plain["error"])
        return plain
