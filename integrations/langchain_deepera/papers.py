"""Papers in LangChain: of a base, as a retriever and as tools of an agent; and of live services."""

import json
import logging
from collections.abc import Sequence
from typing import Any, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import ConfigDict, Field, model_validator

from deepera_graph import JudgementCache, Paper, PaperBase, Scope, SettingsError, open_sources
from deepera_graph.errors import StoreError
from deepera_graph.papers.calls import answer_call, describe_paper_calls
from deepera_graph.papers.results import Hit, Hits
from deepera_graph.papers.sources import Literature, LiteratureAnswer, PaperSource

_logger = logging.getLogger(__name__)


class PaperRetriever(BaseRetriever):
    """Papers of a base as documents: title and abstract as text, all else as metadata.

    ``PaperRetriever(base=PaperBase.open("nlp.papers"), k=10).invoke("query autocompletion")``
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    base: PaperBase
    k: int = 10
    mode: str | None = None
    scope: Scope | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **more: Any
    ) -> list[Document]:
        return _to_documents(self.base.search(query, **self._settings(more)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **more: Any
    ) -> list[Document]:
        return _to_documents(await self.base.asearch(query, **self._settings(more)))

    def _settings(self, more: dict[str, Any]) -> Any:
        return {"k": self.k, "mode": self.mode, "scope": self.scope, **more}


def _to_documents(hits: Hits) -> list[Document]:
    return [_to_document(one) for one in hits]


def _to_document(hit: Hit) -> Document:
    plain = hit.paper.to_dict()
    text = f"{plain['title']}\n{plain.pop('abstract')}".strip()
    found = {"retrieval_rank": hit.rank, "retrieval_score": hit.score, "retrieval_by": {**hit.by}}
    return Document(id=hit.paper.id, page_content=text, metadata={**plain, **found})


def paper_tools(base: PaperBase, *, scope: Scope | None = None) -> list[BaseTool]:
    """Return five tools: search_papers, match_title, get_paper, references and citations.

    The agent reads JSON, the same text as over HTTP; the artifact is the list of papers. An error
    is a message of status ``error`` that says what is wrong.

    Args:
        base: What is searched.
        scope: Limits that hold in every call and that the agent cannot lift: it may only add years
            and venues within them. If None, the agent may give all limits.

    Raises:
        SettingsError: It is no `PaperBase`.
    """
    if not isinstance(base, PaperBase):
        raise SettingsError(f"the tools need a PaperBase, got {base!r:.80}")
    return [_make_tool(base, scope, one) for one in describe_paper_calls()]


def _make_tool(base: PaperBase, scope: Scope | None, told: Any) -> BaseTool:
    def run(**given: Any) -> tuple[str, list[Paper]]:
        plain = {one: value for one, value in given.items() if value is not None}
        answer = answer_call(base, told.call, plain if scope is None else _narrow(plain, scope))
        if answer.text.startswith('{"error"'):
            raise ToolException(answer.text)
        return answer.text, _read_papers(json.loads(answer.text))

    return StructuredTool.from_function(
        run,
        name=told.tool,
        description=told.about,
        args_schema=told.arguments,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _narrow(given: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """Return a call within a scope: of two limits the narrower one holds."""
    fixed = scope.to_dict()
    both = {**given, **fixed}
    for name, narrower in (("year_from", max), ("year_to", min)):
        if isinstance(given.get(name), int) and name in fixed:
            both[name] = narrower(given[name], fixed[name])
    for name in ("not_venues", "hide"):
        if isinstance(given.get(name), list) and name in fixed:
            both[name] = [*fixed[name], *given[name]]
    if isinstance(given.get("venues"), list) and "venues" in fixed:
        allowed = {one.casefold() for one in fixed["venues"]}
        shared = [one for one in given["venues"] if str(one).casefold() in allowed]
        both["venues"] = shared or fixed["venues"]
    return both


def _read_papers(plain: dict[str, Any]) -> list[Paper]:
    found = [plain["paper"]] if plain.get("paper") else plain.get("papers", [])
    found += [one["paper"] for one in plain.get("hits", ())]
    return [Paper.from_dict(one) for one in found]


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
        return _read_answer(self.find(query, k=k))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return _read_answer(await self.afind(query, k=k))


def _read_answer(found: LiteratureAnswer) -> list[Document]:
    if found.has_failed:
        raise StoreError("; ".join(map(str, found.answers)))
    for problem in found.problems:
        _logger.warning("%s", problem)
    return found.to_documents()
