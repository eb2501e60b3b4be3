"""The steps of a search for documents, one function or node each; `search.py` is the wiring."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from typing_extensions import TypedDict

from deepera_graph.agents.twin import TwinRunnable, Work, ask, call, call_in_thread
from deepera_graph.bioasq.ensemble import nominate, rank_places, weigh
from deepera_graph.bioasq.phase_a.ordering import (
    FoundDocument,
    Order,
    Query,
    RewriteQueryTask,
    SortTask,
    WeighSentences,
    align_with,
    choose_snippets,
    find_local_judge,
    list_pieces,
    logit,
    value_of,
)
from deepera_graph.bioasq.runs import ScoredDocument, name_document
from deepera_graph.bioasq.settings import SearchSettings
from deepera_graph.errors import BudgetError, DeepEraError, RoleError
from deepera_graph.pipeline.shown import describe_failures
from deepera_graph.pipeline.state import Update, append
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult
from deepera_graph.retrieval.fusion import as_search, fuse, named_errors
from deepera_graph.retrieval.search import DENSE_WEIGHT
from deepera_graph.schema import Window
from deepera_graph.stores.words import name_passage, title_of
from deepera_graph.usage import UsageRecord, merge_usage

Pairs = list[list[Any]]  # [pmid, score], best first


class SearchInput(TypedDict):
    """What is asked."""

    question: str


class SnippetRecord(TypedDict):
    """The fields of a `Snippet`, and how likely it is one."""

    snippet: dict[str, Any]
    probability: float


class SearchOutput(TypedDict):
    """What was found, the rankings on the way, and what went wrong.

    `retrieved`, `judged` and `listed` are rankings of all documents that were retrieved, scored and
    sorted; `documents` is the last. `failed` says why there is none, `degraded` names the steps
    that fell back, `stopped` is ``budget`` if it was spent.
    """

    question: str
    query: str
    retrieved: Pairs
    judged: Pairs
    listed: Pairs
    documents: Pairs
    snippets: list[SnippetRecord]
    failed: str
    unusable: str
    stopped: Literal["", "budget"]
    degraded: Annotated[list[str], append]
    problems: Annotated[list[str], append]
    usage: Annotated[dict[str, UsageRecord], merge_usage]


class SearchState(SearchOutput):
    """Everything that travels; `passages` are the documents that were retrieved."""

    passages: list[Document]


def receive(state: SearchState) -> Update:
    """Begin a question anew, whatever the thread held before."""
    return {
        "question": state["question"],
        "query": "",
        **{name: [] for name in ("retrieved", "judged", "listed", "documents", "snippets")},
        "passages": [],
        "failed": "",
        "unusable": "",
        "stopped": "",
        "degraded": None,
        "problems": None,
        "usage": None,
    }


def ask_rewrite(state: SearchState) -> RewriteQueryTask:
    """Show the rewriter the question."""
    return {"question": state["question"]}


def record_rewrite(state: SearchState, said: Query) -> Update:
    """Keep the query; the question is searched for beside it."""
    return {"query": said.text, "problems": _told("rewrite", said.problem)}


def rewrite_failed(state: SearchState, error: RoleError) -> Update:
    """Go on with the question alone."""
    return _fell_back("rewrite", "the question is searched for as it is", error)


def document_id(passage: Document) -> str:
    """Return the id of the document that a passage is, or is a part of."""
    name, part = name_passage(passage), passage.metadata.get("part")
    return name_document(name.removesuffix(f"#{part}") if part is not None else name)


# The best first-stage score of a question: 1 where scores are fused, else what one ranking of the
# two contributes there, as scores that fall faster would count for more beside a judge.
_BEST = {
    "fused": 1.0,
    "sparse": 1 - DENSE_WEIGHT,
    "dense": DENSE_WEIGHT,
    "hybrid": 1 - DENSE_WEIGHT,  # fused by ranks
}


class Retrieve(TwinRunnable[SearchState, Update]):
    """Looks for documents by the question, and by the query if there is one."""

    def __init__(self, source: Any, settings: SearchSettings) -> None:
        mode = getattr(source, "mode", None)
        how = {"fusion": settings.fusion} if mode == "hybrid" else {}
        self._depth, self._source = settings.depth, as_search(source, settings.depth, **how)
        self._best = _BEST.get("fused" if how.get("fusion") == "scores" else str(mode), 1.0)

    def work(self, task: SearchState, config: RunnableConfig | None) -> Work[Update]:
        """Search; a search that fails ends the question, and says why."""
        found: list[Sequence[Document]] = []
        try:
            with named_errors("the search failed"):
                for one in (task["question"], *filter(None, [task["query"]])):
                    found.append((yield ask(self._source, one, config)))
        except DeepEraError as error:
            return _no_documents(error)
        passages = _join([_keep_distinct(one) for one in found])[: self._depth]
        scores = first_scores(passages, best=self._best)
        pairs = [[document_id(one), score] for one, score in zip(passages, scores, strict=True)]
        return {"passages": passages, "retrieved": pairs, "judged": pairs}


def _keep_distinct(passages: Sequence[Document]) -> list[Document]:
    return [*{document_id(one): one for one in reversed(passages)}.values()][::-1]


def _join(found: Sequence[list[Document]]) -> list[Document]:
    """Join two rankings by reciprocal ranks; the first score of each is then that sum."""
    if len(found) == 1:
        return found[0]
    by_id = {document_id(one): one for ranking in reversed(found) for one in ranking}
    scores = fuse([document_id(one) for one in ranking] for ranking in found)
    order = sorted(scores, key=lambda name: (-scores[name], name))
    return [
        by_id[name].model_copy(
            update={
                "metadata": {
                    **by_id[name].metadata,
                    "retrieval_score": scores[name],
                    "retrieval_rank": rank,
                }
            }
        )
        for rank, name in enumerate(order, start=1)
    ]


def first_scores(passages: Sequence[Document], *, best: float = 1.0) -> list[float]:
    """Return the first-stage scores of a ranking, scaled to their *best*; by rank without any."""
    given = [one.metadata.get("retrieval_score") for one in passages]
    known = [float(one) for one in given if isinstance(one, int | float)]
    if len(known) < len(given) or not known or max(known) <= 0:
        return [best * (len(given) - place) / len(given) for place in range(len(given))]
    return [best * one / max(known) for one in known]


def _no_documents(error: DeepEraError) -> Update:
    stopped = "budget" if isinstance(error, BudgetError) else ""
    return {"failed": str(error), "stopped": stopped, "problems": [str(error)]}


_NOTHING_ANSWERS = (
    "no document is evidence to the judge, so perhaps none answers; the best of them are given"
)


class Score(TwinRunnable[SearchState, Update]):
    """Has a judge score the best documents, and orders them anew."""

    def __init__(self, judge: EvidenceReranker, settings: SearchSettings) -> None:
        self._judge, self._n = judge, settings.judged
        self._first_weight = settings.first_weight or 0.0
        local = self._local = find_local_judge(judge)
        own = local is None or settings.first_weight is not None
        self._align = None if own or local is None else align_with(local)

    def work(self, task: SearchState, config: RunnableConfig | None) -> Work[Update]:
        """Judge; where that fails the first stage's order is kept."""
        judge, passages = self._judge, _to_judge(task["passages"][: self._n])
        try:
            with named_errors("the judge failed"):
                result = yield call(
                    judge.rerank, judge.arerank, task["question"], passages, config=config
                )
                update: Update = yield call_in_thread(self._update, task, result)
        except DeepEraError as error:
            return _fell_back("score", "the first stage's order is kept", error)
        return update

    def _update(self, state: SearchState, result: RerankResult) -> Update:
        places = {pmid: place for place, (pmid, _) in enumerate(state["retrieved"])}
        scores = {places[one.id]: one.score for one in result.all_passages if one.score is not None}
        local, best = self._local, max(scores.values(), default=1.0)
        unanswered = bool(scores) and local is not None and best < local.operating_point
        return {
            "judged": order_by(state["retrieved"], self._values(state, scores)),
            "problems": [
                *_told("score", describe_failures(result)),
                *_told("score", _NOTHING_ANSWERS if unanswered else ""),
            ],
            "degraded": ["score"] if result.outcome == "degraded" or not scores else [],
            "unusable": result.backend_failure or "",
            **({"stopped": "budget"} if result.outcome == "budget_stop" else {}),
            "usage": {name: used.record() for name, used in result.usage.items()},
        }

    def _values(self, state: SearchState, scores: Mapping[int, float]) -> Mapping[int, float]:
        """Return what documents are ordered by, by place."""
        first = [score for _, score in state["retrieved"]]
        if self._align is not None and scores:
            places = [*scores]
            windows = [_window(state["passages"][place]) for place in places]
            found = self._align(state["question"], windows)
            return {
                place: value_of(scores[place], first[place], one)
                for place, one in zip(places, found, strict=True)
            }
        if not self._first_weight:
            return scores
        return {
            place: logit(score) + self._first_weight * first[place]
            for place, score in scores.items()
        }


