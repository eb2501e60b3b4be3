"""A LangChain retriever that fetches candidates and keeps those that give evidence."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self, Unpack

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.config import set_config_context
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from pydantic import Field

from deepera_graph import Backend, EvidenceReranker, InputError, RerankResult, SettingsError
from deepera_graph.settings import SettingsKwargs
from langchain_deepera.base import (
    LLM_OPTIONS,
    LlmRerankerKwargs,
    RerankerFields,
    arerank,
    build_llm_reranker,
    kept_documents,
    rerank,
)

_OWN = ("source", "n_candidates", "k")


class DeepEraRetriever(RerankerFields, BaseRetriever):
    """Fetches candidates from a source and returns those that give direct evidence, best first.

    ``DeepEraRetriever.local(vectorstore, top_n=5).invoke("Does tea lower fasting glucose?")``

    The documents are those of `DeepEraCompressor`; score and rank of the first stage are under
    their `deepera` key as `retrieval_score` and `retrieval_rank`.

    Attributes:
        source: A LangChain retriever or vector store, or a passage store of `deepera_graph`.
        n_candidates: Most documents fetched and judged, >= 1. A retriever that fetches fewer, by
            a `k` of its own, is not asked for more.
        k: Most documents returned, >= 1, as LangChain's retrievers call it: `top_n` by another
            name, which it overrides; ``invoke(..., k=)`` overrides both. None leaves it to `top_n`.
            It is not the `k` of ``deepera ask``, of the servers and of `evidence_subgraph`, which
            is how many candidates are searched for: here `n_candidates`.

    The local judge, if it is only named, keeps what it needs of a passage beside a passage store
    in a folder, so that no passage is encoded twice; ``backend=local_backend()`` keeps nothing.

    Who judges, and the settings, are fields as well: `backend` or `reranker`, `preset`, and those
    of `deepera_graph.Settings`, e.g. ``DeepEraRetriever(source=store, threshold=0.7)``.

    Raises:
        SettingsError: A number is out of range, the source cannot be searched, or the backend
            cannot be built.
    """

    source: Any = Field(exclude=True)
    n_candidates: int = 30
    k: int | None = None

    _example: ClassVar[str] = "e.g. DeepEraRetriever(source=store)"

    def _build(self) -> None:
        if self.reranker is None:
            self.__dict__["backend"] = _keep_beside(self.source, self.backend)
        super()._build()
        for name in _OWN:
            _check_own(name, getattr(self, name))

    def _check_change(self, name: str, value: Any) -> None:
        super()._check_change(name, value)
        _check_own(name, value)

    @classmethod
    def from_llm(
        cls,
        source: Any,
        model: BaseChatModel | str,
        *,
        n_candidates: int = 30,
        k: int | None = None,
        preset: str | None = None,
        model_options: Mapping[str, Any] | None = None,
        **options: Unpack[LlmRerankerKwargs],
    ) -> Self:
        """Judge with a chat model; the arguments are those of `DeepEraCompressor.from_llm`.

        Raises:
            SettingsError: A setting is unknown or out of range, or the model cannot be made.
        """
        cls._check_names(options, also=LLM_OPTIONS)
        reranker = build_llm_reranker(
            model, preset_name=preset, model_options=model_options, options=options
        )
        return cls(source=source, reranker=reranker, n_candidates=n_candidates, k=k)

    @classmethod
    def from_backend(
        cls,
        source: Any,
        backend: Backend | str | Mapping[str, Any] = "local",
        *,
        n_candidates: int = 30,
        k: int | None = None,
        preset: str | None = None,
        **settings: Unpack[SettingsKwargs],
    ) -> Self:
        """Judge with any backend, by name or made before, e.g. ``"encoder:MODEL"``.

        Raises:
            SettingsError: A setting is unknown or out of range, or the backend cannot be built.
        """
        cls._check_names(settings)
        judge = _keep_beside(source, backend)
        reranker = EvidenceReranker(judge, preset=preset, **settings)
        return cls(source=source, reranker=reranker, n_candidates=n_candidates, k=k)

    @classmethod
    def local(
        cls,
        source: Any,
        *,
        n_candidates: int = 30,
        k: int | None = None,
        preset: str | None = None,
        **settings: Unpack[SettingsKwargs],
    ) -> Self:
        """Judge with the trained local judge: on this machine, no key, nothing to download.

        Raises:
            SettingsError: A setting is unknown or out of range.
        """
        return cls.from_backend(
            source, "local", n_candidates=n_candidates, k=k, preset=preset, **settings
        )

    def find(
        self, question: str, *, k: int | None = None, config: RunnableConfig | None = None
    ) -> RerankResult:
        """Fetch and judge, and return everything found out, not only the kept documents.

        Raises:
            InputError: The question is no text, or blank.
            SettingsError: *k* is out of range.
        """
        _check_question(question)
        reranker = self._reranker(k)
        found = _candidates_of(self.source, self.n_candidates).invoke(question, config)
        return rerank(reranker, question, _take_best(found, self.n_candidates), config)

    async def afind(
        self, question: str, *, k: int | None = None, config: RunnableConfig | None = None
    ) -> RerankResult:
        """Do what `find` does, in the running loop."""
        _check_question(question)
        reranker = self._reranker(k)
        search = _candidates_of(self.source, self.n_candidates)
        found = await search.ainvoke(question, config)
        return await arerank(reranker, question, _take_best(found, self.n_candidates), config)

    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Fetch and judge, and return the kept documents; the limits of the config hold."""
        with set_config_context(_limits_of(config)) as context:
            return context.run(super().invoke, input, config, **kwargs)

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Do what `invoke` does, in the running loop."""
        with set_config_context(_limits_of(config)) as context:
            work = super().ainvoke(input, config, **kwargs)
            return await asyncio.create_task(work, context=context)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `from_dict` reads; it holds neither the source nor a secret.

        Raises:
            SettingsError: The backend was made from live objects and cannot be written down.
        """
        plain = self._current().to_dict()
        if plain["backend"] == _keep_beside(self.source, _LOCAL):  # its folder is of this machine
            plain["backend"] = _LOCAL
        return {
            "reranker": plain,
            "n_candidates": self.n_candidates,
            "k": self.k,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], source: Any) -> Self:
        """Build what `to_dict` wrote down on a source; clients are made anew.

        Raises:
            SettingsError: A setting or the backend cannot be read.
        """
        backend = _keep_beside(source, plain["reranker"]["backend"])
        reranker = EvidenceReranker.from_dict({**plain["reranker"], "backend": backend})
        return cls(
            source=source, reranker=reranker, n_candidates=plain["n_candidates"], k=plain["k"]
        )

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        **unknown: Any,
    ) -> list[Document]:
        self._refuse(unknown)
        return kept_documents(self.find(query, k=k, config={"callbacks": run_manager.get_child()}))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        **unknown: Any,
    ) -> list[Document]:
        self._refuse(unknown)
        return kept_documents(
            await self.afind(query, k=k, config={"callbacks": run_manager.get_child()})
        )

    def _refuse(self, unknown: Iterable[str]) -> None:
        """Raise `SettingsError` if a call was given more than `k`."""
        for name in unknown:
            call = f"{type(self).__name__}.invoke takes no {name!r}"
            if name in type(self).model_fields:
                raise SettingsError(f"{call}; it is a field: retriever.{name} = ...")
            try:
                self._check_names([name])
            except SettingsError as error:
                raise SettingsError(f"{call}: {error}") from error

    def _reranker(self, k: int | None) -> EvidenceReranker:
        most = self.k if k is None else k
        if most is None:
            return self._current()
        _check_at_least_one("k", most)
        return self._current(top_n=most)


