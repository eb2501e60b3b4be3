"""Any LangChain document compressor as a ranker."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from deepera_graph.bench.errors import RankingError
from deepera_graph.bench.rankers.optional import brief
from deepera_graph.bench.rankers.ranker import Job, Passage, Problems, Ranking
from deepera_graph.errors import DeepEraError
from deepera_graph.usage import Usage

_PLACE = "bench_place"
_SCORE = "relevance_score"


class Compressor:
    """Ranks by the order in which a compressor returns documents; what it drops is a miss.

    A question on which it raises keeps its first-stage order, and all its passages are counted as
    failed. Model calls are counted where the compressor passes callbacks on.

    Args:
        compressor: Keeps the metadata of the documents it returns, as LangChain's do.
        name: What the table calls it.
        fingerprint: Model, version and settings, as plain data; None if not known, then nothing is
            cached.
        at_once: Questions that it ranks at the same time, in threads, >= 1.
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
        """Return what the compressor returned, with its `relevance_score`, else minus the rank.

        Raises:
            RankingError: A returned document has lost its metadata.
        """
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
