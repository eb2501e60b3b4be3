"""The world's literature in LangChain: services that are searched live, as a retriever."""

import logging
from collections.abc import Sequence
from typing import Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, model_validator

from deepera_graph import JudgementCache, Scope, open_sources
from deepera_graph.errors import StoreError
from deepera_graph.papers.sources import Literature, LiteratureAnswer, PaperSource

_logger = logging.getLogger(__name__)


class LiteratureRetriever(BaseRetriever):
    """Abstracts of PubMed, Europe PMC, OpenAlex, arXiv and Semantic Scholar as documents.

    ``LiteratureRetriever(sources="pubmed,openalex", k=20).invoke("Does tea lower glucose?")``

    The services are asked at once, their rankings fused, and a paper that several give comes once.
    Metadata have what it is cited by, and `sources`, who gave it. One that fails costs the others
    nothing; a warning in the log says so, and `find` which did. `DeepEraRetriever(source=...)`
    keeps what is evidence.

    Attributes:
        sources: Names with commas between them, ``all``, or sources of one's own.
        k: Most papers, >= 1; overridden by ``invoke(..., k=)``.
        scope: Years and other limits.
        seconds: Longest time for a search, with all waits; 20 if None.
        contact: Address of mail that services may write to; that in ``DEEPERA_CONTACT`` if None.
        cache: Keeps answers for a week; of `open_cache`.

    Raises:
        ValidationError: There is no such setting or service, or a number is out of range.
        StoreError: No service gave an answer.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    sources: str | Sequence[str | PaperSource] = "all"
    k: int = Field(10, ge=1)
    scope: Scope | None = None
    seconds: float | None = None
    contact: str | None = None
    cache: JudgementCache | None = Field(None, exclude=True)

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._open()
        return self

    def _open(self) -> Literature:
        return open_sources(
            self.sources, seconds=self.seconds, contact=self.contact, cache=self.cache
        )

    def find(self, query: str, *, k: int | None = None) -> LiteratureAnswer:
        """Search, and return how it went with each service, too."""
        return self._open().search(query, self.k if k is None else k, self.scope)

    async def afind(self, query: str, *, k: int | None = None) -> LiteratureAnswer:
        """Do what `find` does, in the running loop."""
        return await self._open().asearch(query, self.k if k is None else k, self.scope)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return _to_documents(self.find(query, k=k))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return _to_documents(await self.afind(query, k=k))


def _to_documents(found: LiteratureAnswer) -> list[Document]:
    if found.has_failed:
        raise StoreError("; ".join(map(str, found.answers)))
    for problem in found.problems:
        _logger.warning("%s", problem)
    return found.to_documents()
