"""Searching a collection: points of passages, and ranking."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args
from uuid import NAMESPACE_URL, UUID, uuid5

from langchain_core.documents import Document
from langchain_qdrant import QdrantVectorStore, RetrievalMode
from qdrant_client import models

from deepera_graph.retrieval.collections.collection import DENSE_NAME, SPARSE_NAME, is_sparse
from deepera_graph.retrieval.conditions import COMPARED, METADATA, list_compared
from deepera_graph.retrieval.fusion import fuse
from deepera_graph.retrieval.kept_files import Origin
from deepera_graph.stores.words import DECIMALS, as_found, check_storable, join_title, name_passage

Fusion = Literal["ranks", "scores"]
FUSIONS: tuple[Fusion, ...] = get_args(Fusion)
DENSE_WEIGHT = 0.7  # of the cosine beside BM25; docs/bioasq-search.md says how it was chosen
_LEAST = {DENSE_NAME: -1.0, SPARSE_NAME: 0.0}  # what a cosine and a BM25 score are at least


def fuse_scores(
    rankings: Mapping[str, Mapping[str, float]], depth: int, *, dense_weight: float = DENSE_WEIGHT
) -> dict[str, float]:
    """Return the weighted sum of each id's scores, all brought into [0, 1]; BM25 has the rest."""
    # Rankings have scores by id, best first; those of words may be missing, as a question may have
    # none that count. An id that is not in a full ranking, of *depth*, has the score of its last,
    # which is the most that it can have.
    # Source: Bruch, Gai and Ingber (2023), An Analysis of Fusion Functions for Hybrid Retrieval,
    # section 4.1: a convex combination, each score minus the least that its kind can be, divided by
    # the best of the ranking minus the same (theoretical min-max).
    weights = {DENSE_NAME: dense_weight, SPARSE_NAME: 1 - dense_weight}
    total: dict[str, float] = dict.fromkeys(
        (one for found in rankings.values() for one in found), 0
    )
    for using, found in rankings.items():
        least = _LEAST[using]
        spread = max(found.values(), default=least) - least
        last = min(found.values()) if len(found) >= depth else least
        for name in total if spread > 0 else ():
            total[name] += weights[using] * (found.get(name, last) - least) / spread
    return total


Vectors = Sequence[Sequence[float]]  # one a text, shape (n_texts, n_dimensions)
CONTENT, ID = "page_content", "id"
FILE = "file"  # not of the metadata, which are shown


def build_points(
    store: QdrantVectorStore,
    passages: Sequence[Document],
    dense: Vectors | None = None,
    files: Mapping[str, Origin] | None = None,
) -> list[models.PointStruct]:
    """Return the points of passages; a point's number is made from the passage's id alone."""
    # *dense* are their vectors, if they were made before; *files* what they are of, by their ids.
    ids = [name_passage(passage) for passage in passages]
    for name, passage in zip(ids, passages, strict=True):
        check_storable(name, passage)
    vectors = _build_vectors(store, [join_title(passage) for passage in passages], dense)
    return [
        models.PointStruct(
            id=number_point(name),
            vector=vector,
            payload=build_payload(name, passage) | build_file(files, name),
        )
        for name, passage, vector in zip(ids, passages, vectors, strict=True)
    ]


def build_payload(name: str, passage: Document) -> dict[str, Any]:
    """Return what is stored of a passage beside its vectors."""
    plain = {ID: name, CONTENT: passage.page_content, METADATA: passage.metadata}
    compared = list_compared(passage.metadata)
    return {**plain, COMPARED: compared} if compared else plain


def build_file(files: Mapping[str, Origin] | None, name: str) -> dict[str, Any]:
    """Return what is stored of the file of a passage."""
    return {FILE: files[name]._asdict()} if files and name in files else {}


def number_point(name: str) -> str:
    """Return the number that the point of a passage has in Qdrant."""
    return str(uuid5(NAMESPACE_URL, f"deepera:{name}"))


def point_id(point: models.ScoredPoint | models.Record) -> str:
    """Return the passage's id; the point's own if another program stored it."""
    return str((point.payload or {}).get(ID) or point.id)


def read_point(point: models.ScoredPoint, *, score: float, rank: int) -> Document:
    """Return the passage of a point, with first-stage score and rank in its metadata."""
    payload = point.payload or {}
    text = payload.get(CONTENT) or ""
    return as_found(point_id(point), text, payload.get(METADATA), score=score, rank=rank)


def _build_vectors(
    store: QdrantVectorStore, texts: list[str], dense: Vectors | None
) -> list[dict[str, Any]]:
    vectors: list[dict[str, Any]] = [{} for _ in texts]
    if store.embeddings is not None:
        made = store.embeddings.embed_documents(texts) if dense is None else dense
        for vector, one in zip(vectors, made, strict=True):
            vector[DENSE_NAME] = one
    if is_sparse(store):
        sparse = store.sparse_embeddings.embed_documents(texts)
        for vector, terms in zip(vectors, sparse, strict=True):
            vector[SPARSE_NAME] = models.SparseVector(indices=terms.indices, values=terms.values)
    return vectors


# How many of each ranking are fused: a passage below the cut-off in both can be among the best.
FUSED_PER_RESULT = 4
FUSED_AT_LEAST = 100
_TIE_MARGIN = 16


