"""Runs for the experiments of BioASQ: a collection is searched, and what is found reranked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

from langchain_core.documents import Document

from deepera_graph.bench.rankers.retrieval import CorpusBM25
from deepera_graph.bioasq.questions import Question, read_pmid
from deepera_graph.bioasq.runs import RankedDocument, Ranking, Run, rank_scores
from deepera_graph.bioasq.search import DocumentResult, DocumentSearch
from deepera_graph.budget import do_many
from deepera_graph.errors import BackendError, SettingsError, StoreError
from deepera_graph.retrieval.store import PassageStore
from deepera_graph.retrieval.word_index import join_title
from deepera_graph.schema import Window
from deepera_graph.settings import check_at_least
from deepera_graph.text.words import split_sentences

RETRIEVERS = ("bm25", "dense", "hybrid", "hybrid-scores")
FIRST_STAGE = "first stage"
_AT_ONCE = 4
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class TimedRun:
    """A run, how long it took, and what went wrong on the way.

    Attributes:
        run: Ranked documents by question; a question that is missing has none.
        seconds: A question, on average; not a number where the run was read from a file.
        problems: What went wrong, by question; its documents are in the order before that step.
    """

    run: Run
    seconds: float = float("nan")
    problems: Mapping[str, str] = field(default_factory=dict)


def retrieve(
    store: PassageStore,
    names: Sequence[str],
    questions: Sequence[Question],
    depth: int,
    *,
    on_progress: Progress = lambda done: None,
) -> dict[str, TimedRun]:
    """Search a collection for every question by each retriever.

    Args:
        store: What is searched.
        names: Of `RETRIEVERS`: ``bm25`` in memory, over titles and texts; ``dense``, the cosine;
            ``hybrid`` and ``hybrid-scores`` as the collection joins both, by rank or by score.
        questions: What is asked.
        depth: Documents of a question, >= 1.
        on_progress: Called with the searches done so far.

    Raises:
        SettingsError: A retriever is unknown, or the collection has no vectors for it.
        StoreError: The collection cannot be read.
    """
    check_at_least("depth", depth, 1)
    found, n_done = {}, 0
    for name in names:
        search = _make_retriever(store, name)
        run, started = {}, perf_counter()
        for one in questions:
            run[one.id] = search(one.body, depth)
            n_done += 1
            on_progress(n_done)
        found[name] = TimedRun(run, (perf_counter() - started) / max(len(questions), 1))
    return found


def default_retrievers(store: PassageStore) -> tuple[str, ...]:
    """Return the retrievers that a collection has vectors for."""
    return (
        RETRIEVERS if store.mode == "hybrid" else ("bm25",) + ("dense",) * (store.mode == "dense")
    )


def _make_retriever(store: PassageStore, name: str) -> Callable[[str, int], list[RankedDocument]]:
    if name not in RETRIEVERS:
        raise SettingsError(f"retrievers are {', '.join(RETRIEVERS)}, got {name!r}")
    if name == "bm25":
        texts = {one.passage.id or "": join_title(one.passage) for one in store.scan()}
        bm25 = CorpusBM25(texts)
        return lambda text, k: _to_ranking((one.id, one.score) for one in bm25.search(text, k))
    if name not in default_retrievers(store):
        raise SettingsError(f"{name} needs a collection that has vectors, and this is {store.mode}")
    if name == "dense":
        return lambda text, k: _search_by_meaning(store, text, k)
    fusion = "scores" if name == "hybrid-scores" else "ranks"
    return lambda text, k: _to_ranking(
        (one.id or "", float(one.metadata["retrieval_score"]))
        for one in store.search(text, k, fusion=fusion)  # type: ignore[arg-type]  # one of two
    )


def _search_by_meaning(store: PassageStore, text: str, k: int) -> list[RankedDocument]:
    embeddings = store.vectorstore.embeddings
    if embeddings is None:
        raise StoreError("the collection has no embeddings")
    [near] = store.search_near([embeddings.embed_query(text)], k)
    return _to_ranking((one.id, one.cosine) for one in near)


def _to_ranking(pairs: Any) -> list[RankedDocument]:
    scores: dict[str, float] = {}
    for name, score in pairs:
        scores.setdefault(read_pmid(name), score)
    return rank_scores(scores)


class Reranked(NamedTuple):
    """What became of the first stage's documents."""

    judged: TimedRun
    listed: TimedRun | None  # sorted by a chat model, if there is one


