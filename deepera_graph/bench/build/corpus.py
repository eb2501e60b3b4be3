"""The corpus of a build: documents cut into chunks, embedded, the unconnected ones left out."""

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

from deepera_graph.bench.build.plan import BuildPlan, Loss
from deepera_graph.bench.data.instance import DatasetError
from deepera_graph.bench.rankers.embedding import unit_rows
from deepera_graph.cache.role import cache_key
from deepera_graph.cache.store import JudgementCache
from deepera_graph.errors import SettingsError
from deepera_graph.retrieval.store import open_store
from deepera_graph.text.sentences import split_sentences

_TOKEN = re.compile(r"\w+|[^\w\s]")


def chunks(text: str, *, max_tokens: int = 200) -> list[str]:
    """Cut a text into slices of whole sentences: as few as the limit allows, of about one length.

    Every chunk is a verbatim slice of the text. A sentence longer than the limit stands alone. A
    blank text has none. Full chunks with a short one at the end would serve less well: a passage
    written for the same pool is told from such remnants by its length.

    Source:
        DeepEra, section 6.1: sentence-preserving chunks; the limit is not given there.
    """
    if max_tokens < 1:
        raise SettingsError(f"max_tokens must be >= 1, got {max_tokens}")
    sentences = split_sentences(text, longest=sys.maxsize)
    sizes = [n_tokens(one.text) for one in sentences]
    fewest = len(_filled(sizes, max_tokens))
    least = bisect_left(
        range(1, max_tokens), True, key=lambda limit: len(_filled(sizes, limit)) <= fewest
    )
    groups = _filled(sizes, least + 1)
    return [text[sentences[start].start : sentences[end - 1].end] for start, end in groups]


