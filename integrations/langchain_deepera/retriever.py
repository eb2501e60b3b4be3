"""A LangChain retriever that fetches candidates and keeps those that give evidence."""

from collections.abc import Mapping
from typing import Any, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict

from deepera_graph import EvidenceReranker, RerankResult, SettingsError, llm_backend
from langchain_deepera.call import arerank, rerank
from langchain_deepera.candidates import afetch, check_source, fetch
from langchain_deepera.documents import kept_documents


class DeepEraRetriever(BaseRetriever):
    """Fetches candidates from a source and returns those that give direct evidence, best first.

    ``DeepEraRetriever.local(vectorstore, k=5).invoke("Does tea lower fasting glucose?")``

    The documents are those of `DeepEraCompressor`; score and rank of the first stage are under
    their `deepera` key as `retrieval_score` and `retrieval_rank`.

    Attributes:
        source: A LangChain retriever or vector store, or a passage store of `deepera_graph`.
        reranker: Who judges, and with which settings.
        n_candidates: Most documents fetched and judged, >= 1. A retriever that fetches fewer, by
            a `k` of its own, is not asked for more.
        k: Most documents returned, >= 1; overrides the reranker's `top_n`, and is overridden by
            ``invoke(..., k=)``. None leaves it to `top_n`.

    Raises:
        SettingsError: A number is out of range, or the source cannot be searched.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    source: Any
    reranker: EvidenceReranker
    n_candidates: int = 30
    k: int | None = None

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        check_source(self.source)
        _check_at_least_one("n_candidates", self.n_candidates)
        if self.k is not None:
            _check_at_least_one("k", self.k)

    @classmethod
    def from_llm(
        cls,
        source: Any,
        model: BaseChatModel | str,
        *,
        base_url: str | None = None,
        api_key_env: str | None = None,
        n_candidates: int = 30,
        k: int | None = None,
        **settings: Any,
    ) -> Self:
        """Judge with a chat model; the arguments are those of `DeepEraCompressor.from_llm`.

        Raises:
            SettingsError: A setting is out of range, or the model cannot be made.
        """
        backend = llm_backend(model, base_url=base_url, api_key_env=api_key_env)
        reranker = EvidenceReranker(backend, **settings)
        return cls(source=source, reranker=reranker, n_candidates=n_candidates, k=k)

    @classmethod
    def local(
        cls, source: Any, *, n_candidates: int = 30, k: int | None = None, **settings: Any
    ) -> Self:
        """Judge by rules on this machine: no model, no key.

        Raises:
            SettingsError: A setting is out of range.
        """
        reranker = EvidenceReranker("local", **settings)
        return cls(source=source, reranker=reranker, n_candidates=n_candidates, k=k)

    def find(
        self, question: str, *, k: int | None = None, config: RunnableConfig | None = None
    ) -> RerankResult:
        """Fetch and judge, and return everything found out, not only the kept documents.

        Raises:
            InputError: The question is blank.
            SettingsError: *k* is out of range.
        """
        reranker = self._reranker(k)
        candidates = fetch(self.source, question, self.n_candidates, config)
        return rerank(reranker, question, candidates, config)

    async def afind(
        self, question: str, *, k: int | None = None, config: RunnableConfig | None = None
    ) -> RerankResult:
        """Do what `find` does, in the running loop."""
        reranker = self._reranker(k)
        candidates = await afetch(self.source, question, self.n_candidates, config)
        return await arerank(reranker, question, candidates, config)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `from_dict` reads; it holds neither the source nor a secret.

        Raises:
            SettingsError: The backend was made from live objects and cannot be written down.
        """
        return {
            "reranker": self.reranker.to_dict(),
            "n_candidates": self.n_candidates,
            "k": self.k,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], source: Any) -> Self:
        """Build what `to_dict` wrote down on a source; clients are made anew.

        Raises:
            SettingsError: A setting or the backend cannot be read.
        """
        reranker = EvidenceReranker.from_dict(plain["reranker"])
        return cls(
            source=source, reranker=reranker, n_candidates=plain["n_candidates"], k=plain["k"]
        )

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return kept_documents(self.find(query, k=k, config={"callbacks": run_manager.get_child()}))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return kept_documents(
            await self.afind(query, k=k, config={"callbacks": run_manager.get_child()})
        )

    def _reranker(self, k: int | None) -> EvidenceReranker:
        most = self.k if k is None else k
        if most is None:
            return self.reranker
        _check_at_least_one("k", most)
        return self.reranker.with_settings(top_n=most)


def _check_at_least_one(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"{name} must be a whole number >= 1, got {value!r}")
