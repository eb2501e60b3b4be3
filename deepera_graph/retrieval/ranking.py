"""The best points for a question, in an order that does not depend on how they were indexed."""

from dataclasses import dataclass
from typing import Any

from langchain_qdrant import QdrantVectorStore, RetrievalMode
from qdrant_client import models

from deepera_graph.retrieval.collection import DENSE_NAME, SPARSE_NAME, is_sparse
from deepera_graph.retrieval.fusion import fuse
from deepera_graph.retrieval.points import name_of

# How many of each ranking are fused: a passage below the cut-off in both can be among the best.
FUSED_PER_RESULT = 4
FUSED_AT_LEAST = 100
_TIE_MARGIN = 16
_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Ranked:
    """One point found; `score` is rounded to 6 decimals, about what single precision holds."""

    name: str
    score: float
    point: models.ScoredPoint


@dataclass(frozen=True, slots=True)
class Probe:
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
    store: QdrantVectorStore, probes: list[Probe], k: int, conditions: models.Filter | None
) -> list[Ranked]:
    """Return the best *k* points, best first, equal scores by id.

    Hybrid fuses here and not in Qdrant: Qdrant breaks ties by the order of indexing, and
    langchain-qdrant fuses no more than *k* of each ranking.
    """
    if store.retrieval_mode != RetrievalMode.HYBRID:
        return _best(store, probes[0], k, conditions) if probes else []
    depth = max(FUSED_PER_RESULT * k, FUSED_AT_LEAST)
    rankings = [_best(store, probe, depth, conditions) for probe in probes]
    points = {found.name: found.point for ranking in rankings for found in ranking}
    scores = fuse([found.name for found in ranking] for ranking in rankings)
    fused = [Ranked(name, score, points[name]) for name, score in scores.items()]
    return sorted(fused, key=_place)[:k]


def _best(
    store: QdrantVectorStore, probe: Probe, k: int, conditions: models.Filter | None
) -> list[Ranked]:
    """Ask for more than *k*, until all points that tie with the k-th are there to choose from."""
    limit = k + _TIE_MARGIN
    while True:
        found = _ask(store, probe, limit, conditions)
        if len(found) < limit or found[-1].score != found[k - 1].score:
            return sorted(found, key=_place)[:k]
        limit *= 4


def _ask(
    store: QdrantVectorStore, probe: Probe, limit: int, conditions: models.Filter | None
) -> list[Ranked]:
    response = store.client.query_points(
        store.collection_name,
        query=probe.query,
        using=probe.using,
        query_filter=conditions,
        limit=limit,
        with_payload=True,
    )
    return [
        Ranked(name_of(point), round(point.score, _DECIMALS), point) for point in response.points
    ]


def _place(found: Ranked) -> tuple[Any, ...]:
    return (-found.score, found.name)
