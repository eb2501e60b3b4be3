"""Any LangChain document compressor as a ranker."""

import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from io import StringIO
from threading import Lock
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from deepera_graph.bench.data.instance import RankingError, UnavailableError
from deepera_graph.bench.rankers.base import (
    Job,
    Passage,
    Problems,
    Ranking,
    by_score,
    foreign,
    imported,
    need,
    same_logging,
    texts_of,
)
from deepera_graph.bench.rankers.llm import MAX_CONCURRENCY, Chat
from deepera_graph.errors import DeepEraError, SettingsError
from deepera_graph.judges.cross_encoder.models import brief, versions
from deepera_graph.usage import Usage

_PLACE = "bench_place"
_SCORE = "relevance_score"


class Compressor:
    """Ranks by the order in which a compressor returns documents; what it drops is a miss.

    A question on which it raises keeps its first-stage order, and all its passages are counted as
    failed. Model calls are counted where the compressor passes callbacks on.
    """

    def __init__(
        self,
        compressor: BaseDocumentCompressor,
        *,
        name: str,
        fingerprint: Mapping[str, Any] | None = None,
        at_once: int = 1,
    ) -> None:
        self.name, self.fingerprint = name, fingerprint
        self.problems = Problems()
        self._compressor, self._at_once = compressor, at_once
        self._counter = _Counter()

    @property
    def usage(self) -> Usage:
        """Model calls and tokens so far, as far as they are known."""
        return self._counter.usage

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Return what the compressor returned, with its `relevance_score`, else minus the rank."""
        documents = [_document(passage) for passage in passages]
        try:
            returned = self._compressor.compress_documents(
                documents, question, callbacks=[self._counter]
            )
        except DeepEraError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary to foreign code
            self.problems.note(len(passages), brief(error))
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
            counted = _counted(one)
            if counted:
                with self._lock:
                    self.usage += Usage(0, counted["input_tokens"], counted["output_tokens"])


def _counted(generation: object) -> Mapping[str, int] | None:
    message = generation.message if isinstance(generation, ChatGeneration) else None
    return message.usage_metadata if isinstance(message, AIMessage) else None  # type: ignore[return-value]  # a TypedDict


def _document(passage: Passage) -> Document:
    told = {key: passage[key] for key in ("title", "section") if passage[key]}
    return Document(
        id=passage["id"], page_content=passage["text"], metadata={**told, _PLACE: passage["id"]}
    )


DEFAULT_MODEL = "ms-marco-TinyBERT-L-2-v2"


class FlashRank:
    """Ranks with a model of FlashRank, downloaded by it on first use."""

    def __init__(self, model: str = DEFAULT_MODEL) -> None:
        need("flashrank", install="flashrank")
        self.name = f"FlashRank {model}"
        self._model_name = model
        stack = versions("flashrank", "onnxruntime")
        self.fingerprint: Mapping[str, Any] | None = {"kind": "flashrank", "model": model, **stack}
        self._model: Any = None

    def prepare(self) -> None:
        """Load the weights."""
        if self._model is None:
            self._model = foreign("no weights", self._loaded)

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Return all passages by the model's score, in [0, 1]."""
        if not passages:
            return []
        self.prepare()
        scores = foreign("no scores", lambda: self._scores(question, texts_of(passages)))
        return by_score(passages, scores)

    def _loaded(self) -> Any:
        with same_logging():
            return imported("flashrank").Ranker(model_name=self._model_name, log_level="WARNING")

    def _scores(self, question: str, texts: Sequence[str]) -> list[float]:
        package = imported("flashrank")
        shown = [{"id": place, "text": text} for place, text in enumerate(texts)]
        found = self._model.rerank(package.RerankRequest(query=question, passages=shown))
        by_place = {one["id"]: float(one["score"]) for one in found}
        return [by_place[place] for place in range(len(texts))]


COHERE_MODEL = "rerank-v3.5"


def cohere(model: str = COHERE_MODEL) -> Compressor:
    """Return Cohere's reranker; its key comes from ``COHERE_API_KEY``."""
    need("langchain_cohere", install="langchain-cohere")
    if not os.environ.get("COHERE_API_KEY"):
        raise UnavailableError("no API key: set the environment variable COHERE_API_KEY")
    kind = imported("langchain_cohere").CohereRerank
    made = foreign(f"Cohere {model}", lambda: kind(model=model, top_n=None))
    about = {"kind": "langchain cohere", "model": model, **versions("langchain-cohere", "cohere")}
    return Compressor(made, name=f"Cohere {model}", fingerprint=about)


def langchain_listwise(chat: Chat) -> Compressor:
    """Return LangChain's `LLMListwiseRerank`, as it comes, but that it keeps all passages."""
    need("langchain_classic", install="langchain-classic")
    module = imported("langchain_classic.retrievers.document_compressors")
    made = foreign(
        "LLMListwiseRerank",
        lambda: module.LLMListwiseRerank.from_llm(chat.langchain, top_n=sys.maxsize),
    )
    about = None
    if chat.fingerprint is not None:
        about = {
            "kind": "langchain listwise",
            "model": chat.fingerprint,
            **versions("langchain-classic"),
        }
    name = f"LLMListwiseRerank {chat.name}"
    return Compressor(made, name=name, fingerprint=about, at_once=MAX_CONCURRENCY)


class RerankersModel:
    """Ranks with a model that the `rerankers` package knows."""

    def __init__(self, path: str) -> None:
        self._type, slash, self._model_name = path.partition("/")
        if not (self._type and slash and self._model_name):
            raise SettingsError(f"rerankers:... must be TYPE/NAME, got {path!r}")
        need("rerankers", install="deepera-graph[rerankers]")
        self.name = f"rerankers {path}"
        stack = versions("rerankers", "transformers", "torch")
        self.fingerprint: Mapping[str, Any] | None = {"kind": "rerankers", "path": path, **stack}
        self._model: Any = None

    def prepare(self) -> None:
        """Load the model."""
        if self._model is None:
            self._model = foreign("no weights", self._loaded)

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Return what the model returns, best first, with its own scores."""
        if not passages:
            return []
        self.prepare()
        found = foreign("no scores", lambda: self._rank(question, texts_of(passages)))
        ranked = [(passages[one.document.doc_id]["id"], one.score) for one in found]
        lowest = -float(len(passages))
        return [(id, lowest if score is None else float(score)) for id, score in ranked]

    def _rank(self, question: str, texts: Sequence[str]) -> Any:
        with redirect_stdout(StringIO()):
            return self._model.rank(
                query=question, docs=list(texts), doc_ids=list(range(len(texts)))
            ).results

    def _loaded(self) -> Any:
        """Load the model; where it cannot, the package prints why and gives None."""
        key = os.environ.get(f"{self._type.upper()}_API_KEY")
        said = StringIO()
        with redirect_stdout(said):
            model = imported("rerankers").Reranker(
                self._model_name,
                model_type=self._type,
                verbose=0,
                **({"api_key": key} if key else {}),
            )
        if model is None:
            raise UnavailableError(" ".join(said.getvalue().split()))
        return model