class FoundPoint(NamedTuple):
    """One point found; `score` is rounded to 6 decimals, about what single precision holds."""

    name: str
    score: float
    point: models.ScoredPoint


class Probe(NamedTuple):
    """What is looked for: a vector, and the name of the vectors it is compared with."""

    using: str
    query: list[float] | models.SparseVector


def build_probes(store: QdrantVectorStore, question: str) -> list[Probe]:
    """Return the question's vectors; a question without content words has no sparse one."""
    probes = []
    if store.embeddings is not None:
        probes.append(Probe(DENSE_NAME, store.embeddings.embed_query(question)))
    if is_sparse(store):
        terms = store.sparse_embeddings.embed_query(question)
        if terms.indices:
            vector = models.SparseVector(indices=terms.indices, values=terms.values)
            probes.append(Probe(SPARSE_NAME, vector))
    return probes


def rank_points(
    store: QdrantVectorStore,
    probes: list[Probe],
    k: int,
    conditions: models.Filter | None,
    fusion: Fusion = "ranks",
) -> list[FoundPoint]:
    """Return the best *k* points, best first, equal scores by id."""
    # Fused here, as Qdrant breaks ties by the order of indexing, so that indexing in another order
    # would rank otherwise, and langchain-qdrant fuses no more than *k* of each ranking.
    if store.retrieval_mode != RetrievalMode.HYBRID:
        return _find_best(store, probes[0], k, conditions) if probes else []
    depth = max(FUSED_PER_RESULT * k if fusion == "ranks" else k, FUSED_AT_LEAST)
    rankings = [_find_best(store, probe, depth, conditions) for probe in probes]
    points = {found.name: found.point for ranking in rankings for found in ranking}
    if fusion == "ranks":
        scores = fuse([found.name for found in ranking] for ranking in rankings)
    else:
        by_name = {
            probe.using: {found.name: found.score for found in ranking}
            for probe, ranking in zip(probes, rankings, strict=True)
        }
        scores = {name: round(one, DECIMALS) for name, one in fuse_scores(by_name, depth).items()}
    fused = [FoundPoint(name, score, points[name]) for name, score in scores.items()]
    return sorted(fused, key=_rank_key)[:k]


def _find_best(
    store: QdrantVectorStore, probe: Probe, k: int, conditions: models.Filter | None
) -> list[FoundPoint]:
    """Ask for more than *k*, until all points that tie with the k-th are there to choose from."""
    limit = k + _TIE_MARGIN
    while True:
        found = _query_points(store, probe, limit, conditions)
        if len(found) < limit or found[-1].score != found[k - 1].score:
            return sorted(found, key=_rank_key)[:k]
        limit *= 4


def _query_points(
    store: QdrantVectorStore, probe: Probe, limit: int, conditions: models.Filter | None
) -> list[FoundPoint]:
    response = store.client.query_points(
        store.collection_name,
        query=probe.query,
        using=probe.using,
        query_filter=conditions,
        limit=limit,
        with_payload=True,
    )
    return [
        FoundPoint(point_id(point), round(point.score, DECIMALS), point)
        for point in response.points
    ]


def _rank_key(found: FoundPoint) -> tuple[Any, ...]:
    return (-found.score, found.name)


class StoredPassage(NamedTuple):
    """A passage as it is in a store; its vector if that was asked for."""

    passage: Document
    vector: Sequence[float] | None


class Near(NamedTuple):
    """One passage near a vector."""

    id: str
    cosine: float


def fetch_points(
    store: QdrantVectorStore, names: Sequence[str], conditions: models.Filter | None
) -> dict[str, Document]:
    """Return passages by id; one that another program stored is known by its point's number."""
    numbers = [number_point(name) for name in names] + [name for name in names if _is_uuid(name)]
    if not numbers:
        return {}
    if conditions is None:  # by number, which an embedded store finds without reading all
        held = store.client.retrieve(store.collection_name, ids=[*numbers], with_payload=True)
        return {point_id(point): _read_record(point) for point in held}
    must: list[models.Condition] = [models.HasIdCondition(has_id=[*numbers])]
    wanted = models.Filter(must=[*must, conditions])
    found, _ = store.client.scroll(
        store.collection_name, scroll_filter=wanted, limit=len(numbers), with_payload=True
    )
    return {point_id(point): _read_record(point) for point in found}


def read_stored(point: models.Record) -> StoredPassage:
    """Return the passage of a point, and its dense vector if that was asked for."""
    vectors: Any = point.vector  # the dense one has no name: alone it is not in a dictionary
    dense = vectors.get(DENSE_NAME) if isinstance(vectors, dict) else vectors
    return StoredPassage(_read_record(point), dense)


def find_near(
    store: QdrantVectorStore, vectors: Sequence[Sequence[float]], k: int
) -> list[list[Near]]:
    """Return for each vector the best *k* points by their dense vectors."""
    requests = [
        models.QueryRequest(
            query=[float(one) for one in vector], using=DENSE_NAME, limit=k, with_payload=[ID]
        )
        for vector in vectors
    ]
    found = store.client.query_batch_points(store.collection_name, requests)
    return [[Near(point_id(one), one.score) for one in each.points] for each in found]


def _read_record(point: models.Record) -> Document:
    payload = point.payload or {}
    return Document(
        id=point_id(point),
        page_content=payload.get(CONTENT) or "",
        metadata=dict(payload.get(METADATA) or {}),
    )


def _is_uuid(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True