def _to_judge(passages: Sequence[Document]) -> list[Document]:
    """Return documents under their ids, with nothing but what a judge sees."""
    return [
        Document(
            id=document_id(one), page_content=one.page_content, metadata={"title": title_of(one)}
        )
        for one in passages
    ]


def order_by(retrieved: Sequence[Sequence[Any]], values: Mapping[int, float]) -> Pairs:
    """Order documents by their values; of equal ones the first stage's better one comes first."""
    # Those that have none, as they were not judged or could not be, follow in the order they came
    # in, with lower scores: a failed call is no score of 0.
    order = sorted(sorted(values), key=lambda place: -values[place])
    rest = [place for place in range(len(retrieved)) if place not in values]
    lowest, n = min(values.values(), default=1.0), len(rest)
    below = {place: lowest - (number + 1) / n for number, place in enumerate(rest)}
    return [[retrieved[place][0], {**values, **below}[place]] for place in [*order, *rest]]


def ask_sort(state: SearchState, *, settings: SearchSettings) -> SortTask:
    """Show the sorter the best documents."""
    windows = {document_id(one): _window(one) for one in state["passages"]}
    best = [windows[pmid] for pmid, _ in state["judged"][: settings.listed]]
    return {"question": state["question"], "passages": best}


def record_sort(state: SearchState, said: Order, *, settings: SearchSettings) -> Update:
    """Keep the order."""
    best = [pmid for pmid, _ in state["judged"][: settings.listed]]
    ranked = rank_places([best[number - 1] for number in said.order])
    notes = [f"the order was mended: {said.mended}" if said.mended else "", said.problem]
    return {
        "listed": [[*one] for one in ranked],
        "problems": [told for note in notes for told in _told("sort", note)],
    }


