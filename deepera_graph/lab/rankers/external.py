"""Rankers of other packages: LangChain's compressors, FlashRank, rerankers, cross-encoders."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from threading import Lock
from typing import Any

import numpy as np
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from deepera_graph.calibration.instance import RankingError, UnavailableError
from deepera_graph.errors import DeepEraError, SettingsError
from deepera_graph.lab.asking import MAX_CONCURRENCY, Chat
from deepera_graph.lab.rankers.base import (
    CandidatePassage,
    Job,
    Ranker,
    Ranking,
    RepeatedRun,
    as_document,
    rank_by_score,
    same_logging,
    texts_of,
)
from deepera_graph.packages import call_foreign, check_extra, describe_error, import_extra
from deepera_graph.stores.embeddings import package_versions, weights
from deepera_graph.usage import Usage

SENTENCE_MODELS = "sentence_transformers"
_PLACE = "bench_place"
_SCORE = "relevance_score"
_check = partial(check_extra, error=UnavailableError)
_import = partial(import_extra, error=UnavailableError)
_call = partial(call_foreign, error=UnavailableError)


class ModelRanker(Ranker):
    """Ranks with a model of another package, which is loaded when it is first needed."""

    def __init__(
        self,
        name: str,
        fingerprint: Mapping[str, Any],
        *,
        load: Callable[[], Any],
        rank: Callable[[Any, str, Sequence[CandidatePassage]], Ranking],
    ) -> None:
        self.name, self.fingerprint = name, fingerprint
        self._load, self._rank = load, rank
        self._model: Any = None

    def prepare(self) -> None:
        """Load the weights."""
        if self._model is None:
            self._model = _call("no weights", self._load)

    def rank(self, question: str, passages: Sequence[CandidatePassage]) -> Ranking:
        """Return the passages by the model's scores, on its own scale."""
        if not passages:
            return []
        self.prepare()
        return _call("no scores", lambda: self._rank(self._model, question, passages))


def flashrank(model: str = "ms-marco-TinyBERT-L-2-v2") -> ModelRanker:
    """Return a model that FlashRank knows, downloaded by it on first use; scores in [0, 1]."""
    _check("flashrank", install="flashrank")

    def load() -> Any:
        with same_logging():
            return _import("flashrank").Ranker(model_name=model, log_level="WARNING")

    def rank(loaded: Any, question: str, passages: Sequence[CandidatePassage]) -> Ranking:
        shown = [{"id": place, "text": text} for place, text in enumerate(texts_of(passages))]
        request = _import("flashrank").RerankRequest(query=question, passages=shown)
        by_place = {one["id"]: float(one["score"]) for one in loaded.rerank(request)}
        return rank_by_score(passages, [by_place[place] for place in range(len(passages))])

    about = {"kind": "flashrank", "model": model, **package_versions("flashrank", "onnxruntime")}
    return ModelRanker(f"FlashRank {model}", about, load=load, rank=rank)


def cross_encoder(model: str) -> ModelRanker:
    """Return a cross-encoder of sentence-transformers: a folder, or a name on the hub."""
    _check(SENTENCE_MODELS, extra="sentence-transformers")
    name = f"cross-encoder {model}"
    place, about = weights(model)

    def rank(loaded: Any, question: str, passages: Sequence[CandidatePassage]) -> Ranking:
        pairs = [(question, text) for text in texts_of(passages)]
        scores = np.asarray(loaded.predict(pairs, show_progress_bar=False), dtype=np.float64)
        if scores.shape != (len(pairs),):
            raise RankingError(
                f"ranker {name!r} must give one score a pair, gave {scores.shape[1:]}"
            )
        return rank_by_score(passages, list(scores))

    about = {"kind": "cross-encoder", **about, **sentence_versions()}
    load = partial(load_sentence_model, "CrossEncoder", place)
    return ModelRanker(name, about, load=load, rank=rank)


def splade(model: str) -> ModelRanker:
    """Return a sparse encoder of sentence-transformers, such as SPLADE: dot products of terms."""
    _check(SENTENCE_MODELS, extra="sentence-transformers")
    name = f"SPLADE {model}"
    place, about = weights(model)

    def rank(loaded: Any, question: str, passages: Sequence[CandidatePassage]) -> Ranking:
        asked = loaded.encode_query([question], show_progress_bar=False)
        read = loaded.encode_document(texts_of(passages), show_progress_bar=False)
        scores = np.asarray(loaded.similarity(asked, read), dtype=np.float64)
        return rank_by_score(passages, list(scores[0]))

    about = {"kind": "splade", **about, **sentence_versions()}
    load = partial(load_sentence_model, "SparseEncoder", place)
    return ModelRanker(name, about, load=load, rank=rank)


def load_sentence_model(kind: str, place: str) -> Any:
    """Load a model of sentence-transformers, with its progress bars switched off."""
    make = getattr(_import(SENTENCE_MODELS), kind)
    if "transformers" in sys.modules:
        sys.modules["transformers"].utils.logging.disable_progress_bar()
    return make(place)


def sentence_versions() -> dict[str, str]:
    """Return the versions of what a model of sentence-transformers runs on."""
    return package_versions("sentence-transformers", "transformers", "torch")


