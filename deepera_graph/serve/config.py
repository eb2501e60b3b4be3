"""What a server is given: who judges, what can be searched, who may ask, and how much."""

import hmac
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from deepera_graph.errors import SettingsError

if TYPE_CHECKING:
    from deepera_graph.papers.sources import Literature
    from deepera_graph.schema import Backend
    from deepera_graph.serve.backing.stores import Collections
    from deepera_graph.stores.judgements import JudgementCache

KEYS = "DEEPERA_SERVE_KEYS"  # the variable that holds the keys, with commas between them
_SHORTEST_KEY = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """What one request may ask for, and how many may be worked on.

    Attributes:
        body_bytes: Largest body, > 0; more is HTTP 413.
        documents: Most passages, > 0; more is 422.
        characters: Most characters of all passages and the question together, > 0; more is 422.
        seconds: Longest time for a request, its wait included, > 0; then it is given up with 504,
            and a body that takes as long to come is 408.
        at_once: Requests judged at the same time, > 0.
        queue: Requests that may wait for their turn, >= 0; one more is 503.
    """

    body_bytes: int = 10 * 2**20
    documents: int = 1000
    characters: int = 4_000_000
    seconds: float = 120.0
    at_once: int = 4
    queue: int = 256

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            least = 0 if one.name == "queue" else 1
            if one.name == "seconds":
                if not value > 0:
                    raise SettingsError(f"seconds must be > 0, got {value!r}")
            elif value < least:
                raise SettingsError(f"{one.name} must be >= {least}, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig:
    """Everything that a server is made of; it can be pickled if the backend is a name or a spec.

    Attributes:
        backend: Who judges if a request names nobody; see `EvidenceReranker`.
        settings: Of `deepera_graph.Settings`, by name.
        limits: See `RequestLimits`.
        keys: Who has one of them may ask; nobody is asked for one if there is none.
        judgements: Opens the cache for a backend; None if there is none.
        collections: What can be searched.
        literature: Opens the services of literature that may be asked; None if none may.
        papers: Folder or file of a base of papers, served below ``/papers``; None without.
        log_content: Whether questions may be logged.
        workers: Processes that share the address, >= 1.
    """

    backend: "Backend | str | Mapping[str, Any]" = "local"
    settings: Mapping[str, Any] = field(default_factory=dict)
    limits: RequestLimits = field(default_factory=RequestLimits)
    keys: tuple[str, ...] = field(default=(), repr=False)
    judgements: "Callable[[Backend], AbstractContextManager[JudgementCache | None]] | None" = None
    collections: "Collections | None" = None
    literature: "Callable[[], AbstractContextManager[Literature]] | None" = None
    papers: str | None = None
    log_content: bool = False
    workers: int = 1


def read_keys() -> tuple[str, ...]:
    """Return the keys of the environment.

    Raises:
        SettingsError: A key is too short to be one, or no header can hold it; it is not named. Or
            the variable is set and holds none.
    """
    given = os.environ.get(KEYS, "")
    keys = tuple(filter(None, map(str.strip, given.split(","))))
    if given and not keys:
        raise SettingsError(f"{KEYS} is set, but holds no key; unset it to serve without one")
    if any(len(one) < _SHORTEST_KEY for one in keys):
        raise SettingsError(f"a key in {KEYS} is shorter than {_SHORTEST_KEY} characters")
    if not all(one.isascii() and one.isprintable() for one in keys):
        raise SettingsError(
            f"a key in {KEYS} has a letter that is not ASCII: no header can hold it"
        )
    return keys


def is_key(given: str, keys: tuple[str, ...]) -> bool:
    """Tell whether a text is one of the keys; how long it takes tells nothing of them."""
    plain = given.encode("utf-8", "replace")
    found = [hmac.compare_digest(plain, one.encode()) for one in keys]
    return any(found)
