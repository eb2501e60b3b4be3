"""A store of passages in Qdrant that keeps first-stage scores and ranks."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_qdrant import QdrantVectorStore
from qdrant_client import models

from deepera_graph.errors import InputError, SettingsError, StoreError
from deepera_graph.retrieval.collection import Mode, open_collection
from deepera_graph.retrieval.connection import connect, place_of, quiet, reaching
from deepera_graph.retrieval.filters import build_filter
from deepera_graph.retrieval.points import build_points, read_point
from deepera_graph.retrieval.ranking import build_probes, rank_points

Build = Callable[[Iterable[list[Document]]], Iterable[list[models.PointStruct]]]
LARGE = 20_000
_SLOW = "%d passages in an embedded store: every search reads all of them, a Qdrant server does not"
_logger = logging.getLogger(__name__)


def open_store(
    collection: str,
    *,
    path: str | Path | None = None,
    url: str | None = None,
    api_key: str | None = None,
    mode: Mode | None = None,
    embeddings: Embeddings | None = None,
    must_exist: bool = False,
) -> "PassageStore":
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
        must_exist: Whether a missing collection is an error.

    Raises:
        SettingsError: A setting is out of range, or settings contradict each other.
        StoreError: The store is missing, locked, unreachable, or was indexed otherwise.
    """
    place = place_of(path, url)
    client = connect(path, url, api_key=api_key, must_exist=must_exist)
    try:
        with reaching(place):
            vectorstore = open_collection(
                client, collection, mode=mode, embeddings=embeddings, must_exist=must_exist
            )
    except BaseException:
        client.close()
        raise
    return PassageStore(vectorstore, place=place, embedded=url is None)


class PassageStore:
    """Passages in one Qdrant collection; `open_store` makes it.

    Attributes:
        vectorstore: The LangChain vector store on the same client and collection. Its own hybrid
            search fuses otherwise and keeps no scores; `search` is the one to rank by.
        mode: How the collection was indexed.
    """

    def __init__(self, vectorstore: QdrantVectorStore, *, place: str, embedded: bool) -> None:
        self.vectorstore = vectorstore
        self.mode: Mode = vectorstore.retrieval_mode.value
        self._place = place
        self._embedded = embedded
        self._closed = False
        # Qdrant's embedded mode is not made for threads, e.g. for searches while passages come in.
        self._lock = Lock()
        self._hinted = False
        self._hint_if_large()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(
        self,
        passages: Iterable[Document],
        *,
        batch_size: int = 256,
        on_progress: Callable[[int], None] | None = None,
        build: Build | None = None,
    ) -> int:
        """Index passages as they come; return how many were written.

        A passage replaces the one with the same id, so that indexing a source twice changes
        nothing. One without an id gets an id from its text. The title, if the metadata has one,
        is matched with the text but not stored in it.

        Args:
            passages: Read one batch at a time.
            batch_size: Passages written at once, >= 1.
            on_progress: Called after each batch with the passages written so far.
            build: Makes the points of batches elsewhere, in order; here if None.

        Raises:
            InputError: A passage has no text, or metadata that is no JSON; earlier batches stay.
            StoreError: The store cannot be reached.
        """
        _check_at_least_one("batch_size", batch_size)
        written = 0
        for points in (build or self._build)(_batches(passages, batch_size)):
            with self._open(), quiet():
                self.vectorstore.client.upsert(self.vectorstore.collection_name, points=points)
            written += len(points)
            if on_progress is not None:
                on_progress(written)
        self._hint_if_large()
        return written

    def search(
        self, question: str, k: int = 30, *, where: Mapping[str, Any] | None = None
    ) -> list[Document]:
        """Return the best *k* passages with their ids, metadata, and first-stage score and rank.

        The metadata gains `retrieval_rank`, from 1, and `retrieval_score`: BM25 (> 0), cosine in
        [-1, 1], or fused ranks, which are comparable within one search only; no score is ever a
        threshold here. Equal scores are ordered by id, whatever order passages were indexed in.

        Args:
            question: Any text; it is never parsed as a query language.
            k: Most passages returned, >= 1.
            where: Conditions on metadata, see `deepera_graph.retrieval.filters.build_filter`.

        Raises:
            InputError: The question is blank.
            SettingsError: *k* or *where* is out of range.
            StoreError: The store cannot be reached.
        """
        if not question.strip():
            raise InputError("the question is empty")
        _check_at_least_one("k", k)
        conditions = build_filter(where)
        probes = build_probes(self.vectorstore, question)
        with self._open():
            ranked = rank_points(self.vectorstore, probes, k, conditions)
        return [
            read_point(found.point, score=found.score, rank=rank)
            for rank, found in enumerate(ranked, start=1)
        ]

    async def asearch(
        self, question: str, k: int = 30, *, where: Mapping[str, Any] | None = None
    ) -> list[Document]:
        """Return what `search` returns, from a thread."""
        return await asyncio.to_thread(self.search, question, k, where=where)

    def count(self) -> int:
        """Return how many passages there are."""
        with self._open():
            return self.vectorstore.client.count(self.vectorstore.collection_name).count

    def close(self) -> None:
        """Let go of the folder or the connection; passages in memory are gone."""
        self._closed = True
        self.vectorstore.client.close()

    def _build(self, batches: Iterable[list[Document]]) -> Iterator[list[models.PointStruct]]:
        return (build_points(self.vectorstore, batch) for batch in batches)

    def _hint_if_large(self) -> None:
        if self._embedded and not self._hinted and self.count() > LARGE:
            self._hinted = True
            _logger.warning(_SLOW, self.count())

    @contextmanager
    def _open(self) -> Iterator[None]:
        if self._closed:
            raise StoreError("this passage store is closed")
        with self._lock if self._embedded else nullcontext(), reaching(self._place):
            yield


def _batches(passages: Iterable[Document], size: int) -> Iterator[list[Document]]:
    iterator = iter(passages)
    while batch := list(islice(iterator, size)):
        yield batch


def _check_at_least_one(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"{name} must be a whole number >= 1, got {value!r}")