def rerankers(path: str) -> ModelRanker:
    """Return a model of the `rerankers` package: ``TYPE/NAME``; its key is in ``TYPE_API_KEY``."""
    kind, _, model = path.partition("/")
    if not (kind and model):
        raise SettingsError(f"rerankers:... must be TYPE/NAME, got {path!r}")
    _check("rerankers", extra="rerankers")

    def load() -> Any:
        key = os.environ.get(f"{kind.upper()}_API_KEY")
        said = StringIO()
        with redirect_stdout(said):
            loaded = _import("rerankers").Reranker(
                model, model_type=kind, verbose=0, **({"api_key": key} if key else {})
            )
        if loaded is None:  # the package prints why
            raise UnavailableError(" ".join(said.getvalue().split()))
        return loaded

    def rank(loaded: Any, question: str, passages: Sequence[CandidatePassage]) -> Ranking:
        texts, lowest = texts_of(passages), -float(len(passages))
        with redirect_stdout(StringIO()):
            found = loaded.rank(query=question, docs=texts, doc_ids=list(range(len(texts)))).results
        return [
            (passages[one.document.doc_id]["id"], lowest if one.score is None else float(one.score))
            for one in found
        ]

    about = {
        "kind": "rerankers",
        "path": path,
        **package_versions("rerankers", "transformers", "torch"),
    }
    return ModelRanker(f"rerankers {path}", about, load=load, rank=rank)


# A question on which it raises keeps its first-stage order, all its passages counted as failed. It
# must keep the metadata of documents. *at_once* questions are ranked in threads.
class Compressor(Ranker):
    """Ranks by the order in which a LangChain compressor returns documents; the rest are misses."""

    def __init__(
        self,
        compressor: BaseDocumentCompressor,
        *,
        name: str,
        fingerprint: Mapping[str, Any] | None = None,
        at_once: int = 1,
        asks_model: bool = False,
    ) -> None:
        self.name, self.fingerprint, self.asks_model = name, fingerprint, asks_model
        self._compressor, self._at_once = compressor, at_once
        self._counter = _Counter()

    def repeat(self, number: int) -> Ranker:
        """Return one more run of a compressor that asks a model; it has no cache."""
        return RepeatedRun(self, number) if number and self.asks_model else self

    @property
    def usage(self) -> Usage:
        """Model calls and tokens so far, as far as they are known."""
        return self._counter.usage

    def rank(self, question: str, passages: Sequence[CandidatePassage]) -> Ranking:
        """Return what the compressor returned, with its `relevance_score`, else minus the rank."""
        documents: Sequence[Document] = [
            as_document(one, **{_PLACE: one["id"]}) for one in passages
        ]
        try:
            returned = self._compressor.compress_documents(
                documents, question, callbacks=[self._counter]
            )
        except DeepEraError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary to foreign code
            self.problems.note(len(passages), describe_error(error))
            returned = documents
        return [self._read(document, rank) for rank, document in enumerate(returned, start=1)]

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Do what `rank` does for many questions, some at once."""
        if self._at_once == 1:
            return [self.rank(*job) for job in jobs]
        with ThreadPoolExecutor(self._at_once) as pool:
            return list(pool.map(lambda job: self.rank(*job), jobs))

    def _read(self, document: Document, rank: int) -> tuple[str, float]:
        place = document.metadata.get(_PLACE)
        if not isinstance(place, str):
            raise RankingError(f"ranker {self.name!r} returned a document without its metadata")
        score = document.metadata.get(_SCORE)
        return place, -float(rank) if score is None else float(score)


class _Counter(BaseCallbackHandler):
    """Counts the calls of chat models below a compressor."""

    def __init__(self) -> None:
        self.usage = Usage()
        self._lock = Lock()

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        """Count a call, whatever becomes of it."""
        with self._lock:
            self.usage += Usage(calls=1)

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Count the tokens of a call that brought a reply."""
        for one in (one for row in response.generations for one in row):
            counted = _usage_of(one)
            if counted:
                with self._lock:
                    self.usage += Usage(0, counted["input_tokens"], counted["output_tokens"])


def _usage_of(generation: object) -> Mapping[str, int] | None:
    message = generation.message if isinstance(generation, ChatGeneration) else None
    return message.usage_metadata if isinstance(message, AIMessage) else None  # type: ignore[return-value]  # a TypedDict


def cohere(model: str = "rerank-v3.5") -> Compressor:
    """Return Cohere's reranker; its key comes from ``COHERE_API_KEY``."""
    _check("langchain_cohere", install="langchain-cohere")
    if not os.environ.get("COHERE_API_KEY"):
        raise UnavailableError("no API key: set the environment variable COHERE_API_KEY")
    kind = _import("langchain_cohere").CohereRerank
    made = _call(f"Cohere {model}", lambda: kind(model=model, top_n=None))
    about = {
        "kind": "langchain cohere",
        "model": model,
        **package_versions("langchain-cohere", "cohere"),
    }
    return Compressor(made, name=f"Cohere {model}", fingerprint=about)


def langchain_listwise(chat: Chat) -> Compressor:
    """Return LangChain's `LLMListwiseRerank`, as it comes, but that it keeps all passages."""
    _check("langchain_classic", install="langchain-classic")
    kind = _import("langchain_classic.retrievers.document_compressors").LLMListwiseRerank
    made = _call("LLMListwiseRerank", lambda: kind.from_llm(chat.langchain, top_n=sys.maxsize))
    about = chat.fingerprint and {
        "kind": "langchain listwise",
        "model": chat.fingerprint,
        **package_versions("langchain-classic"),
    }
    name = f"LLMListwiseRerank {chat.name}"
    return Compressor(made, name=name, fingerprint=about, at_once=MAX_CONCURRENCY, asks_model=True)