def _filled(sizes: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Return [start, end) of runs, each filled up to the limit before the next one begins."""
    starts: list[int] = []
    room = 0
    for place, size in enumerate(sizes):
        if size > room:
            starts.append(place)
            room = limit
        room -= size
    return list(pairwise([*starts, len(sizes)]))


def n_tokens(text: str) -> int:
    """Return the words and punctuation marks of a text; it needs no model's vocabulary."""
    return sum(1 for _ in _TOKEN.finditer(text))


def connected(
    vectors: NDArray[np.float32],
    *,
    n_neighbours: int = 10,
    min_similarity: float,
    min_size: int,
) -> NDArray[np.bool_]:
    """Return which documents belong to a group of enough similar ones; shape (n_documents,).

    Two documents are joined if one is among the nearest of the other and their cosine is high
    enough. Groups are the connected components of that graph. Unlike density clustering (HDBSCAN)
    this leaves both limits to the caller, splits no large topic, never calls the rim of one noise,
    and gives the same answer whatever the order of the documents.

    Source:
        DeepEra, section 6.1, filters weakly connected documents by clustering and does not say
        how.
    """
    _check(vectors, n_neighbours, min_similarity, min_size)
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


_ROUNDING = 1e-6


def _check(
    vectors: NDArray[np.float32], n_neighbours: int, min_similarity: float, min_size: int
) -> None:
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


STAGE = "documents"
_WEAKEST = 5.0  # percentile


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of whole sentences of one document; `id` is the document's with its place from 1."""

    id: str
    text: str
    document: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents and their chunks."""

    documents: Mapping[str, Document]
    chunks: Mapping[str, tuple[Chunk, ...]]
    fingerprint: str
    n_read: int
    min_similarity: float | None = None

    def __iter__(self) -> Iterator[Chunk]:
        for own in self.chunks.values():
            yield from own


def read_corpus(documents: Iterable[Document], max_tokens: int, losses: list[Loss]) -> Corpus:
    """Cut documents into chunks; those without text, and copies, go to *losses*."""
    digest = sha256()
    kept: dict[str, Document] = {}
    cut: dict[str, tuple[Chunk, ...]] = {}
    texts: dict[str, str] = {}
    n_read = 0
    for document in documents:
        n_read += 1
        digest.update(_plain(document))
        text = " ".join(document.text.split())
        reason, detail = _problem(document, text, kept, texts)
        if reason:
            losses.append(Loss(stage=STAGE, document=document.id, reason=reason, detail=detail))
            continue
        kept[document.id] = document
        texts[text] = document.id
        cut[document.id] = tuple(
            Chunk(f"{document.id}#{place}", piece, document.id)
            for place, piece in enumerate(chunks(document.text, max_tokens=max_tokens), start=1)
        )
    return Corpus(kept, cut, digest.hexdigest(), n_read)


def check_not_empty(corpus: Corpus) -> None:
    """Raise `DatasetError` if there is nothing to make questions of."""
    if not corpus.documents:
        raise DatasetError(f"none of {corpus.n_read} documents has a text")


def connected_corpus(
    corpus: Corpus, embeddings: Embeddings, plan: BuildPlan, losses: list[Loss]
) -> Corpus:
    """Return the corpus without weakly connected documents; they go to *losses*."""
    if plan.min_group <= 1 or len(corpus.documents) < 2:
        return corpus
    vectors = _document_vectors(corpus, embeddings)
    least = _usual(vectors) if plan.min_similarity is None else plan.min_similarity
    mask = connected(vectors, min_similarity=least, min_size=plan.min_group)
    alone = [id for id, keep in zip(corpus.documents, mask, strict=True) if not keep]
    losses.extend(Loss(stage=STAGE, document=id, reason="weakly-connected") for id in alone)
    if len(alone) == len(corpus.documents):
        raise DatasetError(
            f"all {len(alone)} documents are weakly connected: no group of at least "
            f"{plan.min_group} is joined by cosines of {least:g} or more; lower the least group "
            "(1 keeps all documents) or the least similarity"
        )
    kept = {id: one for id, one in corpus.documents.items() if id not in set(alone)}
    return replace(
        corpus,
        documents=kept,
        chunks={id: corpus.chunks[id] for id in kept},
        min_similarity=least,
    )


def _document_vectors(corpus: Corpus, embeddings: Embeddings) -> NDArray[np.float32]:
    """Return the mean direction of each document's chunks; shape (n_documents, n_dimensions)."""
    vectors = unit_rows(embeddings.embed_documents([one.text for one in corpus]))
    counts = [len(own) for own in corpus.chunks.values()]
    return unit_rows(np.add.reduceat(vectors, np.cumsum([0, *counts[:-1]]), axis=0))


def _usual(vectors: NDArray[np.float32]) -> float:
    """Return the cosine with its nearest neighbour that 19 of 20 documents reach, in [-1, 1]."""
    distances, _ = NearestNeighbors(n_neighbors=1, metric="cosine").fit(vectors).kneighbors()
    return round(float(np.percentile(1 - distances, _WEAKEST)), 6)


def _problem(
    document: Document, text: str, kept: Mapping[str, Document], texts: Mapping[str, str]
) -> tuple[str, str]:
    if not text:
        return "no-text", ""
    if document.id in kept:
        return "id-used-twice", ""
    if text in texts:
        return "same-text", f"as document {texts[text]}"
    return "", ""


def _plain(document: Document) -> bytes:
    fields: Sequence[str] = (document.id, document.title, document.text, document.subject)
    return "\0".join(fields).encode("utf-8", "surrogatepass") + b"\1"


DIMENSIONS = 128
_BATCH = 256


class LsaEmbeddings(Embeddings):
    """Latent semantic vectors fitted to a corpus: TF-IDF, cut down to 128 dimensions.

    No model, no network; the same corpus gives the same vectors. A text without a word of the
    corpus has the zero vector.

    Source:
        Deerwester et al. (1990), Indexing by latent semantic analysis; scikit-learn's
        `TruncatedSVD` with its seed set to 0.
    """

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
        """Return one vector of length 1, or 0, a text; shape (n_texts, n_dimensions)."""
        if not texts:
            return []
        raw = np.asarray(self._axes.transform(self._words.transform(texts)), dtype=np.float64)
        lengths = np.linalg.norm(raw, axis=1, keepdims=True)
        rows: list[list[float]] = (raw / np.where(lengths > 0, lengths, 1)).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text; shape (n_dimensions,)."""
        return self.embed_documents([text])[0]


class CachedEmbeddings(Embeddings):
    """Embeddings that compute the vector of a text once and keep it."""

    def __init__(self, embeddings: Embeddings, identity: str, cache: JudgementCache) -> None:
        self._embeddings, self._identity, self._cache = embeddings, identity, cache
        self.model = identity

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text; shape (n_texts, n_dimensions)."""
        keys = [self._key("text", text) for text in texts]
        found = {key: vector for key in set(keys) if (vector := self._stored(key)) is not None}
        missing = list({key: text for key, text in zip(keys, texts, strict=True)
                        if key not in found}.items())  # fmt: skip
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            made = self._embeddings.embed_documents([text for _, text in batch])
            for (key, _), vector in zip(batch, made, strict=True):
                found[key] = self._keep(key, vector)
        return [found[key] for key in keys]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question; shape (n_dimensions,)."""
        key = self._key("question", text)
        stored = self._stored(key)
        return self._keep(key, self._embeddings.embed_query(text)) if stored is None else stored

    def _key(self, kind: str, text: str) -> str:
        return cache_key("vector", {kind: text}, {"embeddings": self._identity})

    def _stored(self, key: str) -> list[float] | None:
        value = self._cache.get(key)
        return None if value is None else _floats(base64.b64decode(value["vector"]))

    def _keep(self, key: str, vector: Sequence[float]) -> list[float]:
        """Store a vector, and return it as it will be read back."""
        data = np.asarray(vector, dtype="<f4").tobytes()
        self._cache.put(key, "vector", {"vector": base64.b64encode(data).decode()})
        return _floats(data)


def lsa_about() -> dict[str, Any]:
    """Return what these vectors depend on besides the corpus."""
    return {"name": LsaEmbeddings.model, "library": f"scikit-learn {version('scikit-learn')}"}


def _floats(data: bytes) -> list[float]:
    vector: list[float] = np.frombuffer(data, dtype="<f4").tolist()
    return vector


_COLLECTION = "chunks"
_DECIMALS = 6
_MARGIN = 16


@dataclass(frozen=True, slots=True)
class Found:
    """A chunk in a pool: its place in retrieval from 1 and its cosine, None if it was put in."""

    chunk: Chunk
    rank: int | None
    score: float | None


class ChunkSearch:
    """Chunks in a Qdrant store in memory, found by the cosine of their vectors."""

    def __init__(self, corpus: Corpus, embeddings: Embeddings) -> None:
        self._chunks = {chunk.id: chunk for chunk in corpus}
        self._embeddings = embeddings
        self._store = open_store(_COLLECTION, mode="dense", embeddings=embeddings)
        self._store.add(
            Passage(id=chunk.id, page_content=chunk.text, metadata={"document": chunk.document})
            for chunk in self._chunks.values()
        )

    async def nearest(self, question: str, n: int) -> tuple[Found, ...]:
        """Return the best *n* chunks, best first; equal scores are in order of their ids."""
        return await asyncio.to_thread(self._nearest, question, n)

    async def similarity(self, question: str, text: str) -> float:
        """Return the cosine of a question with a text that need not be in the corpus, [-1, 1]."""
        return (await asyncio.to_thread(self._cosines, question, [text]))[0]

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def _nearest(self, question: str, n: int) -> tuple[Found, ...]:
        """Take a few more than are wanted, and put them in order by cosines of our own.

        The store's are of single precision: their last digits differ from run to run.
        """
        near = [self._chunks[str(one.id)] for one in self._store.search(question, n + _MARGIN)]
        scores = self._cosines(question, [chunk.text for chunk in near])
        best = sorted(zip(scores, near, strict=True), key=lambda pair: (-pair[0], pair[1].id))
        return tuple(
            Found(chunk, rank, score) for rank, (score, chunk) in enumerate(best[:n], start=1)
        )

    def _cosines(self, question: str, texts: list[str]) -> list[float]:
        """Return cosines in double precision, rounded; 0 where a vector is zero."""
        query = np.asarray(self._embeddings.embed_query(question), dtype=np.float64)
        rows = np.asarray(self._embeddings.embed_documents(texts), dtype=np.float64)
        lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
        found: list[float] = (rows @ query / np.where(lengths > 0, lengths, 1)).tolist()
        return [round(one, _DECIMALS) + 0.0 for one in found]
