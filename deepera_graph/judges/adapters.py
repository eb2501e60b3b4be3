"""What is no judge yet, as one: embeddings, embeddings and words, functions and cross-encoders.

Each scores a window by itself: the company it is in changes no score.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig
from numpy.typing import NDArray

from deepera_graph.agents.twin import TwinRunnable, Work, ask
from deepera_graph.errors import CallError, SettingsError
from deepera_graph.judges.base import Judge, PlanRequest, as_judge
from deepera_graph.judges.cascade import CascadeJudge
from deepera_graph.judges.cross_encoder.backend import logistic
from deepera_graph.packages import describe_error
from deepera_graph.schema import (
    Backend,
    Batch,
    Intent,
    IntentTask,
    Judgement,
    Unjudged,
    Verdict,
    Window,
)
from deepera_graph.stores.embeddings import cosines, unit_rows
from deepera_graph.usage import Usage

WORDS = 0.5  # weight of words beside meaning; 0.25 to 0.75 do about the same, docs/multihop.md
_MOST_INTENTS = 64
FindVectors = Callable[[Sequence[str]], Sequence[NDArray[np.float32] | None]]
ShareWords = Callable[[str, Sequence[str]], Sequence[float]]
ScoreTexts = Callable[[str, list[str]], Sequence[float | None]]


class EmbeddingJudge(Judge):
    """Scores passages by the cosine with the question: (1 + cosine) / 2, in [0, 1].

    *known* has vectors of length 1 that these embeddings gave texts before; None for a new text.
    """

    asks_model = False

    def __init__(self, embeddings: Embeddings, known: FindVectors | None = None) -> None:
        self._embeddings, self._known = embeddings, known
        self._asked: tuple[str, list[float]] = ("", [])

    def judge(self, batch: Batch, config: RunnableConfig | None = None) -> list[Verdict]:
        """Judge a batch; if the embeddings fail, none of it can be judged."""
        texts = [read_text(one) for one in batch["windows"]]
        held = self._known(texts) if self._known else [None] * len(texts)
        others = [text for text, row in zip(texts, held, strict=True) if row is None]
        try:
            asked = self._embed_question(batch["question"])
            found = iter(self._embed_cosines(others, asked) if others else ())
            rows = [row for row in held if row is not None]
            kept = iter(np.asarray(rows, np.float64) @ unit_rows(asked)[0] if rows else ())
        except Exception as error:
            raise CallError(f"the embeddings failed: {describe_error(error)}") from error
        return [_verdict((1 + next(found if row is None else kept)) / 2) for row in held]

    def _embed_question(self, question: str) -> list[float]:
        asked, vector = self._asked
        if asked != question or not vector:
            vector = self._embeddings.embed_query(question)
            self._asked = question, vector  # batches of one question come one after the other
        return vector

    def _embed_cosines(self, texts: list[str], asked: list[float]) -> Sequence[float]:
        vectors = self._embeddings.embed_documents(texts)
        if len(vectors) != len(texts):
            raise ValueError(f"{len(vectors)} vectors of {len(texts)} texts")
        return [float(one) for one in cosines(unit_rows(vectors), asked)]


class HybridJudge(Judge):
    """Scores passages by their meaning and by their words, in [0, 1].

    The score is (cosine part + 0.5 x word part) / 1.5: (1 + cosine) / 2, and the share of the most
    that BM25 can give for the question. With cosines alone the first ten hold fewer of the
    supporting passages than plain hybrid search does, see docs/multihop.md. *share_words* gives
    the share of words of each text, in [0, 1].
    """

    asks_model = False

    def __init__(self, embeddings: Embeddings, share_words: ShareWords) -> None:
        self._meaning, self._share_words = EmbeddingJudge(embeddings), share_words

    def judge(self, batch: Batch, config: RunnableConfig | None = None) -> list[Verdict]:
        """Judge a batch; if the embeddings fail, none of it can be judged."""
        near = self._meaning.judge(batch, config)
        texts = [read_text(one) for one in batch["windows"]]
        shares = self._share_words(batch["question"], texts)
        return [
            _verdict((one.score + WORDS * share) / (1 + WORDS))
            if isinstance(one, Judgement)
            else one
            for one, share in zip(near, shares, strict=True)
        ]


class PairJudge(Judge):
    """Scores passages by a function of the question and the texts, or a LangChain cross-encoder."""

    def __init__(
        self,
        # gives a score a text, titles before them; None where it failed
        score: ScoreTexts | BaseCrossEncoder,
        *,
        # ``"probability"``: scores are taken as they are, in [0, 1]. ``"logit"``: they are mapped
        # there by the logistic function, which orders them the same.
        scale: Literal["logit", "probability"] = "probability",
    ) -> None:
        if scale not in ("logit", "probability"):
            raise SettingsError(f"scale must be 'logit' or 'probability', got {scale!r}")
        self._score, self._scale = score, scale

    def judge(self, batch: Batch, config: RunnableConfig | None = None) -> list[Verdict]:
        """Judge a batch; if the function fails, none of it can be judged."""
        question, texts = batch["question"], [read_text(one) for one in batch["windows"]]
        try:
            if isinstance(self._score, BaseCrossEncoder):
                given: Sequence[float | None] = self._score.score([(question, t) for t in texts])
            else:
                given = self._score(question, texts)
            scores = [None if one is None else float(one) for one in given]
        except Exception as error:
            raise CallError(f"the scorer failed: {describe_error(error)}") from error
        if len(scores) != len(texts):
            raise CallError(f"the scorer gave {len(scores)} scores for {len(texts)} passages")
        return [_verdict(one, self._scale) for one in scores]


def _verdict(score: float | None, scale: str = "probability") -> Verdict:
    if score is None:
        return Unjudged(cause="no score", usage=Usage())
    if not math.isfinite(score):
        return Unjudged(cause=f"the score is {score}, no number", usage=Usage())
    if scale == "logit":
        score = logistic(score)
    if not -_ROUNDING <= score <= 1 + _ROUNDING:
        cause = f"the score is {score}, not in [0, 1]: is it a logit? PairJudge(..., scale='logit')"
        return Unjudged(cause=cause, usage=Usage())
    return Judgement(score=min(1.0, max(0.0, float(score))), usage=Usage())


_ROUNDING = 1e-6  # by which a cosine in single precision may be beyond 1


def read_text(window: Window) -> str:
    """Return what is compared: the title, if there is one, and the text."""
    title = window["title"]
    return f"{title}\n{window['text']}" if title.strip() else window["text"]


class IntentOnce(TwinRunnable[IntentTask, Intent]):
    """A role that is asked once about each of the last questions; later answers cost nothing."""

    def __init__(self, role: Runnable[IntentTask, Intent]) -> None:
        self._role = role
        self._known: dict[tuple[str, str], Intent] = {}

    def work(self, task: IntentTask, config: RunnableConfig | None) -> Work[Intent]:
        """Return the work of recognizing the intent, or of remembering it."""
        return self._find(task) or self._keep(task, (yield ask(self._role, task, config)))

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
