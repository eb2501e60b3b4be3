"""The corpus of a build: documents cut into chunks, embedded, the unconnected ones left out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.bench.build.chunks import chunks
from deepera_graph.bench.build.connected import connected
from deepera_graph.bench.build.document import Document
from deepera_graph.bench.build.losses import Loss
from deepera_graph.bench.build.plan import BuildPlan
from deepera_graph.bench.errors import DatasetError
from deepera_graph.bench.vectors import unit_rows

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
    """Documents and their chunks.

    Attributes:
        documents: By id, in the order they came.
        chunks: The chunks of each document, by its id, in order.
        fingerprint: SHA-256 over ids, titles, texts and subjects of all documents that came.
        n_read: How many came.
        min_similarity: Least cosine that connected two documents; None if all were kept.
    """

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
    """Return the corpus without weakly connected documents; they go to *losses*.

    Raises:
        DatasetError: None is left.
    """
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
