"""A base behind an address, with the interface of one in a file."""

import json
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from pydantic import TypeAdapter

from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.papers.calls import read_error
from deepera_graph.papers.paper import Paper
from deepera_graph.papers.results import Hits, Neighbours, Scope, SearchMode, TitleMatch, Way

_OF_HEALTH = ("status", "modes", "names")
_HITS, _NEIGHBOURS, _MATCH = (
    TypeAdapter(Hits),
    TypeAdapter(Neighbours),
    TypeAdapter(TitleMatch),
)
_ATTEMPTS = 2  # a connection that was kept may have been closed by the server meanwhile


class RemotePapers:
    """A base that `deepera_graph.papers.rest` serves; see `PaperBase.connect`."""

    def __init__(self, url: str, *, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"{url!r} is no address such as http://localhost:8080")
        if not timeout > 0:
            raise SettingsError(f"timeout must be > 0 seconds, got {timeout!r}")
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
