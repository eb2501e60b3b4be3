"""Stores of passages: opening a collection, and the list of those that there are."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from langchain_core.embeddings import Embeddings
from qdrant_client import QdrantClient, models

from deepera_graph.errors import MissingStoreError, SettingsError, StoreError
from deepera_graph.retrieval import CollectionInfo, find_folder
from deepera_graph.retrieval.collections.collection import (
    FindEmbeddings,
    Mode,
    create,
    describe_others,
    find_mode,
    open_collection,
    recorded_embeddings,
)
from deepera_graph.retrieval.collections.connection import (
    IN_MEMORY,
    connect,
    describe_place,
    hide_hints,
    wrap_errors,
)
from deepera_graph.retrieval.collections.passage_store import PassageStore
from deepera_graph.retrieval.conditions import METADATA


def open_store(
    collection: str,
    *,
    path: str | Path | None = None,
    url: str | None = None,
    api_key: str | None = None,
    mode: Mode | None = None,
    embeddings: Embeddings | None = None,
    find_embeddings: FindEmbeddings | None = None,
    must_exist: bool = False,
    to_search: bool = True,
    wait: float = 0.0,
) -> PassageStore:
    """Open a collection of passages, or make it.

    Args:
        collection: Its name.
        path: Folder of an embedded store, for one process at a time; None or ``":memory:"`` for
            one that ends with the process. No server, no model and no network is needed.
        url: Address of a Qdrant server, instead of *path*.
        api_key: Key of the server.
        mode: ``sparse`` matches words (BM25), ``dense`` meanings, ``hybrid`` both, fused by rank.
            None opens a collection as it was indexed; a new one is sparse, or hybrid if
            *embeddings* are given.
        embeddings: Any LangChain embeddings, for dense and hybrid; asked once for their size.
        find_embeddings: What makes the embeddings of a collection that has vectors, where none are
            given: it gets the name of those that it was indexed with, e.g. EvidenceEmbeddings.
        must_exist: Whether a missing collection is an error.
        to_search: Whether it is searched, or added to: its embeddings are needed for no other.
        wait: Seconds to wait while another process has the folder open.

    Raises:
        SettingsError: A setting is out of range, or settings contradict each other.
        StoreError: The store is missing, locked, unreachable, or was indexed otherwise.
    """
    place = describe_place(path, url)
    client = connect(path, url, api_key=api_key, must_exist=must_exist, wait=wait)
    try:
        with wrap_errors(place):
            is_new = bool(collection) and not client.collection_exists(collection)
            vectorstore = open_collection(
                client,
                collection,
                mode=mode,
                embeddings=embeddings,
                find_embeddings=find_embeddings,
                must_exist=must_exist,
                to_search=to_search,
            )
    except BaseException:
        client.close()
        raise
    folder = None if path in (None, IN_MEMORY) else find_folder(path, collection)
    return PassageStore(
        vectorstore, place=place, embedded=url is None, is_new=is_new, folder=folder
    )


def open_store_on(
    client: QdrantClient,
    collection: str,
    *,
    place: str,
    embedded: bool,
    find_embeddings: FindEmbeddings | None = None,
) -> PassageStore:
    """Open a collection that exists on a client that other stores share; closing it closes that."""
    with wrap_errors(place):
        vectorstore = open_collection(
            client,
            collection,
            mode=None,
            embeddings=None,
            find_embeddings=find_embeddings,
            must_exist=True,
        )
    return PassageStore(vectorstore, place=place, embedded=embedded)


N_SAMPLED = 1000
_AT_ONCE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSample:
    """What the first passages of a collection have in their metadata, the most frequent first."""

    n_passages: int  # that were looked at
    fields: dict[str, int]  # how many of them have a field
    examples: dict[str, Any]  # the first value of a field
    sources: dict[str, int]  # how many of them are from a source


class Catalogue:
    """The collections in a folder or on a server; use it in a `with` block."""

    def __init__(
        self, path: str | Path | None = None, *, url: str | None = None, api_key: str | None = None
    ) -> None:
        self.place = describe_place(path, url)
        self._client = connect(path, url, api_key=api_key, must_exist=True)

    @classmethod
    def on(cls, client: QdrantClient, place: str) -> Self:
        """Return the collections behind a client that is open already."""
        made = cls.__new__(cls)
        made.place, made._client = place, client
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def list(self) -> list[CollectionInfo]:
        """Return what collections there are, by name."""
        with wrap_errors(self.place):
            names = sorted(one.name for one in self._client.get_collections().collections)
            return [self._describe(name) for name in names]

    def describe(self, name: str) -> CollectionInfo:
        """Return what a collection is."""
        with self._existing(name):
            return self._describe(name)

    def sample(self, name: str, *, n: int = N_SAMPLED) -> MetadataSample:
        """Return what the first *n* passages have in their metadata."""
        fields, sources = Counter[str](), Counter[str]()
        examples: dict[str, Any] = {}
        with self._existing(name):
            found, _ = self._client.scroll(name, limit=n, with_payload=True)
        for point in found:
            metadata = (point.payload or {}).get(METADATA) or {}
            fields.update(map(str, metadata))
            examples = {**metadata, **examples}
            sources.update([str(metadata["source"])] if "source" in metadata else [])
        return MetadataSample(
            n_passages=len(found),
            fields=dict(fields.most_common()),
            examples=examples,
            sources=dict(sources.most_common()),
        )

    def delete(self, name: str) -> int:
        """Delete a collection; return how many passages it held."""
        with self._existing(name):
            held = self._client.count(name).count
            self._client.delete_collection(name)
        return held

    def rename(self, name: str, to: str) -> int:
        """Give a collection another name; return how many passages it holds."""
        # Qdrant cannot rename, so the passages are copied with their vectors, and the old
        # collection is deleted once all are.
        with self._existing(name), hide_hints():
            if not to or self._client.collection_exists(to):
                problem = "exists already" if to else "is no name"
                raise SettingsError(f"{name!r} cannot be renamed: {to!r} {problem}")
            config = self._client.get_collection(name).config
            params = config.params
            create(self._client, to, params.vectors, params.sparse_vectors, config.metadata)
            try:
                n_copied = self._copy(name, to)
            except BaseException:
                self._client.delete_collection(to)
                raise
            self._client.delete_collection(name)
        return n_copied

    def _copy(self, name: str, to: str) -> int:
        n_copied, offset = 0, None
        while True:
            found, offset = self._client.scroll(
                name, limit=_AT_ONCE, offset=offset, with_payload=True, with_vectors=True
            )
            points = [
                models.PointStruct.model_validate(
                    one.model_dump(include={"id", "vector", "payload"})
                )
                for one in found
            ]
            if points:
                self._client.upsert(to, points=points)
            n_copied += len(points)
            if offset is None:
                return n_copied

    def _describe(self, name: str) -> CollectionInfo:
        config = self._client.get_collection(name).config
        try:
            mode: str = find_mode(config.params, name)
        except StoreError:  # of another program
            mode = ""
        return CollectionInfo(
            name=name,
            n_passages=self._client.count(name).count,
            mode=mode,
            embeddings=recorded_embeddings(config) or "",
        )

    @contextmanager
    def _existing(self, name: str) -> Iterator[None]:
        with wrap_errors(self.place):
            if not name or not self._client.collection_exists(name):
                others = describe_others(self._client, name)
                raise MissingStoreError(f"unknown library {name!r}; {others}")
            yield
