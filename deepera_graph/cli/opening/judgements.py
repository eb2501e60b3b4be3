"""The cache of a judge's replies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from deepera_graph.cli.shared.console import say
from deepera_graph.errors import StoreError

if TYPE_CHECKING:
    from deepera_graph.schema import Backend
    from deepera_graph.stores.judgements import JudgementCache


@contextmanager
def judgements_of(backend: Backend, where: str | None) -> Iterator[JudgementCache | None]:
    """Open the cache that a backend is to use, and close it again.

    The local backend has none. Left to itself (*where* is None), a backend has one if a chat model
    judges and its spec tells it from all others; code that is known by its name alone may change
    between two runs, so it has one only if a folder is named.
    """
    from deepera_graph.stores.judgements import open_cache

    kinds = set(_kinds(backend.spec))
    if where is not None:
        cache = open_cache(where) if kinds - {"local"} else None
    else:
        cache = default_cache() if "llm" in kinds and "factory" not in kinds else None
    try:
        yield cache
    finally:
        if cache is not None:
            cache.close()


def default_cache() -> JudgementCache | None:
    """Open the default cache; one that nobody asked for is no error if it cannot be opened."""
    from deepera_graph.stores.judgements import open_cache

    try:
        return open_cache()
    except StoreError as error:
        say(f"going on without a cache: {error}")
        return None


def _kinds(spec: Any) -> Iterator[str]:
    """Yield what kinds of backends a spec is made of."""
    if not isinstance(spec, Mapping):
        return
    if isinstance(spec.get("kind"), str):
        yield spec["kind"]
    for part in spec.values():
        yield from _kinds(part)
