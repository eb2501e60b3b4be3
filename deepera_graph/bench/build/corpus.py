"""The corpus of a build: documents cut into chunks, embedded and searched; loners left out."""

import asyncio
import base64
import re
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from itertools import pairwise
from typing import Any, Self

import numpy as np
from langchain_core.documents import Document as Passage
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from scipy.sparse import csr_array  # type: ignore[import-untyped]  # has no stubs
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]  # as above
from sklearn.decomposition import TruncatedSVD  # type: ignore[import-untyped]  # has no stubs
from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]  # ditto
from sklearn.neighbors import NearestNeighbors  # type: ignore[import-untyped]  # as above

from deepera_graph.bench.build.plan import BuildPlan, DropRecord
from deepera_graph.bench.data.instance import DatasetError
from deepera_graph.cache.role import cache_key
from deepera_graph.cache.store import JudgementCache
from deepera_graph.errors import SettingsError
from deepera_graph.retrieval.store import open_store
from deepera_graph.retrieval.vectors import unit_rows
from deepera_graph.text.words import split_sentences

STAGE = "documents"
DIMENSIONS = 128
_TOKEN = re.compile(r"\w+|[^\w\s]")
_WEAKEST = 5.0  # percentile
_ROUNDING = 1e-6
_BATCH = 256
_DECIMALS = 6
_MARGIN = 16


