"""Batches of adaptive retrieval: the first stage they come from, and the judge of one scale."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from deepera_graph.agents.twin import Work, call, call_in_thread
from deepera_graph.errors import AnswerError, CallError, RoleError, SettingsError
from deepera_graph.judges import load_backend
from deepera_graph.judges.adapters import (
    EmbeddingJudge,
    HybridJudge,
    IntentOnce,
    PairJudge,
    check_absolute,
)
from deepera_graph.judges.base import Judge, read_verdicts
from deepera_graph.judges.embeddings import EvidenceEmbeddings
from deepera_graph.judges.heuristic.roles import heuristic_backend
from deepera_graph.multihop.passages.graph import NeighbourGraph
from deepera_graph.pipeline.intent import UNKNOWN
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult
from deepera_graph.retrieval.fusion import as_search
from deepera_graph.schema import Backend, Batch, Judgement, Unjudged, Verdict
from deepera_graph.stores.words import name_passage, title_of


def open_first_stage(
    source: Any, n: int, where: Mapping[str, Any] | None
) -> Runnable[str, Sequence[Document]]:
    """Return the search of a first stage, for *n* passages."""
    if not isinstance(source, VectorStore | Runnable) and not _is_store(source):
        raise SettingsError(
            "first_stage must be a passage store, a vector store or a retriever, got "
            f"{source!r:.80}"
        )
    if where is not None and not _is_store(source):
        raise SettingsError("where= is for passage stores: give it to your first stage")
    if isinstance(source, VectorStoreRetriever) and "k" not in source.search_kwargs:
        return source.bind(k=n)  # it would fetch 4
    return as_search(source, n, **_conditions(where))


def _conditions(where: Mapping[str, Any] | None) -> dict[str, Any]:
    return {} if where is None else {"where": where}


class NeighbourFetcher:
    """Fetches passages by their ids, from the first stage or from *passages*."""

    def __init__(self, first_stage: Any, passages: Any, where: Mapping[str, Any] | None) -> None:
        source = first_stage if passages is None else passages
        if isinstance(source, VectorStoreRetriever):
            source = source.vectorstore
        if isinstance(source, Sequence):
            source = {name_passage(one): one for one in source}
        self._source = source
        if isinstance(source, Mapping):
            self._fetch: Callable[[Sequence[str]], Iterable[Document]] = self._look_up
        elif isinstance(source, VectorStore):
            self._fetch = source.get_by_ids
        elif callable(getattr(source, "fetch", None)):
            self._fetch = partial(source.fetch, **_conditions(where))
        elif passages is not None and callable(source):
            self._fetch = source
        else:
            raise SettingsError(
                "neighbours cannot be fetched from the first stage by their ids: give passages=, "
                "e.g. the documents that the graph was built from"
            )

    def fetch(self, names: Sequence[str]) -> Work[Sequence[Document]]:
        """Return the documents that are there of the ids asked for."""
        if not names or isinstance(self._source, Mapping):
            return self._look_up(names)
        found: Sequence[Document]
        if isinstance(self._source, VectorStore):
            found = yield call(self._fetch, self._source.aget_by_ids, names)
        else:
            found = yield call_in_thread(lambda: [*self._fetch(names)])
        return found

    def _look_up(self, names: Sequence[str]) -> list[Document]:
        return [self._source[name] for name in names if name in self._source]


def _is_store(source: object) -> bool:
    return not isinstance(source, VectorStore | Runnable) and callable(
        getattr(source, "search", None)
    )


ScoreOrError = float | RoleError
Scores = Judge | EvidenceReranker
_PLAIN = (EmbeddingJudge, HybridJudge, PairJudge)  # need no intent, no cache and no budget


def find_judge(
    judge: Any, graph: NeighbourGraph | None = None, embeddings: Embeddings | None = None
) -> Scores:
    """Return what scores batches: a judge by itself, or a reranker around one.

    Args:
        judge: A `Judge`; embeddings; a `Backend`, its name or its plain form; an
            `EvidenceReranker`; a LangChain cross-encoder, whose scores are taken for logits; or a
            function from a question and texts to one score a text, in [0, 1], None where it failed.
            None compares by embeddings: those of the graph, and for a graph by words *embeddings*,
            and by words, too.
        graph: Whose vectors are used where they were made with the same embeddings.
        embeddings: What the passages are otherwise searched by; `EvidenceEmbeddings` if None.

    Raises:
        SettingsError: It is none of these, or its scores depend on what else is in a batch.
    """
    if judge is None:
        judge = _by_default(graph, embeddings)
    if isinstance(judge, Embeddings):
        is_same = graph is not None and graph.is_made_with(judge)
        return EmbeddingJudge(judge, graph.find_vectors if graph and is_same else None)
    if isinstance(judge, BaseCrossEncoder):  # ours is a backend in other clothes
        judge = getattr(judge, "backend", None) or PairJudge(judge, scale="logit")
    return _of_judge(judge)


def _of_judge(judge: Any) -> Scores:
    if isinstance(judge, _PLAIN):
        return judge
    if isinstance(judge, Judge):
        judge = replace(heuristic_backend(), name=type(judge).__name__, judge=judge, spec=None)
    if isinstance(judge, Backend | str | Mapping | EvidenceReranker):
        return score_all(judge)
    if callable(judge):
        return PairJudge(judge)
    raise SettingsError(
        "judge must be embeddings, a backend, a cross-encoder or a function of a question and "
        f"texts, got {judge!r:.80}"
    )


def score_all(judge: Backend | str | Mapping[str, Any] | EvidenceReranker) -> EvidenceReranker:
    """Return a reranker that scores every passage, and asks once what a question is about."""
    given = judge if isinstance(judge, EvidenceReranker) else EvidenceReranker(load_backend(judge))
    check_absolute(given.backend)
    once = replace(given.backend, intent=IntentOnce(given.backend.intent))
    return given.with_settings(
        threshold=0.0, content="passage", on_error="keep_last", stop_after=None, answer=False
    ).with_backend(once)


def _by_default(graph: NeighbourGraph | None, embeddings: Embeddings | None) -> Embeddings | Judge:
    """Return the embeddings of a graph; for one by words a judge that counts these, too."""
    if graph is not None and graph.kind == "words":
        return HybridJudge(embeddings or EvidenceEmbeddings(), graph.word_shares)
    if graph is None or graph.embeddings is not None:
        return (graph and graph.embeddings) or embeddings or EvidenceEmbeddings()
    if embeddings is not None and graph.is_made_with(embeddings):
        return embeddings
    if graph.made_with == EvidenceEmbeddings.__name__:
        return EvidenceEmbeddings()
    raise SettingsError(
        f"the graph was built with {graph.made_with}: give these embeddings, or another judge"
    )


def score_passages(
    judge: Scores, question: str, passages: Sequence[Document], config: RunnableConfig | None = None
) -> Work[list[ScoreOrError]]:
    """Return one score a passage, in [0, 1], or the error it failed with."""
    if isinstance(judge, EvidenceReranker):
        found = yield call(
            judge.rerank, judge.arerank, question, _unranked(passages), config=config
        )
        return _read_result(found)
    batch = _batch_of(question, passages)
    try:
        verdicts = yield call(judge.judge, judge.ajudge, batch, config)
        return _read_scores(read_verdicts(batch, verdicts))
    except RoleError as error:
        return [error for _ in passages]


def _batch_of(question: str, passages: Sequence[Document]) -> Batch:
    return {
        "question": question,
        "intent": UNKNOWN,
        "windows": [
            {"text": one.page_content, "title": title_of(one), "section": ""} for one in passages
        ],
        "numbers": [*range(len(passages))],
        "part": "",
        "is_joint": False,
    }


def _unranked(passages: Sequence[Document]) -> list[Document]:
    """Return passages without the rank of their first stage: a batch has ranks of its own."""
    return [
        one.model_copy(
            update={"metadata": {k: v for k, v in one.metadata.items() if k != "retrieval_rank"}}
        )
        for one in passages
    ]


def _read_scores(verdicts: Sequence[Verdict]) -> list[ScoreOrError]:
    scores: list[ScoreOrError] = []
    for one in verdicts:
        if isinstance(one, Judgement):
            scores.append(one.score)
        else:
            scores.append(AnswerError(one.cause if isinstance(one, Unjudged) else "no score"))
    return scores


def _read_result(result: RerankResult) -> list[ScoreOrError]:
    found: dict[int, ScoreOrError] = {}
    for one in (*result.passages, *result.left_out):
        failed = one.score is None
        found[one.retrieval_rank] = CallError(one.reason) if failed else float(one.score or 0)
    return [found[rank] for rank in range(1, len(found) + 1)]