def _limits_of(config: RunnableConfig | None) -> RunnableConfig:
    """Return what is around a call: LangChain hands a retriever the callbacks of its config alone.

    The call's own name and id are not those of the runs within.
    """
    around = ensure_config(config)
    around.pop("run_name", None)
    around.pop("run_id", None)
    return around


def _check_question(question: object) -> None:
    """Raise `InputError` for what is no text, which each store would meet in its own way."""
    if not isinstance(question, str):
        raise InputError(f"question must be a text, got {question!r:.80}")


def _check_own(name: str, value: object) -> None:
    """Raise `SettingsError` if a field of the retriever's own cannot have a value."""
    if name == "source":
        _check_source(value)
    elif name == "n_candidates" or (name == "k" and value is not None):
        _check_at_least_one(name, value)


_LOCAL = {"kind": "local", "judge": "trained"}


def _keep_beside(source: Any, backend: Any) -> Any:
    """Return a judge that keeps vectors in the folder of a store, if it is just the local one."""
    folder = getattr(source, "folder", None)
    if folder is None or backend not in ("local", _LOCAL):
        return backend
    return {**_LOCAL, "keep_in": str(folder)}


def _check_at_least_one(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"{name} must be a whole number >= 1, got {value!r}")


def _check_source(source: object) -> None:
    """Raise `SettingsError` unless *source* is a retriever, a vector store or a passage store."""
    if not isinstance(source, VectorStore | Runnable) and not _is_store(source):
        raise SettingsError(
            f"source must be a retriever, a vector store or a passage store, got {source!r:.80}"
        )


class _StoreSearch(BaseRetriever):
    """Searches a store as a retriever, so that traces show what was fetched."""

    store: Any
    n: int

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        if not isinstance(self.store, VectorStore):
            found: list[Document] = self.store.search(query, self.n)
            return found
        try:
            return _with_ranks(self.store.similarity_search_with_score(query, k=self.n))
        except NotImplementedError:  # not every store gives scores
            return self.store.similarity_search(query, k=self.n)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        if not isinstance(self.store, VectorStore):
            found: list[Document] = await self.store.asearch(query, self.n)
            return found
        try:
            return _with_ranks(await self.store.asimilarity_search_with_score(query, k=self.n))
        except NotImplementedError:
            return await self.store.asimilarity_search(query, k=self.n)


def _candidates_of(source: Any, n: int) -> Runnable[str, list[Document]]:
    """Return what finds candidates in a source, in its order; one of a store at most *n*.

    Their metadata has `retrieval_rank`, from 1, and `retrieval_score`, on the scale of the source,
    where a store gives them.
    """
    if not isinstance(source, Runnable):
        return _StoreSearch(store=source, n=n, name=type(source).__name__)
    # A store's own retriever fetches 4 unless told otherwise; others decide for themselves.
    if isinstance(source, VectorStoreRetriever) and "k" not in source.search_kwargs:
        return source.bind(k=n)
    return source


def _take_best(found: Any, n: int) -> Sequence[Document]:
    """Return the first *n* of what a source found; raise `InputError` unless it is a list."""
    if isinstance(found, Sequence) and not isinstance(found, str):
        return found[:n]
    raise InputError(f"a source must return a list of documents, got {found!r:.80}")


def _is_store(source: object) -> bool:
    return all(callable(getattr(source, name, None)) for name in ("search", "asearch"))


def _with_ranks(found: Iterable[tuple[Document, float]]) -> list[Document]:
    return [
        document.model_copy(
            update={
                "metadata": {
                    **document.metadata,
                    "retrieval_rank": rank,
                    "retrieval_score": float(score),
                }
            }
        )
        for rank, (document, score) in enumerate(found, start=1)
    ]
