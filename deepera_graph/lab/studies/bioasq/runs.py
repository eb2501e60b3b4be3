"""Runs for the experiments of BioASQ: a collection is searched, and what is found reranked.

With a folder (`Kept`) every question is on disk as soon as it is done, and an experiment goes on
where it was cut short.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from langchain_core.documents import Document

from deepera_graph.agents.journal import Journal
from deepera_graph.bioasq.phase_a.search import DocumentSearch
from deepera_graph.bioasq.questions import BioasqQuestion, read_pmid
from deepera_graph.bioasq.runs import Ranking, Run, ScoredDocument, SearchJournal, rank_scores
from deepera_graph.errors import BackendError, SettingsError, StoreError
from deepera_graph.lab.rankers.retrieval import CorpusBM25
from deepera_graph.retrieval.collections.passage_store import PassageStore
from deepera_graph.schema import Window
from deepera_graph.settings.budget import stream_many
from deepera_graph.settings.ranges import check_at_least
from deepera_graph.stores.words import join_title
from deepera_graph.text.words import split_sentences

RETRIEVERS = ("bm25", "dense", "hybrid", "hybrid-scores")
FIRST_STAGE = "first stage"
JOURNAL = ".journal.jsonl"  # ending of the file of a run that can be gone on with
_AT_ONCE = 4
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class TimedRun:
    """A run, how long it took, and what went wrong on the way."""

    run: Run  # ranked documents by question; a question that is missing has none
    # a question, on average; not a number where the run was read from a file
    seconds: float = float("nan")
    # what went wrong, by question; its documents are in the order before that step
    problems: Mapping[str, str] = field(default_factory=dict)


def file_of(name: str) -> str:
    """Return the name of a file for that of a run, without its ending."""
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Where an experiment keeps what is done of each question."""

    folder: Path | None = None  # it has a file a run; None keeps nothing
    resume: bool = False  # whether to go on with what is there
    # what everything in it depends on, plain data: the collection, say
    about: Mapping[str, Any] = field(default_factory=dict)

    def path_of(self, name: str) -> Path | None:
        """Return the file of a run; None without a folder, which is made otherwise."""
        if self.folder is None:
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"{file_of(name)}{JOURNAL}"


class _Clock:
    """Tells the seconds since it was last asked."""

    def __init__(self) -> None:
        self._before = perf_counter()

    def lap(self) -> float:
        now = perf_counter()
        passed, self._before = now - self._before, now
        return passed


def retrieve(
    store: PassageStore,
    names: Sequence[str],
    questions: Sequence[BioasqQuestion],
    depth: int,
    *,
    kept: Kept = Kept(),
    on_progress: Progress = lambda done: None,
) -> dict[str, TimedRun]:
    """Search a collection for every question by each retriever.

    Args:
        store: What is searched.
        names: Of `RETRIEVERS`: ``bm25`` in memory, over titles and texts; ``dense``, the cosine;
            ``hybrid`` and ``hybrid-scores`` as the collection joins both, by rank or by score.
        questions: What is asked.
        depth: Documents of a question, >= 1.
        kept: Where each question is kept.
        on_progress: Called with the searches done so far.

    Raises:
        SettingsError: A retriever is unknown, the collection has no vectors for it, or what is kept
            is of something else.
        StoreError: The collection cannot be read.
    """
    check_at_least("depth", depth, 1)
    found, n_done = {}, 0
    for name in names:
        _check_retriever(store, name)
        search, clock = None, _Clock()
        ran = {**kept.about, "retriever": name, "depth": depth}
        with Journal(kept.path_of(name), ran).open(resume=kept.resume) as journal:
            for one in questions:
                if journal.entries.get(one.id, {}).get("body") != one.body:
                    if search is None:  # BM25 takes its time to be made, which counts for nothing
                        search, _ = _make_retriever(store, name), clock.lap()
                    ranking = search(one.body, depth)
                    journal.put(
                        one.id, {"body": one.body, "ranked": ranking, "seconds": clock.lap()}
                    )
                n_done += 1
                on_progress(n_done)
        entries = {one.id: journal.entries[one.id] for one in questions}
        found[name] = _timed(entries, lambda entry: _read_pairs(entry["ranked"]))
    return found


def _read_pairs(pairs: Any) -> Ranking:
    return [ScoredDocument(*pair) for pair in pairs]


def _timed(
    entries: Mapping[str, Mapping[str, Any]], read: Callable[[Mapping[str, Any]], Ranking]
) -> TimedRun:
    """Return a run out of a journal's entries; the seconds in these add up to all that passed."""
    seconds = sum(one["seconds"] for one in entries.values()) / max(len(entries), 1)
    problems = {
        name: one["problems"][0]
        for name, one in entries.items()
        if one.get("problems") and one["outcome"] != "ok"
    }
    return TimedRun({name: read(one) for name, one in entries.items()}, seconds, problems)


