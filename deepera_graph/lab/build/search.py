"""Chunks by their vectors: embedded into a file and searched; documents like no others go."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from langchain_core.documents import Document as Passage
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from scipy.sparse import csr_array  # type: ignore[import-untyped]  # has no stubs
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]  # as above
from sklearn.decomposition import TruncatedSVD  # type: ignore[import-untyped]  # as above
from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]  # as above

from deepera_graph.calibration.instance import DatasetError
from deepera_graph.jobs.cluster import Here, Workers
from deepera_graph.lab.build.corpus import STAGE, Chunk, Corpus, DropRecord
from deepera_graph.lab.construction import RowSink
from deepera_graph.lab.settings import BuildPlan
from deepera_graph.retrieval.collections.passage_store import PassageStore
from deepera_graph.stores.embeddings import Floats as Vectors
from deepera_graph.stores.embeddings import map_rows, unit_rows, write_rows
from deepera_graph.stores.nearest import NOBODY, Meanings, Nearest, stack
from deepera_graph.text.jsonl import naming_full_file

_logger = logging.getLogger(__name__)
MakeEmbeddings = Callable[[], Embeddings]
DIMENSIONS = 128
_BATCH = 256  # texts embedded at once
_DOCUMENTS = "documents.npy"
_STAMP = 12  # characters of a hash in names of files
_BLOCK = 4_096  # rows looked at together
_N_NEIGHBOURS = 10
_FENCE = 1.5  # interquartile ranges
_LEAST_SPREAD = 0.1  # where most documents have a twin, the others are no outliers
_ROUNDING = 1e-6
_DECIMALS = 6
_MARGIN = 16


# Vectors


# Source: Deerwester et al. (1990), Indexing by latent semantic analysis; scikit-learn's
# `TruncatedSVD` with its seed set to 0.
class LsaEmbeddings(Embeddings):
    """Unit vectors fitted to at least two texts: TF-IDF, cut down to 128 dimensions; no model."""

    model = f"lsa-{DIMENSIONS}"

    def __init__(self, texts: Sequence[str]) -> None:
        if len(texts) < 2:
            raise DatasetError(f"at least 2 chunks of text are needed, got {len(texts)}")
        self._words = TfidfVectorizer(sublinear_tf=True, stop_words="english", max_df=0.5)
        try:
            counts = self._words.fit_transform(texts)
        except ValueError as error:
            raise DatasetError(
                f"{len(texts)} chunks cannot be embedded: no word tells one from another"
            ) from error
        size = min(DIMENSIONS, *(side - 1 for side in counts.shape))
        if size < 1:
            raise DatasetError(f"{len(texts)} texts are too few to be embedded")
        found = TruncatedSVD(size, random_state=0).fit(counts).components_
        self._axes = np.ascontiguousarray(found.T)  # (n_terms, size): a text takes a few rows of it

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text; shape (n_texts, n_dimensions)."""
        if not texts:
            return []
        raw = np.asarray(self._words.transform(texts) @ self._axes, dtype=np.float64)
        lengths = np.linalg.norm(raw, axis=1, keepdims=True)
        rows: list[list[float]] = (raw / np.where(lengths > 0, lengths, 1)).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text; shape (n_dimensions,)."""
        return self.embed_documents([text])[0]

    def describe(self) -> dict[str, Any]:
        """Return what the vectors depend on besides the corpus."""
        return {"name": self.model, "library": f"scikit-learn {version('scikit-learn')}"}


def embed_chunks(
    corpus: Corpus,
    embeddings: Embeddings | MakeEmbeddings,
    *,
    identity: str,
    folder: Path | None = None,
    workers: Workers | None = None,
) -> Vectors:
    """Return vectors of length 1 of all chunks, in order; shape (n_chunks, n_dimensions)."""
    # With a folder they are kept there in single precision, and a run that was cut off goes on
    # after the last whole batch, as long as *identity*, the name of the embeddings, and the corpus
    # are the same. Workers in other processes are given the embeddings, or what makes them.
    n_chunks = len(corpus.owners())
    whole = sha256(f"{identity}\0{corpus.fingerprint}\0{n_chunks}".encode()).hexdigest()
    path = None if folder is None else folder / f"chunks-{whole[:_STAMP]}.npy"
    if path is not None:
        _remove_others(path)
    n_there = len(map_rows(path)) if path and path.exists() else 0
    n_done = n_there if n_there == n_chunks else n_there // _BATCH * _BATCH
    texts = islice(corpus.texts(), n_done, None)
    blocks = (workers or Here()).map(_embed_batch, _take_batches(texts), embeddings)
    return _keep_rows(path, blocks, n_done)


def _remove_others(path: Path) -> None:
    """Remove vectors of other embeddings or chunks, and those of 0.9 or an older version."""
    for other in {*path.parent.glob("chunks*")} - {path}:
        if other.suffix == ".f32":
            _logger.warning("%s was written by an older version: embedding again", other)
        other.unlink()


def _keep_rows(path: Path | None, blocks: Iterable[Vectors], n_done: int = 0) -> Vectors:
    """Write blocks of rows after the first *n_done* of a file, if there is one; return all rows."""
    if path is None:
        return np.concatenate(list(blocks))
    path.parent.mkdir(parents=True, exist_ok=True)
    for block in blocks:
        with naming_full_file(path), path.open("r+b" if n_done else "w+b") as file:
            write_rows(file, block, since=n_done)
        n_done += len(block)
    return map_rows(path)


def _take_batches(texts: Iterator[str]) -> Iterator[list[str]]:
    while batch := list(islice(texts, _BATCH)):
        yield batch


def _embed_batch(embeddings: Embeddings | MakeEmbeddings, texts: list[str]) -> Vectors:
    return unit_rows(open_embeddings(embeddings).embed_documents(texts))


def open_embeddings(embeddings: Embeddings | MakeEmbeddings) -> Embeddings:
    """Return embeddings, made once in this process."""
    return embeddings if isinstance(embeddings, Embeddings) else _make_once(embeddings)


@lru_cache(maxsize=1)
def _make_once(make: MakeEmbeddings) -> Embeddings:
    return make()


def average_by_document(
    vectors: Vectors, owners: NDArray[np.int32], *, folder: Path | None = None
) -> Vectors:
    """Return the mean direction of the chunks of each document; shape (n_documents, size)."""
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    ends = np.append(starts[1:], len(owners))
    blocks = (
        unit_rows(
            np.add.reduceat(
                np.asarray(vectors[starts[first] : ends[last - 1]]),
                starts[first:last] - starts[first],
                axis=0,
            )
        )
        for first in range(0, len(starts), _BLOCK)
        for last in [min(first + _BLOCK, len(starts))]
    )
    return _keep_rows(folder and folder / _DOCUMENTS, blocks)


# Documents that are like no others


def drop_unconnected(
    corpus: Corpus,
    vectors: Vectors,
    plan: BuildPlan,
    drops: RowSink,
    *,
    folder: Path | None = None,
    workers: Workers | None = None,
) -> None:
    """Leave weakly connected documents out of a corpus; they go to *drops*."""
    n_documents = len(corpus.documents)
    if plan.min_group <= 1 or n_documents < 2:
        return
    rows = average_by_document(vectors, corpus.owners(), folder=folder)
    nearest = find_neighbours(rows, folder=folder, workers=workers)
    least = find_fence(nearest.scores[:, 0]) if plan.min_similarity is None else plan.min_similarity
    mask = group_connected(nearest, min_similarity=least, min_size=plan.min_group)
    if not mask.any():
        raise DatasetError(
            f"all {n_documents} documents are weakly connected: no group of at least "
            f"{plan.min_group} is joined by cosines of {least:g} or more; lower the least group "
            "(1 keeps all documents) or the least similarity"
        )
    corpus.min_similarity = least
    for id in corpus.leave_out(~mask):
        drops.append(DropRecord(stage=STAGE, document=id, reason="weakly-connected"))


# Source: Tukey (1977), Exploratory Data Analysis, section 2D: what lies beyond the lower fence, 1.5
# interquartile ranges below the lower quartile, is outside.
def find_fence(nearest: NDArray[np.floating[Any]]) -> float:
    """Return the cosine below which a document is unusually far from its nearest neighbour."""
    # *nearest* has shape (n_documents,); where no document stands out, none is below the fence.
    low, high = np.percentile(nearest, [25, 75])
    spread = max(float(high - low), _LEAST_SPREAD)
    return round(max(-1.0, float(low) - _FENCE * spread), _DECIMALS)


def find_neighbours(
    vectors: Vectors,
    *,
    n_neighbours: int = _N_NEIGHBOURS,
    folder: Path | None = None,
    workers: Workers | None = None,
) -> Nearest:
    """Return the nearest documents of each by cosine, by comparing all with all."""
    n = len(vectors)
    k = min(n_neighbours, n - 1)
    blocks = (np.arange(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK))
    if workers is not None and workers.is_elsewhere and folder is not None:
        shared = (folder / _DOCUMENTS, k)
        return stack(list(workers.map(_find_block_in_file, blocks, shared)), k)
    return stack(list(Here().map(_find_block, blocks, (vectors, k))), k)


def _find_block_in_file(shared: tuple[Path, int], rows: NDArray[np.intp]) -> Nearest:
    path, k = shared
    return _find_block((map_rows(path), k), rows)


def _find_block(shared: tuple[Vectors, int], rows: NDArray[np.intp]) -> Nearest:
    vectors, k = shared
    return Meanings(vectors).nearest(rows, k, np.arange(len(vectors)))


def group_connected(nearest: Nearest, *, min_similarity: float, min_size: int) -> NDArray[np.bool_]:
    """Tell which documents belong to a group of enough similar ones; shape (n_documents,)."""
    # Joined are near neighbours of a high cosine; groups are components. Unlike density clustering
    # (HDBSCAN) this splits no large topic, and the order of documents does not matter.
    # Source: DeepEra, section 6.1, filters weakly connected documents by clustering and does not
    # say how.
    n = len(nearest.places)
    joined = (nearest.scores >= min_similarity - _ROUNDING) & (nearest.places != NOBODY)
    rows = np.repeat(np.arange(n, dtype=np.int32), joined.sum(axis=1))
    edges = (np.ones(len(rows), np.int8), (rows, nearest.places[joined]))
    _, group = connected_components(csr_array(edges, shape=(n, n)), directed=False)
    kept: NDArray[np.bool_] = np.bincount(group)[group] >= min_size
    return kept


# Search


@dataclass(frozen=True, slots=True)
class PoolChunk:
    """A chunk in a pool: its place in retrieval from 1 and its cosine, None if it was put in."""

    chunk: Chunk
    rank: int | None
    score: float | None


class ChunkIndex(Protocol):
    """What finds candidates for a question; their order is settled by exact cosines."""

    def find(self, question: str, vector: NDArray[np.float64], n: int) -> list[int]:
        """Return the places of about the *n* chunks with the highest cosines."""
        ...


class ExactIndex:
    """Compares a question with all chunks, a block of rows at a time."""

    def __init__(self, vectors: Vectors, corpus: Corpus) -> None:
        self._vectors = vectors
        self._left_out = ~corpus.kept()[corpus.owners()]

    def find(self, question: str, vector: NDArray[np.float64], n: int) -> list[int]:
        """Return the places of the *n* chunks with the highest cosines."""
        asked = vector.astype(np.float32)
        scores = np.concatenate(
            [
                self._vectors[start : start + _BLOCK] @ asked
                for start in range(0, len(self._vectors), _BLOCK)
            ]
        )
        scores[self._left_out] = -np.inf
        n = min(n, int(np.isfinite(scores).sum()))
        return [int(place) for place in np.argpartition(-scores, n - 1)[:n]] if n else []


class StoreIndex:
    """Asks a passage store, e.g. on a Qdrant server, which is filled unless it is full already."""

    def __init__(self, vectors: Vectors, corpus: Corpus, store: PassageStore) -> None:
        self._corpus, self._store = corpus, store
        if store.count() != corpus.n_chunks:
            self._fill(vectors)

    def find(self, question: str, vector: NDArray[np.float64], n: int) -> list[int]:
        """Return the places of the *n* chunks that the store finds."""
        [found] = self._store.search_near([vector.tolist()], n)
        return self._corpus.find_chunks([one.id for one in found])

    def _fill(self, vectors: Vectors) -> None:
        chunks = iter(self._corpus)
        while batch := list(islice(chunks, _BATCH)):
            rows = vectors[self._corpus.find_chunks([one.id for one in batch])]
            passages = [
                Passage(id=one.id, page_content=one.text, metadata={"document": one.document})
                for one in batch
            ]
            self._store.add(passages, batch_size=_BATCH, vectors=rows.tolist())


class ChunkSearch:
    """The chunks of a corpus, found by the cosine of their vectors."""

    def __init__(
        self,
        corpus: Corpus,
        vectors: Vectors,
        embeddings: Embeddings,
        index: ChunkIndex | None = None,
    ) -> None:
        self._corpus, self._vectors, self._embeddings = corpus, vectors, embeddings
        self._index = index or ExactIndex(vectors, corpus)

    async def find_nearest(self, question: str, n: int) -> tuple[PoolChunk, ...]:
        """Return the best *n* chunks, best first; equal scores are in order of their ids."""
        return await asyncio.to_thread(self._find_nearest, question, n)

    async def measure_similarity(self, question: str, text: str) -> float:
        """Return the cosine of a question with a text that need not be in the corpus, [-1, 1]."""
        return await asyncio.to_thread(self._measure_similarity, question, text)

    def sample_texts(self, n: int) -> list[str]:
        """Return the texts of at most *n* chunks, evenly spread."""
        return self._corpus.sample_texts(n)

    def _find_nearest(self, question: str, n: int) -> tuple[PoolChunk, ...]:
        """Sort by cosines in double precision, a few more than wanted: the last digits differ."""
        vector = np.asarray(self._embeddings.embed_query(question), dtype=np.float64)
        places = self._index.find(question, vector, n + _MARGIN)
        scores = _measure_cosines(vector, self._vectors[np.asarray(places, np.intp)])
        found = zip(scores, self._corpus.read_chunks(places), strict=True)
        best = sorted(found, key=lambda pair: (-pair[0], pair[1].id))
        return tuple(
            PoolChunk(chunk, rank, score) for rank, (score, chunk) in enumerate(best[:n], start=1)
        )

    def _measure_similarity(self, question: str, text: str) -> float:
        vector = np.asarray(self._embeddings.embed_query(question), dtype=np.float64)
        return _measure_cosines(vector, self._embeddings.embed_documents([text]))[0]


def _measure_cosines(
    vector: NDArray[np.float64], rows: Sequence[Sequence[float]] | Vectors
) -> list[float]:
    """Return cosines in double precision, rounded; 0 where a vector is zero."""
    found = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(vector)
    scores: list[float] = (found @ vector / np.where(lengths > 0, lengths, 1)).tolist()
    return [round(one, _DECIMALS) + 0.0 for one in scores]