def sort_failed(state: SearchState, error: RoleError) -> Update:
    """Keep the judge's order."""
    unusable = str(error) if getattr(error, "unusable", False) else state["unusable"]
    return {**_fell_back("sort", "the judge's order is kept", error), "unusable": unusable}


def combine(state: SearchState, *, settings: SearchSettings) -> Update:
    """Join the judge's and the chat model's ranking, and take the best documents."""
    judged = _read_pairs(state["judged"])
    if not state["listed"]:
        return {"documents": state["judged"][: settings.n_documents]}
    listed, n = _read_pairs(state["listed"]), settings.n_documents
    one, other = {"q": judged}, {"q": listed}
    if settings.ensemble == "weighted":
        made = weigh([one, other], settings.weights, n=n)["q"]
    elif settings.ensemble == "nominate":
        n_first, n_second = settings.nominated
        made = nominate(one, other, n_first=n_first, n_second=n_second, n=n)["q"]
    else:
        made = nominate(other, one, n_first=n, n_second=0)["q"]
    return {"documents": [[*document] for document in made[:n]]}


def find_snippets(state: SearchState, *, weigh: WeighSentences, settings: SearchSettings) -> Update:
    """Take the sentences that answer out of the documents; what fails costs no document."""
    by_id = {document_id(one): one for one in state["passages"]}
    found = [by_id[pmid] for pmid, _ in state["documents"]]
    whole = [one for one in found if "part" not in one.metadata]
    problems = []
    if n_parts := len(found) - len(whole):
        problems = [
            f"snippets: {n_parts} documents are indexed in parts, whose offsets are not those "
            "of the document; index them whole (deepera-lab bioasq index)"
        ]
    try:
        with named_errors("no snippets"):
            documents = [
                FoundDocument(document_id(one), title_of(one), one.page_content) for one in whole
            ]
            pieces = list_pieces(state["question"], documents, weigh=weigh)
    except DeepEraError as error:
        problems.append(f"snippets: {error}")
        return {"problems": problems, "degraded": ["snippets"]}
    chosen = choose_snippets(pieces, n=settings.n_snippets)
    records = [{"snippet": asdict(one.snippet), "probability": one.probability} for one in chosen]
    return {"snippets": records, "problems": problems}


def _window(passage: Document) -> Window:
    return {"text": passage.page_content, "title": title_of(passage), "section": ""}


def _read_pairs(pairs: Pairs) -> list[ScoredDocument]:
    return [ScoredDocument(pmid, score) for pmid, score in pairs]


def _told(step: str, what: str) -> list[str]:
    return [f"{step}: {what}"] if what else []


def _fell_back(step: str, so: str, error: DeepEraError) -> Update:
    """Say that a step failed, and what holds instead."""
    is_spent = isinstance(error, BudgetError)
    return {
        "problems": [f"{step}: {error}; {so}"],
        "degraded": [] if is_spent else [step],
        **({"stopped": "budget"} if is_spent else {}),
    }
