"""Who scores the batches of adaptive retrieval: scores of all batches must be on one scale."""

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Literal

from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.errors import AnswerError, CallError, RoleError, SettingsError
from deepera_graph.judges import load_backend
from deepera_graph.judges.base import PlanRequest, as_judge
from deepera_graph.judges.cascade import CascadeJudge
from deepera_graph.judges.cross_encoder.backend import logistic
from deepera_graph.multihop.passages.graph import NeighbourGraph
from deepera_graph.packages import describe_error
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult
from deepera_graph.schema import Backend, Intent, IntentTask, Window
from deepera_graph.stores.vectors import cosines, unit_rows
from deepera_graph.stores.words import join_title, name_passage
from deepera_graph.usage import Usage

ScoreOrError = float | RoleError
WORDS = 0.5  # weight of words beside meaning; 0.25 to 0.75 do about the same, docs/multihop.md
_MOST_INTENTS = 64


class Scorer(ABC):
    """Scores passages of a question, each by itself: the company it is in changes no score."""

    @abstractmethod
    def score(
        self,
        question: str,
        passages: Sequence[Document],
        config: RunnableConfig | None = None,
    ) -> Sequence[ScoreOrError]:
        """Return one score a passage, or the error it failed with."""

    async def ascore(
        self,
        question: str,
        passages: Sequence[Document],
        config: RunnableConfig | None = None,
    ) -> Sequence[ScoreOrError]:
        """Do what `score` does; by default in a thread."""
        return await asyncio.to_thread(self.score, question, passages, config)


def as_scorer(
    judge: Any, graph: NeighbourGraph | None = None, embeddings: Embeddings | None = None
) -> Scorer:
    """Return what scores batches.

    Args:
        judge: A `Scorer`; embeddings; a `Backend`, its name or its plain form; an
            `EvidenceReranker`; a LangChain cross-encoder; or a function from a question and texts
            to one score a text, None where it failed. None compares by embeddings: those of the
            graph, and for a graph by words *embeddings*, and by words, too.
        graph: Whose vectors are used where they were made with the same embeddings.
        embeddings: What the passages are otherwise searched by; `EvidenceEmbeddings` if None.

    Raises:
        SettingsError: It is none of these, or its scores depend on what else is in a batch.
    """
    if judge is None:
        judge = _by_default(graph, embeddings)
    if isinstance(judge, Scorer):
        return judge
    if isinstance(judge, Embeddings):
        return EmbeddingScorer(judge, graph)
    if isinstance(judge, BaseCrossEncoder):
        return _of_encoder(judge)
    if isinstance(judge, Backend | str | Mapping | EvidenceReranker):
        return _of_backend(judge)
    if callable(judge):
        return FunctionScorer(judge)
    raise SettingsError(
        "judge must be embeddings, a backend, a cross-encoder or a function of a question and "
        f"texts, got {judge!r:.80}"
    )


def _of_backend(judge: Backend | str | Mapping[str, Any] | EvidenceReranker) -> Scorer:
    if isinstance(judge, EvidenceReranker):
        return BackendScorer(judge)
    return BackendScorer(EvidenceReranker(load_backend(judge)))


def _of_encoder(encoder: BaseCrossEncoder) -> Scorer:
    """Return what a cross-encoder scores; ours is a backend in other clothes."""
    backend = getattr(encoder, "backend", None)
    if isinstance(backend, Backend):
        return BackendScorer(EvidenceReranker(backend))
    return PairScorer(encoder)


def _by_default(graph: NeighbourGraph | None, embeddings: Embeddings | None) -> Embeddings | Scorer:
    """Return the embeddings of a graph; for one by words a scorer that counts these, too."""
    if graph is not None and graph.kind == "words":
        return HybridScorer(embeddings or _own_embeddings(), graph)
    if graph is None or graph.embeddings is not None:
        return graph.embeddings if graph and graph.embeddings else embeddings or _own_embeddings()
    if embeddings is not None and graph.is_made_with(embeddings):
        return embeddings
    if graph.made_with == "EvidenceEmbeddings":
        return _own_embeddings()
    raise SettingsError(
        f"the graph was built with {graph.made_with}: give these embeddings, or another judge"
    )


def _own_embeddings() -> Embeddings:
    made: Embeddings = import_module("langchain_deepera").EvidenceEmbeddings()
    return made


