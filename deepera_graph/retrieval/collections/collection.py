"""A collection in Qdrant: its BM25 vectors, what it was indexed with, and how one is made."""

from collections.abc import Callable
from typing import Any, Literal, get_args

from langchain_core.embeddings import Embeddings
from langchain_qdrant import QdrantVectorStore, RetrievalMode, SparseEmbeddings, SparseVector
from qdrant_client import QdrantClient, models

from deepera_graph.errors import MissingStoreError, SettingsError, StoreError
from deepera_graph.settings.ranges import (
    check_choice,
    check_not_negative,
    check_positive,
    check_share,
    suggest_value,
)
from deepera_graph.stores.embeddings import name_embeddings
from deepera_graph.stores.words import AVERAGE_LENGTH, K1, B, count_terms, weigh_terms

# Changes whenever the same text would get other term numbers; part of the vector's name in a store.
SPARSE_NAME = "hashed-stems-1"
DENSE_NAME = QdrantVectorStore.VECTOR_NAME
Mode = Literal["sparse", "dense", "hybrid"]
FindEmbeddings = Callable[[str], Embeddings | None]  # by the name that `name_embeddings` gave them


class HashedTermEmbeddings(SparseEmbeddings):
    """BM25 term weights under hashed stems, for a Qdrant vector with the IDF modifier.

    A passage holds what `weigh_terms` says, a question the plain counts; Qdrant multiplies by the
    inverse document frequency of the collection, so that the dot product is the BM25 score. A text
    without content words gets the empty vector, which matches nothing.

    Source:
        Qdrant's IDF is ``ln((N - n + 0.5) / (n + 0.5) + 1)``:
        https://qdrant.tech/documentation/concepts/indexing.
    """

    def __init__(
        self, *, k1: float = K1, b: float = B, average_length: float = AVERAGE_LENGTH
    ) -> None:
        check_not_negative("k1", k1)
        check_share("b", b)
        check_positive("average_length", average_length)
        self.k1, self.b, self.average_length = k1, b, average_length

    def embed_documents(self, texts: list[str]) -> list[SparseVector]:
        """Return the vectors of passages, shape (n_texts,); weights in (0, k1 + 1)."""
        return [self._embed_document(text) for text in texts]

    def embed_query(self, text: str) -> SparseVector:
        """Return the vector of a question; weights are counts, >= 1."""
        counts = count_terms(text)
        return SparseVector(indices=list(counts), values=list(map(float, counts.values())))

    def _embed_document(self, text: str) -> SparseVector:
        weights = weigh_terms(text, k1=self.k1, b=self.b, average_length=self.average_length)
        return SparseVector(indices=list(weights), values=list(weights.values()))


def open_collection(
    client: QdrantClient,
    name: str,
    *,
    mode: Mode | None,
    embeddings: Embeddings | None,
    find_embeddings: FindEmbeddings | None = None,
    must_exist: bool,
    to_search: bool = True,
) -> QdrantVectorStore:
    """Open a collection as it was indexed, or make it; needs no embeddings unless *to_search*."""
    # The vectors a collection has tell its mode, the name of the sparse vector how terms were
    # hashed, and its metadata which embeddings made the dense one (Qdrant 1.16 or later).
    if mode is not None:
        check_choice("mode", mode, get_args(Mode))
    if not name:
        raise SettingsError("no library can be named ''")
    if client.collection_exists(name) and not to_search:
        mode = find_mode(client.get_collection(name).config.params, name)
    elif client.collection_exists(name):
        if embeddings is None and find_embeddings is not None:
            embeddings = _find_recorded(client, name, find_embeddings)
        mode = _check_existing(client, name, mode, embeddings)
    elif must_exist:
        raise MissingStoreError(f"unknown library {name!r}; {describe_others(client, name)}")
    else:
        mode = _create_collection(client, name, mode, embeddings)
    return QdrantVectorStore(
        client=client,
        collection_name=name,
        embedding=embeddings,
        retrieval_mode=RetrievalMode(mode),
        vector_name=DENSE_NAME,
        sparse_embedding=None if mode == "dense" else HashedTermEmbeddings(),
        sparse_vector_name=SPARSE_NAME,
        validate_embeddings=False,
        validate_collection_config=False,
    )


def is_sparse(store: QdrantVectorStore) -> bool:
    """Tell whether passages are also, or only, found by their words."""
    return store.retrieval_mode != RetrievalMode.DENSE


