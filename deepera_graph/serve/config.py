"""What a server is given: who judges, what can be searched, who may ask, and how much."""

import hmac
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from deepera_graph.errors import SettingsError
from deepera_graph.settings.ranges import check_positive, check_setting, setting

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

    Too large a body is HTTP 413, too many passages or characters 422. A request whose time is up is
    given up with 504, and a body that takes as long to come is 408; beyond the queue it is 503.
    """

    body_bytes: int = setting(10 * 2**20, "Largest body.")
    documents: int = setting(1000, "Most passages of a request.", metavar="N")
    characters: int = setting(
        4_000_000,
        "Most characters of a request's passages and its question together.",
        metavar="N",
    )
    seconds: float = setting(
        120.0,
        "Longest time for a request, its wait included, in seconds; then it ends with HTTP 504.",
        check=check_positive,
        metavar="S",
    )
    at_once: int = setting(4, "Requests judged at the same time; others wait.", metavar="N")
    queue: int = setting(256, "Requests that may wait.", least=0, metavar="N")

    def __post_init__(self) -> None:
        for one in fields(self):
            check_setting(one, getattr(self, one.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig:
    """Everything that a server is made of; it can be pickled if the backend is a name or a spec."""

    # who judges if a request names nobody; see `EvidenceReranker`
    backend: "Backend | str | Mapping[str, Any]" = "local"
    # of `deepera_graph.Settings`, by name
    settings: Mapping[str, Any] = field(default_factory=dict)
    limits: RequestLimits = field(default_factory=RequestLimits)
    # who has one of them may ask; nobody is asked for one if there is none
    keys: tuple[str, ...] = field(default=(), repr=False)
    # opens the cache for a backend; None if there is none
    judgements: "Callable[[Backend], AbstractContextManager[JudgementCache | None]] | None" = None
    collections: "Collections | None" = None  # what can be searched
    # opens the services of literature that may be asked; None if none may
    literature: "Callable[[], AbstractContextManager[Literature]] | None" = None
    # folder or file of a base of papers, served below ``/papers``; None without
    papers: str | None = None
    log_content: bool = False  # whether questions may be logged
    workers: int = 1  # processes that share the address, >= 1


def read_keys() -> tuple[str, ...]:
    """Return the keys of the environment."""
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
