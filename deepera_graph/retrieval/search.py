"""Searching a collection: conditions on metadata, points of passages, and ranking."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args
from uuid import NAMESPACE_URL, UUID, uuid5

from langchain_core.documents import Document
from langchain_qdrant import QdrantVectorStore, RetrievalMode
from pydantic import ValidationError
from qdrant_client import models

from deepera_graph.errors import SettingsError
from deepera_graph.retrieval import Where, read_where, spell_field
from deepera_graph.retrieval.collections.collection import DENSE_NAME, SPARSE_NAME, is_sparse
from deepera_graph.retrieval.fusion import fuse
from deepera_graph.stores.words import DECIMALS, as_found, check_storable, join_title, name_passage

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BOUNDS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def build_filter(where: Where | None) -> models.Filter | None:
    """Turn conditions on metadata into a Qdrant filter; all of them must hold.

    They are an object, or texts as `read_where` reads them: ``year>=2015``.

    | value | holds if the field |
    |---|---|
    | string, number, bool | equals it, or is a list that contains it |
    | list | equals any of the values |
    | ``{"gte": 2015, "lt": 2020}`` | lies in the range; numbers, or ISO dates as "2019-05-31" |
    | ``{"not": "Letter"}`` | does not equal it, or any of a list |
    | ``{"contains": "smith"}`` | has these words in it, in any case |
    | None | is missing, null or an empty list |

    A dot in a name goes into a nested object: ``journal.name``. `journal` and `venue` are one
    field, and so are `authors` and `author`.
    """
    conditions = read_where(where)
    if not conditions:
        return None
    return models.Filter(must=[build_condition(name, value) for name, value in conditions.items()])


def build_condition(name: str, value: object) -> models.Condition:
    """Turn one condition into a part of a filter; see `build_filter`."""
    if isinstance(value, Mapping) and [*value] == ["not"]:
        return models.Filter(must_not=[build_condition(name, value["not"])])
    every = [_build_condition(one, value) for one in spell_field(name)]
    if len(every) == 1:
        return every[0]
    return models.Filter(must=every) if value is None else models.Filter(should=every)


def _build_condition(name: str, value: object) -> models.Condition:
    if '"' in name or not all(name.split(".")):
        raise SettingsError(f"where: {name!r} names no metadata field")
    key = "metadata." + ".".join(map(_quote_step, name.split(".")))
    if isinstance(value, Mapping):
        if [*value] == ["contains"]:
            return _build_contains(name, key, value["contains"])
        return _build_range(name, key, value)
    if isinstance(value, list | tuple | set | frozenset):
        if not value:
            raise SettingsError(f"where: the list of values for {name!r} is empty")
        return models.Filter(should=[_build_equal(name, key, item) for item in value])
    return _build_equal(name, key, value)


def _quote_step(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else f'"{name}"'


def _build_equal(name: str, key: str, value: object) -> models.Condition:
    if value is None:
        return models.IsEmptyCondition(is_empty=models.PayloadField(key=key))
    if isinstance(value, bool | str):
        return models.FieldCondition(key=key, match=models.MatchValue(value=value))
    if isinstance(value, int | float):
        # A range, because Qdrant's exact match tells 1 and 1.0 apart.
        return models.FieldCondition(key=key, range=models.Range(gte=value, lte=value))
    raise SettingsError(f"where: {name!r} cannot be compared with {value!r:.80}")


def _build_contains(name: str, key: str, value: object) -> models.Condition:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise SettingsError(f"where: {name!r} cannot contain {value!r:.80}")
    return models.FieldCondition(key=key, match=models.MatchText(text=str(value)))


def _build_range(name: str, key: str, bounds: Mapping[str, Any]) -> models.Condition:
    if not bounds or not set(bounds) <= set(_BOUNDS):
        raise SettingsError(
            f"where: a range of {name!r} has {', '.join(_BOUNDS)}, got {dict(bounds)!r:.80}"
        )
    kind = models.DatetimeRange if _are_strings(bounds) else models.Range
    try:
        return models.FieldCondition(key=key, range=kind.model_validate(_check_bounds(bounds)))
    except (ValidationError, TypeError) as error:
        raise SettingsError(
            f"where: a range of {name!r} has numbers or ISO dates, got {_show_range(name, bounds)}"
        ) from error


def _show_range(name: str, bounds: Mapping[str, Any]) -> str:
    """Return the bounds as they are read: ``year > '2015 and year<2018'``."""
    return " and ".join(f"{name} {_BOUNDS[sign]} {bound!r:.80}" for sign, bound in bounds.items())


def _are_strings(bounds: Mapping[str, Any]) -> bool:
    return all(isinstance(bound, str) for bound in bounds.values())


def _check_bounds(bounds: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse what pydantic would turn into numbers: True, "3"."""
    numbers = all(
        isinstance(bound, int | float) and not isinstance(bound, bool) for bound in bounds.values()
    )
    if not numbers and not _are_strings(bounds):
        raise TypeError("bounds are neither numbers nor dates")
    return dict(bounds)


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
CONTENT, METADATA, ID = "page_content", "metadata", "id"


def build_points(
    store: QdrantVectorStore, passages: Sequence[Document], dense: Vectors | None = None
) -> list[models.PointStruct]:
    """Return the points of passages; a point's number is made from the passage's id alone."""
    # *dense* are their vectors, if they were made before.
    ids = [name_passage(passage) for passage in passages]
    for name, passage in zip(ids, passages, strict=True):
        check_storable(name, passage)
    vectors = _build_vectors(store, [join_title(passage) for passage in passages], dense)
    return [
        models.PointStruct(
            id=number_point(name), vector=vector, payload=build_payload(name, passage)
        )
        for name, passage, vector in zip(ids, passages, vectors, strict=True)
    ]


def build_payload(name: str, passage: Document) -> dict[str, Any]:
    """Return what is stored of a passage beside its vectors."""
    return {ID: name, CONTENT: passage.page_content, METADATA: passage.metadata}


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


def scroll_points(
    store: QdrantVectorStore, n: int, offset: Any, *, with_vectors: bool
) -> tuple[list[StoredPassage], Any]:
    """Return the next *n* passages of a collection, and where to go on; None at the end."""
    found, offset = store.client.scroll(
        store.collection_name,
        limit=n,
        offset=offset,
        with_payload=True,
        with_vectors=[DENSE_NAME] if with_vectors else False,
    )
    return [StoredPassage(_read_record(one), _read_vector(one)) for one in found], offset


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


def _read_vector(point: models.Record) -> Sequence[float] | None:
    vectors: Any = point.vector  # the dense one has no name: alone it is not in a dictionary
    return vectors.get(DENSE_NAME) if isinstance(vectors, dict) else vectors


def _is_uuid(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True
