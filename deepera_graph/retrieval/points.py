"""A passage as a point in Qdrant, and back; the payload is laid out as langchain-qdrant does."""

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from langchain_core.documents import Document
from langchain_qdrant import QdrantVectorStore
from qdrant_client import models

from deepera_graph.errors import InputError
from deepera_graph.retrieval.collection import DENSE_NAME, SPARSE_NAME, is_sparse

CONTENT, METADATA, ID = "page_content", "metadata", "id"


def build_points(
    store: QdrantVectorStore, passages: Sequence[Document]
) -> list[models.PointStruct]:
    """Return the points of passages; a point's number is made from the passage's id alone.

    Vectors are made of title and text together, the payload keeps them apart.

    Raises:
        InputError: A passage has no text, or what Qdrant cannot store.
    """
    ids = [_id(passage) for passage in passages]
    for name, passage in zip(ids, passages, strict=True):
        _check(name, passage)
    vectors = _vectors(store, [_indexed_text(passage) for passage in passages])
    return [
        models.PointStruct(
            id=str(uuid5(NAMESPACE_URL, f"deepera:{name}")),
            vector=vector,
            payload={ID: name, CONTENT: passage.page_content, METADATA: passage.metadata},
        )
        for name, passage, vector in zip(ids, passages, vectors, strict=True)
    ]


def name_of(point: models.ScoredPoint) -> str:
    """Return the passage's id; the point's own if another program stored it."""
    return str((point.payload or {}).get(ID) or point.id)


def read_point(point: models.ScoredPoint, *, score: float, rank: int) -> Document:
    """Return the passage of a point, with first-stage score and rank in its metadata."""
    payload = point.payload or {}
    found = {"retrieval_score": score, "retrieval_rank": rank}
    return Document(
        id=name_of(point),
        page_content=payload.get(CONTENT) or "",
        metadata={**(payload.get(METADATA) or {}), **found},
    )


def _id(passage: Document) -> str:
    if passage.id:
        return passage.id
    text = passage.page_content.encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=8).hexdigest()


def _check(name: str, passage: Document) -> None:
    if not passage.page_content.strip():
        raise InputError(f"passage {name!r} has no text")
    try:
        f"{name}{passage.page_content}".encode()
        json.dumps(passage.metadata, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"passage {name!r} cannot be stored: {error}") from error


def _indexed_text(passage: Document) -> str:
    title = passage.metadata.get("title")
    has_title = isinstance(title, str) and title.strip()
    return f"{title}\n{passage.page_content}" if has_title else passage.page_content


def _vectors(store: QdrantVectorStore, texts: list[str]) -> list[dict[str, Any]]:
    vectors: list[dict[str, Any]] = [{} for _ in texts]
    if store.embeddings is not None:
        for vector, dense in zip(vectors, store.embeddings.embed_documents(texts), strict=True):
            vector[DENSE_NAME] = dense
    if is_sparse(store):
        sparse = store.sparse_embeddings.embed_documents(texts)
        for vector, terms in zip(vectors, sparse, strict=True):
            vector[SPARSE_NAME] = models.SparseVector(indices=terms.indices, values=terms.values)
    return vectors
