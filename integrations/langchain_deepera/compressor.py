"""A LangChain document compressor that keeps the documents that give evidence."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Never, Self, Unpack

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from deepera_graph import Backend, EvidenceReranker, InputError, SettingsError
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

_QUESTION_KEYS = ("question", "query")


class DeepEraCompressor(RerankerFields, BaseDocumentCompressor):
    """Keeps the documents that give direct evidence for a query, best first.

    ``DeepEraCompressor(threshold=0.7).compress_documents(documents, query)``

    What comes back are new documents with their ids and metadata, `relevance_score` in [0, 1] and
    one `deepera` key with the rest: rank, reason, quote, the passage's own text and more.

    Who judges, and the settings, are fields: `backend` or `reranker`, `preset`, and those of
    `deepera_graph.Settings`.

    Raises:
        SettingsError: A setting is out of range, or the backend cannot be built.
    """

    _example: ClassVar[str] = (
        "e.g. DeepEraCompressor(threshold=0.5); what is searched goes to DeepEraRetriever(source=)"
    )

    @classmethod
    def from_llm(
        cls,
        model: BaseChatModel | str,
        *,
        preset: str | None = None,
        model_options: Mapping[str, Any] | None = None,
        **options: Unpack[LlmRerankerKwargs],
    ) -> Self:
        """Judge with a chat model.

        Args:
            model: A LangChain chat model, or its name, ``provider:model``.
            preset: ``"fast"``, ``"careful"`` or ``"cheap"``; see `deepera_graph.preset`.
            model_options: Passed to a model given by name, e.g. ``{"temperature": 0.2}``.
            options: Those of `deepera_graph.llm_backend`, e.g. `mode`, `base_url`, `api_key_env`,
                `retry`, `limits`, `domain`, `group_size`; and of `deepera_graph.Settings`.

        Raises:
            SettingsError: An option is unknown or out of range, or the model cannot be made.
        """
        cls._check_names(options, also=LLM_OPTIONS)
        reranker = build_llm_reranker(
            model, preset_name=preset, model_options=model_options, options=options
        )
        return cls(reranker=reranker)

    @classmethod
    def from_backend(
        cls,
        backend: Backend | str | Mapping[str, Any] = "local",
        *,
        preset: str | None = None,
        **settings: Unpack[SettingsKwargs],
    ) -> Self:
        """Judge with any backend, by name or made before, e.g. ``"encoder:MODEL"``.

        Raises:
            SettingsError: A setting is unknown or out of range, or the backend cannot be built.
        """
        cls._check_names(settings)
        return cls(reranker=EvidenceReranker(backend, preset=preset, **settings))

    @classmethod
    def local(
        cls, *misplaced: Never, preset: str | None = None, **settings: Unpack[SettingsKwargs]
    ) -> Self:
        """Judge with the trained local judge: on this machine, no key, nothing to download.

        Raises:
            SettingsError: A setting is unknown or out of range, or something is not given by name:
                what is to be searched goes to `DeepEraRetriever.local`.
        """
        if misplaced:
            raise SettingsError(
                "DeepEraCompressor.local takes settings by name; what is searched goes to "
                f"DeepEraRetriever.local, got {misplaced[0]!r:.80}"
            )
        return cls.from_backend("local", preset=preset, **settings)

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> list[Document]:
        """Return the documents that give evidence for a query.

        Args:
            documents: In first-stage order; none of them is changed.
            query: The question; not blank unless there are no documents.
            callbacks: Runs nest under the caller's.

        Raises:
            InputError: The query is blank.
            BackendError: No document could be judged.
        """
        return self._compress(documents, query, {"callbacks": callbacks})

    async def acompress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> list[Document]:
        """Do what `compress_documents` does, in the running loop."""
        return await self._acompress(documents, query, {"callbacks": callbacks})

    def as_runnable(self) -> Runnable[dict[str, Any], list[Document]]:
        """Return the same as a step of a chain: ``{"question", "documents"}`` in, documents out.

        The question may also be called ``query``.
        """

        def run(given: dict[str, Any], config: RunnableConfig) -> list[Document]:
            return self._compress(*_read_input(given), config)

        async def arun(given: dict[str, Any], config: RunnableConfig) -> list[Document]:
            return await self._acompress(*_read_input(given), config)

        return RunnableLambda(run, afunc=arun, name=type(self).__name__)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `from_dict` reads; it holds no secret.

        Raises:
            SettingsError: The backend was made from live objects and cannot be written down.
        """
        return {"reranker": self._current().to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Build what `to_dict` wrote down; clients are made anew.

        Raises:
            SettingsError: A setting or the backend cannot be read.
        """
        return cls(reranker=EvidenceReranker.from_dict(plain["reranker"]))

    def _compress(
        self, documents: Sequence[Document], query: str, config: RunnableConfig
    ) -> list[Document]:
        if not documents:
            return []
        return kept_documents(rerank(self._current(), query, documents, config))

    async def _acompress(
        self, documents: Sequence[Document], query: str, config: RunnableConfig
    ) -> list[Document]:
        if not documents:
            return []
        return kept_documents(await arerank(self._current(), query, documents, config))


def _read_input(given: Mapping[str, Any]) -> tuple[Sequence[Document], str]:
    question = next((given[key] for key in _QUESTION_KEYS if key in given), None)
    if question is None or "documents" not in given:
        raise InputError(f"give a question and documents, got {sorted(given)}")
    return given["documents"], question