class EmbeddingScorer(Scorer):
    """Scores passages by the cosine with the question: (1 + cosine) / 2, in [0, 1].

    Args:
        embeddings: Any LangChain embeddings.
        graph: If it was built with the same embeddings, its vectors are taken, and the question
            alone is embedded.
    """

    def __init__(self, embeddings: Embeddings, graph: NeighbourGraph | None = None) -> None:
        self._embeddings = embeddings
        self._graph = graph if graph is not None and graph.is_made_with(embeddings) else None
        self._asked: tuple[str, list[float]] = ("", [])

    def score(
        self,
        question: str,
        passages: Sequence[Document],
        config: RunnableConfig | None = None,
    ) -> Sequence[ScoreOrError]:
        """Return one score a passage; if the embeddings fail, the same error for each."""
        known = [self._graph is not None and self._graph.holds(one) for one in passages]
        others = [one for one, is_known in zip(passages, known, strict=True) if not is_known]
        names = [
            name_passage(one) for one, is_known in zip(passages, known, strict=True) if is_known
        ]
        try:
            asked = self._embed_question(question)
            found = iter(self._embed_cosines(others, asked) if others else ())
        except Exception as error:  # noqa: BLE001 - the boundary to foreign code
            return _fail(passages, f"the embeddings failed: {describe_error(error)}")
        kept = iter(self._graph.cosines(asked, names) if self._graph is not None else ())
        return [_read_score((1 + next(kept if one else found)) / 2) for one in known]

    def _embed_question(self, question: str) -> list[float]:
        asked, vector = self._asked
        if asked != question or not vector:
            vector = self._embeddings.embed_query(question)
            self._asked = question, vector  # batches of one question come one after the other
        return vector

    def _embed_cosines(self, passages: Sequence[Document], asked: list[float]) -> Sequence[float]:
        vectors = self._embeddings.embed_documents([join_title(one) for one in passages])
        if len(vectors) != len(passages):
            raise ValueError(f"{len(vectors)} vectors of {len(passages)} texts")
        return [float(one) for one in cosines(unit_rows(vectors), asked)]


class HybridScorer(Scorer):
    """Scores passages by their meaning and by their words, in [0, 1].

    The score is (cosine part + 0.5 x word part) / 1.5: (1 + cosine) / 2, and the share of the most
    that BM25 can give for the question. With cosines alone the first ten hold fewer of the
    supporting passages than plain hybrid search does, see docs/multihop.md.

    Args:
        embeddings: Any LangChain embeddings.
        graph: A graph by words, which says how rare a word is.
    """

    def __init__(self, embeddings: Embeddings, graph: NeighbourGraph) -> None:
        if graph.kind != "words":
            raise SettingsError("a hybrid scorer needs a graph by words")
        self._meaning, self._graph = EmbeddingScorer(embeddings), graph

    def score(
        self,
        question: str,
        passages: Sequence[Document],
        config: RunnableConfig | None = None,
    ) -> Sequence[ScoreOrError]:
        """Return one score a passage; if the embeddings fail, the same error for each."""
        cosines = self._meaning.score(question, passages, config)
        shares = self._graph.word_shares(question, [join_title(one) for one in passages])
        return [
            near if isinstance(near, RoleError) else (near + WORDS * share) / (1 + WORDS)
            for near, share in zip(cosines, shares, strict=True)
        ]


class PairScorer(Scorer):
    """Scores passages by a LangChain cross-encoder.

    Args:
        encoder: Scores pairs of question and text.
        scale: ``"probability"``: its scores are taken as they are. ``"logit"``: they are mapped
            into [0, 1] by the logistic function, which orders them the same; scores that are
            divided by an uncertainty have to be.
    """

    def __init__(
        self, encoder: BaseCrossEncoder, *, scale: Literal["logit", "probability"] = "probability"
    ) -> None:
        if scale not in ("logit", "probability"):
            raise SettingsError(f"scale must be 'logit' or 'probability', got {scale!r}")
        self._encoder, self._scale = encoder, scale

    def score(
        self,
        question: str,
        passages: Sequence[Document],
        config: RunnableConfig | None = None,
    ) -> Sequence[ScoreOrError]:
        """Return one score a passage; if the encoder fails, the same error for each."""
        pairs = [(question, join_title(one)) for one in passages]
        found = _call("the cross-encoder", passages, lambda: self._encoder.score(pairs))
        if self._scale == "probability":
            return found
        return [one if isinstance(one, RoleError) else logistic(one) for one in found]


class FunctionScorer(Scorer):
    """Scores passages by a function of the question and the texts, titles before them."""

    def __init__(self, function: Callable[[str, list[str]], Sequence[float | None]]) -> None:
        self._function = function

    def score(
        self,
        question: str,
        passages: Sequence[Document],
        config: RunnableConfig | None = None,
    ) -> Sequence[ScoreOrError]:
        """Return one score a passage; if the function fails, the same error for each."""
        texts = [join_title(one) for one in passages]
        return _call("the scorer", passages, lambda: self._function(question, texts))