def default_retrievers(store: PassageStore) -> tuple[str, ...]:
    """Return the retrievers that a collection has vectors for."""
    return (
        RETRIEVERS if store.mode == "hybrid" else ("bm25",) + ("dense",) * (store.mode == "dense")
    )


def _check_retriever(store: PassageStore, name: str) -> None:
    if name not in RETRIEVERS:
        raise SettingsError(f"retrievers are {', '.join(RETRIEVERS)}, got {name!r}")
    if name not in ("bm25", *default_retrievers(store)):
        raise SettingsError(f"{name} needs a collection that has vectors, and this is {store.mode}")


def _make_retriever(store: PassageStore, name: str) -> Callable[[str, int], list[ScoredDocument]]:
    if name == "bm25":
        texts = {one.passage.id or "": join_title(one.passage) for one in store.scan()}
        bm25 = CorpusBM25(texts)
        return lambda text, k: _to_ranking((one.id, one.score) for one in bm25.search(text, k))
    if name == "dense":
        return lambda text, k: _search_by_meaning(store, text, k)
    fusion = "scores" if name == "hybrid-scores" else "ranks"
    return lambda text, k: _to_ranking(
        (one.id or "", float(one.metadata["retrieval_score"]))
        for one in store.search(text, k, fusion=fusion)  # type: ignore[arg-type]  # one of two
    )


def _search_by_meaning(store: PassageStore, text: str, k: int) -> list[ScoredDocument]:
    embeddings = store.vectorstore.embeddings
    if embeddings is None:
        raise StoreError("the collection has no embeddings")
    [near] = store.search_near([embeddings.embed_query(text)], k)
    return _to_ranking((one.id, one.cosine) for one in near)


def _to_ranking(pairs: Any) -> list[ScoredDocument]:
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
    questions: Sequence[BioasqQuestion],
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
    candidates: Mapping[str, Sequence[Document]], questions: Sequence[BioasqQuestion]
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
    candidates: Mapping[str, Sequence[Document]],  # by the body of a question, best first
    questions: Sequence[BioasqQuestion],  # what is asked
    judge: Any,  # as for `DocumentSearch`: a backend or its name
    *,
    name: str = "reranked",  # of the run, where it is kept
    kept: Kept = Kept(),  # where each question is kept; one of which a step failed is asked again
    on_progress: Progress = lambda done: None,  # called with the questions done so far
    **how: Any,  # more of `DocumentSearch`: `model`, `listed`, `cache`, `budget`, `max_concurrency`
) -> Reranked:
    """Have a judge score all candidates, and a chat model sort the best of them."""
    # Raises `BackendError` if the judge or the chat model cannot be reached at all; `SettingsError`
    # if it cannot be made, or what is kept is of something else; `StoreError` if the search of a
    # question failed.
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
    described = search.describe()
    settings = {
        name: one
        for name, one in described["settings"].items()
        if name not in ("budget", "max_concurrency")  # no effect on what is found
    }
    ran = {**kept.about, **described, "settings": settings}
    with SearchJournal(kept.path_of(name), ran).open(resume=kept.resume) as journal:
        left = [one for one in questions if not journal.is_done(one)]
        n_before, clock = len(questions) - len(left), _Clock()
        ask = partial(search.search, config=search.share())
        for n_done, found in enumerate(stream_many(ask, left, _AT_ONCE), start=n_before + 1):
            if found.unusable:
                raise BackendError(found.unusable)
            if found.outcome == "failed":
                raise StoreError(f"question {found.question.id!r}: {'; '.join(found.problems)}")
            journal.add(found.to_dict(), seconds=clock.lap())
            on_progress(n_done)
    entries = {one.id: journal.entries[one.id] for one in questions}
    judged = _timed(entries, lambda entry: _read_pairs(entry["runs"]["judged"]))
    return Reranked(judged, _timed(entries, _listed_first) if search.roles is not None else None)


def _weigh_nothing(question: str, windows: Sequence[Window]) -> list[list[float]]:
    """Stand in for what chooses snippets, of which none are wanted."""
    return [[0.0] * len(split_sentences(one["text"])) for one in windows]


def _listed_first(entry: Mapping[str, Any]) -> Ranking:
    """Return what the chat model sorted, and then the rest as it was judged."""
    listed = [pmid for pmid, _ in entry["runs"]["listed"]]
    rest = [pmid for pmid, _ in entry["runs"]["judged"] if pmid not in listed]
    n = len(listed) + len(rest)
    return [ScoredDocument(pmid, (n - place) / n) for place, pmid in enumerate([*listed, *rest])]


def describe_collection(store: PassageStore) -> dict[str, Any]:
    """Return what a manifest says of a collection."""
    return {"passages": store.count(), "mode": store.mode, "embeddings": store.embeddings_name}
