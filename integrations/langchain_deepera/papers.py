"""A base of papers in LangChain: a retriever, and tools with which an agent searches."""

import json
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import ConfigDict

from deepera_graph import Paper, PaperBase, Scope, SettingsError
from deepera_graph.papers.calls import answer_call, describe_paper_calls
from deepera_graph.papers.results import Hit, Hits


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
