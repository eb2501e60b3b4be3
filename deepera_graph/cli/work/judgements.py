"""The judgement cache of a command: on by itself where it saves calls and cannot mislead."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from deepera_graph.cache.store import JudgementCache, open_cache
from deepera_graph.cli.exits import say
from deepera_graph.errors import StoreError
from deepera_graph.schema import Backend


@contextmanager
def judgements_of(backend: Backend, where: str | None) -> Iterator[JudgementCache | None]:
    """Open the cache that a backend is to use, and close it again.

    The local backend has none. Left to itself (*where* is None), a backend has one if a chat model
    judges and its spec tells it from all others; code that is known by its name alone may change
    between two runs, so it has one only if a folder is named. Without being asked for, a cache that
    cannot be opened is no error: one line says so.

    Raises:
        SettingsError: *where* is empty.
        StoreError: The folder *where* cannot be used.
    """
    cache = _opened(set(_kinds(backend.spec)), where)
    try:
        yield cache
    finally:
        if cache is not None:
            cache.close()


def _opened(kinds: set[str], where: str | None) -> JudgementCache | None:
    if where is not None:
        return open_cache(where) if kinds - {"local"} else None
    if "llm" not in kinds or "factory" in kinds:
        return None
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