def find_candidates(
    store: PassageStore,
    questions: Sequence[Question],
    depth: int,
    *,
    on_progress: Progress = lambda done: None,
) -> dict[str, list[Document]]:
    """Return the first stage's documents by what is asked, as `rerank` takes them."""
    fusion = {"fusion": "scores"} if store.mode == "hybrid" else {}
    found: dict[str, list[Document]] = {}
    for n_done, one in enumerate(questions, start=1):
        found[one.body] = store.search(one.body, depth, **fusion)  # type: ignore[arg-type]  # one name
        on_progress(n_done)
    return found


def candidates_as_run(
    candidates: Mapping[str, Sequence[Document]], questions: Sequence[Question]
) -> TimedRun:
    """Return the first stage's ranking as a run."""
    return TimedRun(
        {
            one.id: _to_ranking(
                (each.id or "", float(each.metadata["retrieval_score"]))
                for each in candidates[one.body]
            )
            for one in questions
        }
    )


def rerank(
    candidates: Mapping[str, Sequence[Document]],
    questions: Sequence[Question],
    judge: Any,
    *,
    on_progress: Progress = lambda done: None,
    **how: Any,
) -> Reranked:
    """Have a judge score all candidates, and a chat model sort the best of them.

    Args:
        candidates: By the body of a question, best first.
        questions: What is asked.
        judge: As for `DocumentSearch`: a backend or its name.
        on_progress: Called with the questions done so far.
        how: More of `DocumentSearch`: `model`, `listed`, `cache`, `budget`, `max_concurrency`.

    Raises:
        BackendError: The judge or the chat model cannot be reached at all.
        SettingsError: It cannot be made.
        StoreError: The search of a question failed.
    """
    depth = max(map(len, candidates.values()), default=1) or 1
    search = DocumentSearch(
        lambda text: list(candidates[text]),
        judge=judge,
        depth=depth,
        judged=depth,
        ensemble="last",
        n_snippets=0,
        weigh_sentences=_weigh_nothing,
        **how,
    )
    done: list[str] = []
    config = search.share()

    def one(question: Question) -> DocumentResult:
        found = search.search(question, config=config)
        _refuse_failed(found)
        done.append(question.id)
        on_progress(len(done))
        return found

    started = perf_counter()
    results = do_many(one, questions, _AT_ONCE)
    seconds = (perf_counter() - started) / max(len(questions), 1)
    found = dict(zip((each.id for each in questions), results, strict=True))
    problems = {name: each.problems[0] for name, each in found.items() if each.outcome != "ok"}
    judged = {name: each.runs["judged"] for name, each in found.items()}
    if search.roles is None:
        return Reranked(TimedRun(judged, seconds, problems), None)
    listed = {name: _listed_first(each) for name, each in found.items()}
    return Reranked(TimedRun(judged, seconds, problems), TimedRun(listed, seconds, problems))


def _weigh_nothing(question: str, windows: Sequence[Window]) -> list[list[float]]:
    """Stand in for what chooses snippets, of which none are wanted."""
    return [[0.0] * len(split_sentences(one["text"])) for one in windows]


def _refuse_failed(found: DocumentResult) -> None:
    if found.unusable:
        raise BackendError(found.unusable)
    if found.outcome == "failed":
        raise StoreError(f"question {found.question.id!r}: {'; '.join(found.problems)}")


def _listed_first(found: DocumentResult) -> Ranking:
    """Return what the chat model sorted, and then the rest as it was judged."""
    listed = [one.pmid for one in found.runs["listed"]]
    rest = [one.pmid for one in found.runs["judged"] if one.pmid not in listed]
    n = len(listed) + len(rest)
    return [RankedDocument(pmid, (n - place) / n) for place, pmid in enumerate([*listed, *rest])]


def describe_collection(store: PassageStore) -> dict[str, Any]:
    """Return what a manifest says of a collection."""
    return {"passages": store.count(), "mode": store.mode, "embeddings": store.embeddings_name}