class Section(BaseModel):
    """A part of a document under one heading, e.g. the methods of a structured abstract."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(default="", description="Heading as printed; empty where there is none.")
    text: str = Field(description="Its text, without the heading.")


class Document(BaseModel):
    """What a corpus holds under one id; `text` is blank where the source has none."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = Field(min_length=1, description="Names the document within its corpus.")
    title: str = Field(default="", description="Its title.")
    text: str = Field(description="Abstract or full text.")
    subject: str = Field(default="", description="Field of science.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="What else is known.")
    sections: tuple[Section, ...] = Field(
        default=(), description="The text cut by its headings, in order; empty if not known."
    )

    @classmethod
    def of_sections(cls, id: str, sections: Sequence[Section], **fields: Any) -> Self:
        """Make a document whose text is its sections, an empty line between two."""
        text = "\n\n".join(section.text for section in sections)
        return cls(id=id, text=text, sections=tuple(sections), **fields)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of whole sentences of one document; `id` is the document's with its place from 1."""

    id: str
    text: str
    document: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents by id, in the order they came, and the chunks of each."""

    documents: Mapping[str, Document]
    chunks: Mapping[str, tuple[Chunk, ...]]
    fingerprint: str  # SHA-256 over all `n_read` documents that came
    n_read: int
    min_similarity: float | None = None  # least cosine that connected two, None if all were kept

    def __iter__(self) -> Iterator[Chunk]:
        for own in self.chunks.values():
            yield from own

    def check_not_empty(self) -> None:
        """Raise `DatasetError` if there is nothing to make questions of."""
        if not self.documents:
            raise DatasetError(f"none of {self.n_read} documents has a text")


def read_corpus(documents: Iterable[Document], max_tokens: int, drops: list[DropRecord]) -> Corpus:
    """Cut documents into chunks; those without text, and copies, go to *drops*."""
    digest = sha256()
    kept: dict[str, Document] = {}
    chunks: dict[str, tuple[Chunk, ...]] = {}
    texts: dict[str, str] = {}
    n_read = 0
    for document in documents:
        n_read += 1
        fields = (document.id, document.title, document.text, document.subject)
        digest.update("\0".join(fields).encode("utf-8", "surrogatepass") + b"\1")
        text = " ".join(document.text.split())
        reason = detail = ""
        if not text:
            reason = "no-text"
        elif document.id in kept:
            reason = "id-used-twice"
        elif text in texts:
            reason, detail = "same-text", f"as document {texts[text]}"
        if reason:
            drops.append(
                DropRecord(stage=STAGE, document=document.id, reason=reason, detail=detail)
            )
            continue
        kept[document.id] = document
        texts[text] = document.id
        chunks[document.id] = tuple(
            Chunk(f"{document.id}#{place}", piece, document.id)
            for place, piece in enumerate(cut_chunks(document.text, max_tokens=max_tokens), start=1)
        )
    return Corpus(kept, chunks, digest.hexdigest(), n_read)


def cut_chunks(text: str, *, max_tokens: int = 200) -> list[str]:
    """Cut a text into slices of whole sentences: as few as the limit allows, of like lengths."""
    # A short chunk at the end would be told from a passage written for the pool by its length.
    # Source: DeepEra, section 6.1: sentence-preserving chunks; the limit is not given there.
    if max_tokens < 1:
        raise SettingsError(f"max_tokens must be >= 1, got {max_tokens}")
    sentences = split_sentences(text, longest=sys.maxsize)
    sizes = [count_tokens(one.text) for one in sentences]
    fewest = len(_fill(sizes, max_tokens))
    least = bisect_left(
        range(1, max_tokens), True, key=lambda limit: len(_fill(sizes, limit)) <= fewest
    )
    groups = _fill(sizes, least + 1)
    return [text[sentences[start].start : sentences[end - 1].end] for start, end in groups]


def _fill(sizes: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Return [start, end) of runs, each filled up to the limit before the next one begins."""
    starts: list[int] = []
    room = 0
    for place, size in enumerate(sizes):
        if size > room:
            starts.append(place)
            room = limit
        room -= size
    return list(pairwise([*starts, len(sizes)]))


def count_tokens(text: str) -> int:
    """Count the words and punctuation marks of a text; it needs no model's vocabulary."""
    return sum(1 for _ in _TOKEN.finditer(text))


def drop_unconnected(
    corpus: Corpus, embeddings: Embeddings, plan: BuildPlan, drops: list[DropRecord]
) -> Corpus:
    """Return the corpus without weakly connected documents; they go to *drops*."""
    if plan.min_group <= 1 or len(corpus.documents) < 2:
        return corpus
    vectors = unit_rows(embeddings.embed_documents([one.text for one in corpus]))
    starts = np.cumsum([0, *map(len, corpus.chunks.values())])[:-1]
    vectors = unit_rows(np.add.reduceat(vectors, starts, axis=0))  # mean direction of a document
    least = _usual_similarity(vectors) if plan.min_similarity is None else plan.min_similarity
    mask = find_connected(vectors, min_similarity=least, min_size=plan.min_group)
    alone = {id for id, keep in zip(corpus.documents, mask, strict=True) if not keep}
    drops.extend(
        DropRecord(stage=STAGE, document=id, reason="weakly-connected")
        for id in corpus.documents
        if id in alone
    )
    if len(alone) == len(corpus.documents):
        raise DatasetError(
            f"all {len(alone)} documents are weakly connected: no group of at least "
            f"{plan.min_group} is joined by cosines of {least:g} or more; lower the least group "
            "(1 keeps all documents) or the least similarity"
        )
    kept = {id: one for id, one in corpus.documents.items() if id not in alone}
    chunks = {id: corpus.chunks[id] for id in kept}
    return replace(corpus, documents=kept, chunks=chunks, min_similarity=least)


def _usual_similarity(vectors: NDArray[np.float32]) -> float:
    """Return the cosine with its nearest neighbour that 19 of 20 documents reach, in [-1, 1]."""
    distances, _ = NearestNeighbors(n_neighbors=1, metric="cosine").fit(vectors).kneighbors()
    return round(float(np.percentile(1 - distances, _WEAKEST)), 6)


def find_connected(
    vectors: NDArray[np.float32], *, n_neighbours: int = 10, min_similarity: float, min_size: int
) -> NDArray[np.bool_]:
    """Tell which documents belong to a group of enough similar ones; shape (n_documents,)."""
    # Joined are near neighbours of a high cosine; groups are components. Unlike density clustering
    # (HDBSCAN) this splits no large topic, and the order of documents does not matter.
    # Source: DeepEra, section 6.1, filters weakly connected documents by clustering and does not
    # say how.
    if vectors.ndim != 2:
        raise SettingsError(f"vectors must have shape (n, dimensions), got {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise SettingsError("vectors must be finite numbers")
    if n_neighbours < 1 or min_size < 1:
        raise SettingsError(
            f"n_neighbours and min_size must be >= 1, got {n_neighbours} and {min_size}"
        )
    if not -1 <= min_similarity <= 1:
        raise SettingsError(f"min_similarity must be in [-1, 1], got {min_similarity}")
    n_documents = len(vectors)
    if n_documents < 2:
        return np.full(n_documents, min_size <= 1)
    nearest = NearestNeighbors(n_neighbors=min(n_neighbours, n_documents - 1), metric="cosine")
    distances, neighbours = nearest.fit(vectors).kneighbors()
    joined = distances <= 1 - min_similarity + _ROUNDING
    rows = np.repeat(np.arange(n_documents), joined.sum(axis=1))
    edges = (np.ones(len(rows)), (rows, neighbours[joined]))
    graph = csr_array(edges, shape=(n_documents, n_documents))
    _, group = connected_components(graph, directed=False)
    kept: NDArray[np.bool_] = np.bincount(group)[group] >= min_size
    return kept


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
        self._axes = TruncatedSVD(size, random_state=0).fit(counts)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text; shape (n_texts, n_dimensions)."""
        if not texts:
            return []
        raw = np.asarray(self._axes.transform(self._words.transform(texts)), dtype=np.float64)
        lengths = np.linalg.norm(raw, axis=1, keepdims=True)
        rows: list[list[float]] = (raw / np.where(lengths > 0, lengths, 1)).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text; shape (n_dimensions,)."""
        return self.embed_documents([text])[0]

    def describe(self) -> dict[str, Any]:
        """Return what the vectors depend on besides the corpus."""
        return {"name": self.model, "library": f"scikit-learn {version('scikit-learn')}"}


class CachedEmbeddings(Embeddings):
    """Embeddings that compute the vector of a text once, and keep it in single precision."""

    def __init__(self, embeddings: Embeddings, identity: str, cache: JudgementCache) -> None:
        self._embeddings, self._cache = embeddings, cache
        self.model = identity

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text; shape (n_texts, n_dimensions)."""
        keys = [self._key("text", text) for text in texts]
        found = {key: vector for key in set(keys) if (vector := self._read(key)) is not None}
        by_key = dict(zip(keys, texts, strict=True))
        missing = [(key, text) for key, text in by_key.items() if key not in found]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            made = self._embeddings.embed_documents([text for _, text in batch])
            for (key, _), vector in zip(batch, made, strict=True):
                found[key] = self._keep(key, vector)
        return [found[key] for key in keys]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question; shape (n_dimensions,)."""
        key = self._key("question", text)
        stored = self._read(key)
        return self._keep(key, self._embeddings.embed_query(text)) if stored is None else stored

    def _key(self, kind: str, text: str) -> str:
        return cache_key("vector", {kind: text}, {"embeddings": self.model})

    def _read(self, key: str) -> list[float] | None:
        value = self._cache.get(key)
        return None if value is None else _floats(base64.b64decode(value["vector"]))

    def _keep(self, key: str, vector: Sequence[float]) -> list[float]:
        """Store a vector, and return it as it will be read back."""
        data = np.asarray(vector, dtype="<f4").tobytes()
        self._cache.put(key, "vector", {"vector": base64.b64encode(data).decode()})
        return _floats(data)


def _floats(data: bytes) -> list[float]:
    vector: list[float] = np.frombuffer(data, dtype="<f4").tolist()
    return vector


@dataclass(frozen=True, slots=True)
class PoolChunk:
    """A chunk in a pool: its place in retrieval from 1 and its cosine, None if it was put in."""

    chunk: Chunk
    rank: int | None
    score: float | None


class ChunkSearch:
    """Chunks in a Qdrant store in memory, found by the cosine of their vectors."""

    def __init__(self, corpus: Corpus, embeddings: Embeddings) -> None:
        self._chunks = {chunk.id: chunk for chunk in corpus}
        self._embeddings = embeddings
        self._store = open_store("chunks", mode="dense", embeddings=embeddings)
        self._store.add(
            Passage(id=chunk.id, page_content=chunk.text, metadata={"document": chunk.document})
            for chunk in self._chunks.values()
        )

    async def find_nearest(self, question: str, n: int) -> tuple[PoolChunk, ...]:
        """Return the best *n* chunks, best first; equal scores are in order of their ids."""
        return await asyncio.to_thread(self._find_nearest, question, n)

    async def measure_similarity(self, question: str, text: str) -> float:
        """Return the cosine of a question with a text that need not be in the corpus, [-1, 1]."""
        return (await asyncio.to_thread(self._cosines, question, [text]))[0]

    def sample(self) -> Iterable[Chunk]:
        """Return the chunks of the corpus, in order."""
        return self._chunks.values()

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def _find_nearest(self, question: str, n: int) -> tuple[PoolChunk, ...]:
        """Sort by our own cosines, a few more than wanted: the store's last digits differ."""
        near = [self._chunks[str(one.id)] for one in self._store.search(question, n + _MARGIN)]
        scores = self._cosines(question, [chunk.text for chunk in near])
        best = sorted(zip(scores, near, strict=True), key=lambda pair: (-pair[0], pair[1].id))
        return tuple(
            PoolChunk(chunk, rank, score) for rank, (score, chunk) in enumerate(best[:n], start=1)
        )

    def _cosines(self, question: str, texts: list[str]) -> list[float]:
        """Return cosines in double precision, rounded; 0 where a vector is zero."""
        query = np.asarray(self._embeddings.embed_query(question), dtype=np.float64)
        rows = np.asarray(self._embeddings.embed_documents(texts), dtype=np.float64)
        lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
        found: list[float] = (rows @ query / np.where(lengths > 0, lengths, 1)).tolist()
        return [round(one, _DECIMALS) + 0.0 for one in found]