class BackendScorer(Scorer):
    """Scores passages by the judge of a reranker, with its budget, cache and limits.

    The intent of a question is recognized once, not once a batch.

    Raises:
        SettingsError: The scores of the judge depend on what it reads together.
    """

    def __init__(self, reranker: EvidenceReranker) -> None:
        check_absolute(reranker.backend)
        intent = IntentOnce(reranker.backend.intent)
        self._reranker = reranker.with_settings(
            threshold=0.0, content="passage", on_error="keep_last", stop_after=None, answer=False
        ).with_backend(replace(reranker.backend, intent=intent))

    def score(
        self,
        question: str,
        passages: Sequence[Document],
        config: RunnableConfig | None = None,
    ) -> Sequence[ScoreOrError]:
        """Return one score a passage, in [0, 1]."""
        return _read_result(self._reranker.rerank(question, passages, config=config))

    async def ascore(
        self,
        question: str,
        passages: Sequence[Document],
        config: RunnableConfig | None = None,
    ) -> Sequence[ScoreOrError]:
        """Do what `score` does, in the running loop."""
        return _read_result(await self._reranker.arerank(question, passages, config=config))


class IntentOnce(Runnable[IntentTask, Intent]):
    """A role that is asked once about each of the last questions; later answers cost nothing."""

    def __init__(self, role: Runnable[IntentTask, Intent]) -> None:
        self._role = role
        self._known: dict[tuple[str, str], Intent] = {}

    def invoke(
        self, input: IntentTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Intent:
        """Recognize the intent, or remember it."""
        return self._find(input) or self._keep(input, self._role.invoke(input, config))

    async def ainvoke(
        self, input: IntentTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Intent:
        """Do what `invoke` does, in the running loop."""
        return self._find(input) or self._keep(input, await self._role.ainvoke(input, config))

    def _find(self, task: IntentTask) -> Intent | None:
        known = self._known.get((task["question"], task["problem"]))
        return None if known is None else known.model_copy(update={"usage": Usage()})

    def _keep(self, task: IntentTask, intent: Intent) -> Intent:
        if len(self._known) >= _MOST_INTENTS:
            self._known = {}
        self._known[task["question"], task["problem"]] = intent
        return intent


_ANY_TWO: tuple[Window, Window] = (
    {"text": "one", "title": "", "section": ""},
    {"text": "two", "title": "", "section": ""},
)


def check_absolute(backend: Backend) -> None:
    """Raise `SettingsError` if scores of a backend's judge depend on what it reads together."""
    judge = as_judge(backend.judge)
    first = judge.plan(
        PlanRequest(
            question="any",
            intent={
                "topic": "", "entity_type": "", "intent": "other", "expected_answer_type": "other",
            },
            windows=_ANY_TWO,
            open=(0, 1),
            next=(0, 1),
        )
    )  # fmt: skip
    if isinstance(judge, CascadeJudge) or any(batch["is_joint"] for batch in first):
        raise SettingsError(
            f"backend {backend.name!r} cannot score batches of adaptive retrieval: its scores "
            "depend on the passages that it reads together, so that those of two batches are not "
            "on one scale; take embeddings, 'rules', a cross-encoder or a chat model, and let "
            f"{backend.name!r} rerank what is found"
        )


def _read_result(result: RerankResult) -> list[ScoreOrError]:
    """Return the scores in the order of the passages."""
    found: dict[int, ScoreOrError] = {}
    for one in (*result.passages, *result.left_out):
        failed = one.score is None
        found[one.retrieval_rank] = CallError(one.reason) if failed else float(one.score or 0)
    return [found[rank] for rank in range(1, len(found) + 1)]


def _call(
    what: str, passages: Sequence[Document], ask: Callable[[], Sequence[float | None]]
) -> list[ScoreOrError]:
    try:
        found = [_read_score(one) for one in ask()]
    except Exception as error:  # noqa: BLE001 - the boundary to foreign code
        return _fail(passages, f"{what} failed: {describe_error(error)}")
    if len(found) != len(passages):
        return _fail(passages, f"{what} gave {len(found)} scores for {len(passages)} passages")
    return found


def _read_score(given: Any) -> ScoreOrError:
    if given is None:
        return AnswerError("no score")
    score = float(given)
    return score if math.isfinite(score) else AnswerError(f"the score is {score}, no number")


def _fail(passages: Sequence[Document], cause: str) -> list[ScoreOrError]:
    return [CallError(cause) for _ in passages]
