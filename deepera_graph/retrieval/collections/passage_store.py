"""A store of passages in Qdrant that keeps first-stage scores and ranks."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, Self
from uuid import UUID

from langchain_core.documents import Document
from langchain_qdrant import QdrantVectorStore
from qdrant_client import QdrantClient, models

from deepera_graph.errors import InputError, SettingsError, StoreError
from deepera_graph.passages import check_length
from deepera_graph.retrieval import MOST_COUNTED, Where, conditions, read_where, search
from deepera_graph.retrieval.collections.collection import DENSE_NAME, Mode
from deepera_graph.retrieval.collections.connection import (
    Journal,
    hide_hints,
    set_journal,
    wrap_errors,
)
from deepera_graph.retrieval.fusion import in_thread
from deepera_graph.retrieval.kept_files import FiledPassage, Origin, read_origin
from deepera_graph.retrieval.search import FUSIONS, Fusion, Near, StoredPassage, Vectors
from deepera_graph.settings.ranges import check_at_least, check_choice
from deepera_graph.stores.embeddings import name_embeddings
from deepera_graph.stores.words import name_passage

LARGE = 20_000
_OF_FILES = [search.ID, search.FILE, f"{conditions.METADATA}.source"]
_AT_ONCE = 4096  # passages that are read without texts, or deleted
LINKS = 16  # of a vector to others in HNSW, Qdrant's default m
_SLOW = "%d passages in an embedded store: every search reads all of them, a Qdrant server does not"
_logger = logging.getLogger(__name__)


class PassageStore:
    """Passages in one Qdrant collection; `open_store` makes it.

    Attributes:
        vectorstore: The LangChain vector store on the same client and collection. Its own hybrid
            search fuses otherwise and keeps no scores; `search` is the one to rank by.
        mode: How the collection was indexed.
        is_new: Whether it was made when this store was opened.
        folder: Where an embedded store has the files of this collection, and what else belongs to
            it, which goes when the collection is deleted; None in memory and on a server.

    Raises:
        StoreError: In every method that asks the store: it cannot be reached.
    """

    def __init__(
        self,
        vectorstore: QdrantVectorStore,
        *,
        place: str,
        embedded: bool,
        is_new: bool = False,
        folder: Path | None = None,
    ) -> None:
        self.vectorstore = vectorstore
        self.folder = folder
        self.mode: Mode = vectorstore.retrieval_mode.value
        self._place = place
        self._embedded = embedded
        self.is_new = is_new
        self._closed = False
        # Qdrant's embedded mode is not made for threads, e.g. for searches while passages come in.
        self._lock = Lock()
        self._hinted = self._has_journal = False
        self._hint_if_large()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(
        self,
        passages: Iterable[Document],
        *,
        vectors: Iterable[Sequence[float]] | None = None,
        files: Mapping[str, Origin] | None = None,
        batch_size: int = 256,
        on_progress: Callable[[int], None] | None = None,
    ) -> int:
        """Index passages as they come; return how many were written.

        A passage replaces the one with the same id, so that indexing a source twice changes
        nothing. One without an id gets an id from its text. The title, if the metadata has one,
        is matched with the text but not stored in it.

        Args:
            passages: Read one batch at a time.
            vectors: Their dense vectors, where the store's embeddings have made them before.
            files: Of which files they are, by their ids; it is looked up as they are written.
            batch_size: Passages written at once, >= 1.
            on_progress: Called after each batch with the passages written so far.

        Raises:
            InputError: A passage has no text, or metadata that is no JSON; earlier batches stay.
        """
        check_at_least("batch_size", batch_size, 1)
        written, rest = 0, iter(passages)
        known = None if vectors is None else iter(vectors)
        while batch := list(islice(rest, batch_size)):
            self.put(batch, None if known is None else list(islice(known, len(batch))), files)
            written += len(batch)
            if on_progress is not None:
                on_progress(written)
        self._hint_if_large()
        return written

    def put(
        self,
        passages: Sequence[Document],
        vectors: Vectors | None = None,
        files: Mapping[str, Origin] | None = None,
    ) -> None:
        """Index one batch as `add` does, with dense *vectors* if they were made before.

        Raises:
            InputError: A passage has no text, or metadata that is no JSON.
        """
        points = search.build_points(self.vectorstore, passages, vectors, files)
        self._set_journal("WAL")
        with self._open() as (client, name), hide_hints():
            client.upsert(name, points=points)

    def put_metadata(self, passages: Sequence[Document]) -> None:
        """Write the metadata of passages that are there; their vectors stay."""
        changes = [
            models.OverwritePayloadOperation(
                overwrite_payload=models.SetPayload(
                    payload=search.build_payload(name, one), points=[search.number_point(name)]
                )
            )
            for one in passages
            for name in [name_passage(one)]
        ]
        if changes:
            with self._open() as (client, name):
                client.batch_update_points(name, changes)

    def remove(self, ids: Sequence[str]) -> None:
        """Delete passages by their ids; those that are not there are no matter."""
        numbers: list[int | str | UUID] = [search.number_point(one) for one in ids]
        for start in range(0, len(numbers), _AT_ONCE):
            with self._open() as (client, name):
                client.delete(name, points_selector=numbers[start : start + _AT_ONCE])

    def defer_links(self) -> None:
        """Have a server take passages without linking their vectors, until `build_links`.

        Loading millions is several times as fast so; searches compare all vectors meanwhile.

        Raises:
            SettingsError: The store is embedded: it compares all vectors.

        Source:
            https://qdrant.tech/documentation/database-tutorials/bulk-upload/
        """
        self._tune_server(hnsw_config=models.HnswConfigDiff(m=0))

    def build_links(self) -> None:
        """Have a server link the vectors (HNSW), if that was deferred; it does so by itself then.

        Raises:
            SettingsError: The store is embedded.
        """
        with self._open() as (client, name):
            links = client.get_collection(name).config.hnsw_config.m
        if not links:
            self._tune_server(hnsw_config=models.HnswConfigDiff(m=LINKS))

    def compress(self) -> None:
        """Have a server keep vectors of one byte a dimension in memory, the whole ones on disk.

        The best of a search are scored again by the whole ones.

        Raises:
            SettingsError: The store is embedded.

        Source:
            https://qdrant.tech/documentation/guides/quantization/
        """
        scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
        self._tune_server(
            quantization_config=models.ScalarQuantization(scalar=scalar),
            vectors_config={DENSE_NAME: models.VectorParamsDiff(on_disk=True)},
        )

    def _tune_server(self, **how: Any) -> None:
        if self._embedded:
            raise SettingsError("only a Qdrant server has an index of vectors that can be tuned")
        if self.mode != "sparse":
            with self._open() as (client, name):
                client.update_collection(name, **how)

    def search(
        self, question: str, k: int = 30, *, where: Where | None = None, fusion: Fusion = "ranks"
    ) -> list[Document]:
        """Return the best *k* passages with their ids, metadata, and first-stage score and rank.

        The metadata gains `retrieval_rank`, from 1, and `retrieval_score`: BM25 (> 0), cosine in
        [-1, 1], or fused ranks, which are comparable within one search only; no score is ever a
        threshold here. Equal scores are ordered by id, whatever order passages were indexed in.

        Args:
            question: Any text; it is never parsed as a query language.
            k: Most passages returned, >= 1.
            where: Conditions on metadata, see `deepera_graph.retrieval.conditions.build_filter`.
            fusion: How a hybrid store joins both rankings: by ``ranks``, which keeps what one of
                them puts first (see `fuse`), or by ``scores``, which orders better where every
                place counts (see `fuse_scores`).

        Raises:
            InputError: The question is blank or too long.
            SettingsError: *k*, *where* or *fusion* is out of range.
        """
        if not question.strip():
            raise InputError("the question is empty")
        check_length(question)
        check_at_least("k", k, 1)
        check_choice("fusion", fusion, FUSIONS)
        limits = conditions.build_filter(where)
        probes = search.build_probes(self.vectorstore, question)
        with self._open():
            ranked = search.rank_points(self.vectorstore, probes, k, limits, fusion)
        return [
            search.read_point(found.point, score=found.score, rank=rank)
            for rank, found in enumerate(ranked, start=1)
        ]

    def fetch(self, ids: Sequence[str], *, where: Where | None = None) -> list[Document]:
        """Return passages by their ids, in this order; those that are not there are left out.

        Args:
            ids: As `search` returns them.
            where: Conditions on metadata that they must meet, as for `search`.

        Raises:
            SettingsError: *where* is out of range.
        """
        names = list(dict.fromkeys(ids))
        limits = conditions.build_filter(where)
        with self._open():
            found = search.fetch_points(self.vectorstore, names, limits)
        return [found[name] for name in names if name in found]

    def count_unknown(
        self, question: str, where: Where | None, *, most: int = MOST_COUNTED
    ) -> dict[str, int]:
        """Return how many passages on a question have nothing that a condition compares.

        By field; each count is of passages that meet the other conditions, and at most *most*.
        """
        asked = read_where(where)
        probes = search.build_probes(self.vectorstore, question) if asked else []
        found: dict[str, int] = {}
        for name, value in asked.items():
            unknown = conditions.build_unknown(name, value)
            if unknown is None:
                continue
            others = {other: one for other, one in asked.items() if other != name}
            must = [conditions.build_condition(other, one) for other, one in others.items()]
            limits = models.Filter(must=[*must, unknown])
            with self._open():
                ranked = search.rank_points(self.vectorstore, probes, most, limits)
            found |= {name: len(ranked)} if ranked else {}
        return found

    asearch, afetch = in_thread(search), in_thread(fetch)

    def scan(self, *, vectors: bool = False, batch_size: int = 256) -> Iterator[StoredPassage]:
        """Yield all passages, and their dense vectors if *vectors*.

        Raises:
            SettingsError: Vectors are asked for, and the store has none.
        """
        if vectors and self.mode == "sparse":
            raise SettingsError("a sparse store has no vectors of meaning")
        held: bool | list[str] = [DENSE_NAME] if vectors else False
        for found in self._scroll(batch_size, with_payload=True, with_vectors=held):
            yield from map(search.read_stored, found)

    def scan_files(self) -> Iterator[FiledPassage]:
        """Yield the ids of all passages, with the files they are of."""
        for found in self._scroll(_AT_ONCE, with_payload=_OF_FILES):
            for one in found:
                id, payload = search.point_id(one), one.payload or {}
                source = (payload.get(conditions.METADATA) or {}).get("source")
                yield FiledPassage(id, read_origin(id, payload.get(search.FILE), source))

    def _scroll(self, n: int, **how: Any) -> Iterator[list[models.Record]]:
        """Yield all points, *n* at once."""
        offset: Any = None
        while True:
            with self._open() as (client, name):
                found, offset = client.scroll(name, limit=n, offset=offset, **how)
            yield found
            if offset is None:
                return

    def search_near(self, vectors: Sequence[Sequence[float]], k: int) -> list[list[Near]]:
        """Return for each vector the best *k* passages by meaning, with their cosines.

        On a server this is its own, approximate search.
        """
        with self._open():
            return search.find_near(self.vectorstore, vectors, k)

    @property
    def is_on_server(self) -> bool:
        """Whether a Qdrant server holds the passages, and not this process."""
        return not self._embedded

    def count(self) -> int:
        """Return how many passages there are."""
        with self._open() as (client, name):
            return client.count(name).count

    @property
    def embeddings_name(self) -> str | None:
        """The class of the embeddings, and their model if they tell it; None if there are none."""
        embeddings = self.vectorstore.embeddings
        return None if embeddings is None else name_embeddings(embeddings)

    def has_field(self, name: str) -> bool:
        """Tell whether any passage has a metadata field, as conditions name it, with a value."""
        given = models.Filter(must_not=[conditions.build_condition(name, None)])
        with self._open() as (client, collection):
            return bool(client.count(collection, count_filter=given).count)

    def field_names(self, n: int = 200) -> list[str]:
        """Return which metadata the first *n* passages have, in alphabetical order."""
        with self._open() as (client, collection):
            found, _ = client.scroll(collection, limit=n, with_payload=True)
        names = {
            name for one in found for name in (one.payload or {}).get(conditions.METADATA) or {}
        }
        return sorted(map(str, names))

    def drop_if_new(self) -> None:
        """Delete the collection if it was made when this store was opened, and holds nothing."""
        if self.is_new and not self.count():
            with self._open() as (client, name):
                client.delete_collection(name)

    def close(self) -> None:
        """Let go of the folder or the connection; passages in memory are gone."""
        if not self._closed and self._has_journal:
            self._set_journal("DELETE")  # a log cannot be read where nothing can be written
        self._closed = True
        self.vectorstore.client.close()

    def _set_journal(self, mode: Journal) -> None:
        if self.folder is None or self._has_journal == (mode == "WAL"):
            return
        with self._lock:
            if set_journal(self.vectorstore.client, self.vectorstore.collection_name, mode):
                self._has_journal = mode == "WAL"

    def _hint_if_large(self) -> None:
        if self._embedded and not self._hinted and self.count() > LARGE:
            self._hinted = True
            _logger.warning(_SLOW, self.count())

    @contextmanager
    def _open(self) -> Iterator[tuple[QdrantClient, str]]:
        """Lend the client, and the name of the collection."""
        if self._closed:
            raise StoreError("this passage store is closed")
        with self._lock if self._embedded else nullcontext(), wrap_errors(self._place):
            yield self.vectorstore.client, self.vectorstore.collection_name