def _create_collection(
    client: QdrantClient, name: str, mode: Mode | None, embeddings: Embeddings | None
) -> Mode:
    if mode is None:
        mode = "sparse" if embeddings is None else "hybrid"
    _check_embeddings(mode, embeddings)
    dense: dict[str, models.VectorParams] = {}
    record: dict[str, Any] = {"mode": mode}
    if embeddings is not None:
        record["embeddings"] = name_embeddings(embeddings)
        dense[DENSE_NAME] = models.VectorParams(
            size=_measure(embeddings), distance=models.Distance.COSINE
        )
    sparse = {SPARSE_NAME: models.SparseVectorParams(modifier=models.Modifier.IDF)}
    create(client, name, dense, None if mode == "dense" else sparse, {"deepera": record})
    return mode


def create(
    client: QdrantClient, name: str, vectors: Any, sparse: Any, metadata: dict[str, Any] | None
) -> None:
    """Make a collection; a `SettingsError` if Qdrant takes no such name."""
    try:
        client.create_collection(
            name, vectors_config=vectors, sparse_vectors_config=sparse, metadata=metadata
        )
    except ValueError as error:
        raise SettingsError(f"no library can be named {name!r}: {error}") from error


def _find_recorded(
    client: QdrantClient, name: str, find_embeddings: FindEmbeddings
) -> Embeddings | None:
    """Return the embeddings that a collection was indexed with; None if it needs none."""
    config = client.get_collection(name).config
    recorded = recorded_embeddings(config)
    return find_embeddings(recorded) if recorded and _find_dense(config.params) else None


def recorded_embeddings(config: models.CollectionConfig) -> str | None:
    """Return the name of the embeddings that a collection was indexed with."""
    recorded = ((config.metadata or {}).get("deepera") or {}).get("embeddings")
    return recorded if isinstance(recorded, str) else None


def _check_existing(
    client: QdrantClient, name: str, mode: Mode | None, embeddings: Embeddings | None
) -> Mode:
    config = client.get_collection(name).config
    indexed = find_mode(config.params, name)
    if mode is not None and mode != indexed:
        raise StoreError(f"library {name!r} was indexed as {indexed}, not as {mode}")
    recorded = recorded_embeddings(config)
    if embeddings is None and indexed != "sparse":
        made_by = f" with {recorded}" if recorded else ""
        raise SettingsError(
            f"library {name!r} was indexed as {indexed}{made_by}; pass the same embeddings "
            "(embeddings=, --embeddings)"
        )
    _check_embeddings(indexed, embeddings)
    if embeddings is not None:
        _check_same(name, recorded, embeddings, _find_dense(config.params))
    return indexed


def _check_embeddings(mode: Mode, embeddings: Embeddings | None) -> None:
    if mode == "sparse" and embeddings is not None:
        raise SettingsError(f"mode sparse takes no embeddings, got {name_embeddings(embeddings)}")
    if mode != "sparse" and embeddings is None:
        raise SettingsError(f"mode {mode} needs embeddings")


def _check_same(
    name: str, recorded: object, embeddings: Embeddings, dense: models.VectorParams | None
) -> None:
    given = name_embeddings(embeddings)
    if recorded is not None and recorded != given:
        raise StoreError(f"library {name!r} was indexed with {recorded}, not with {given}")
    size = _measure(embeddings)
    if dense is not None and dense.size != size:
        raise StoreError(
            f"library {name!r} holds vectors of size {dense.size}, but {given} makes vectors of "
            f"size {size}"
        )


def find_mode(params: models.CollectionParams, name: str) -> Mode:
    """Return how a collection was indexed; a `StoreError` if by another program."""
    dense, sparse = _find_dense(params) is not None, SPARSE_NAME in (params.sparse_vectors or {})
    if dense:
        return "hybrid" if sparse else "dense"
    if sparse:
        return "sparse"
    vectors = [*(params.vectors if isinstance(params.vectors, dict) else {})]
    found = ", ".join([*vectors, *(params.sparse_vectors or {})]) or "none"
    raise StoreError(f"library {name!r} was not indexed by deepera: its vectors are {found}")


def _find_dense(params: models.CollectionParams) -> models.VectorParams | None:
    if isinstance(params.vectors, models.VectorParams):
        return params.vectors
    return (params.vectors or {}).get(DENSE_NAME)


def _measure(embeddings: Embeddings) -> int:
    return len(embeddings.embed_query("size"))


def describe_others(client: QdrantClient, name: str) -> str:
    """Say which collections there are, and which of them was probably meant by a name."""
    names = sorted(collection.name for collection in client.get_collections().collections)
    if not names:
        return "no libraries exist"
    return f"available: {', '.join(map(repr, names))}{suggest_value(name, names)}"
