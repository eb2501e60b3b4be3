"""A tool with which an agent finds evidence: the search, and the text that the agent reads."""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.documents import Document
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field

from deepera_graph import (
    BackendError,
    DeepEraError,
    EvidenceReranker,
    MultiHopAgent,
    RerankResult,
    SettingsError,
)
from deepera_graph.export import describe_evidence
from deepera_graph.multihop.agent.state import MultiHopResult
from deepera_graph.retrieval.fusion import named_errors
from langchain_deepera.base import check_judged
from langchain_deepera.compressor import DeepEraCompressor
from langchain_deepera.retriever import DeepEraRetriever

_DESCRIPTION = (
    "Find passages that give direct evidence for a scientific question. Returns short numbered "
    "pieces of evidence with their sources, or says that there is none."
)
_OF_HOPS = (
    "Answer a question that takes several steps, such as one about the birthplace of the author of "
    "a book. Returns the sub-questions, their answers with the sentences that prove them, and the "
    "answer, or says that the evidence does not suffice."
)
_SOURCE_FAILED = "the source failed"
_JUDGES = {DeepEraCompressor: "compressor.reranker", EvidenceReranker: "reranker"}


class EvidenceQuestion(BaseModel):
    """What the tool is asked."""

    question: str = Field(
        description="One complete scientific question that names its entities and the relation."
    )


def create_evidence_tool(
    retriever: DeepEraRetriever | Any,
    *,
    name: str = "find_evidence",
    description: str = _DESCRIPTION,
) -> BaseTool:
    """Return a tool: numbered evidence for the agent, documents for the program.

    The artifact is the list of kept documents, empty when none was kept; a checkpointer gives them
    back as dicts, like every artifact. An error of ours, e.g. an unreachable backend, or of what is
    searched becomes a message of status ``error`` that the agent reads; to have it raised as
    `ToolException`, set `handle_tool_error` of the tool to False.

    Args:
        retriever: Where to look, and who judges; or a vector store, a passage store or another
            retriever, on which the local judge then judges.
        name: What the agent calls it.
        description: Tells the agent when to call it.

    Raises:
        SettingsError: There is nothing to search.
    """
    find, afind = list_searches(retriever)
    return make_tool(find, afind, _with_artifact, EvidenceQuestion, (name, description))


class MultiHopQuestion(BaseModel):
    """What the tool for several hops is asked."""

    question: str = Field(description="One complete question, with full names.")


def create_multihop_tool(
    agent: MultiHopAgent, *, name: str = "answer_in_steps", description: str = _OF_HOPS
) -> BaseTool:
    """Return a tool that answers questions of several hops: the path as text, its passages beside.

    The artifact is the list of passages that steps or the answer cite, each with the numbers of its
    steps under ``deepera_path``. That the evidence does not suffice is an answer; an error of ours
    becomes a message of status ``error``, as with `create_evidence_tool`.

    Args:
        agent: Who answers, and where it looks.
        name: What the calling agent names it.
        description: Tells the calling agent when to call it.

    Raises:
        SettingsError: It is no `MultiHopAgent`.
    """
    if not isinstance(agent, MultiHopAgent):
        raise SettingsError(f"the tool needs a MultiHopAgent, got {agent!r:.80}")

    return make_tool(agent.solve, agent.asolve, _with_path, MultiHopQuestion, (name, description))


def make_tool(
    work: Callable[[str], Any],
    awork: Callable[[str], Awaitable[Any]],
    show: Callable[[Any], tuple[str, Any]],
    form: type[BaseModel],
    named: tuple[str, str],
    *,
    failed: str = "The search for evidence",
    means: str = "This does not mean that there is no evidence",
) -> BaseTool:
    """Return a tool of one argument; *show* gives the text and the artifact of what it makes.

    An error of ours is a message that says what *failed*, and what that *means*.
    """
    [argument] = form.model_fields

    def refuse(error: DeepEraError) -> ToolException:
        return ToolException(f"{failed} failed: {error}. {means}.")

    def call(
        *said: str, **given: str
    ) -> tuple[str, Any]:  # LangChain hands a bare text on as it is
        try:
            return show(work(said[0] if said else given[argument]))
        except DeepEraError as error:
            raise refuse(error) from error

    async def acall(*said: str, **given: str) -> tuple[str, Any]:
        try:
            return show(await awork(said[0] if said else given[argument]))
        except DeepEraError as error:
            raise refuse(error) from error

    return StructuredTool.from_function(
        call,
        acall,
        name=named[0],
        description=named[1],
        args_schema=form,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _with_path(result: MultiHopResult) -> tuple[str, list[Document]]:
    if result.outcome == "failed":
        raise BackendError(result.answer["cause"])
    return result.to_text(), result.to_documents()


def to_retriever(given: Any) -> DeepEraRetriever:
    """Return a retriever on what can be searched; raise `SettingsError` for what cannot."""
    if isinstance(given, DeepEraRetriever):
        return given
    for kind, reranker in _JUDGES.items():
        if isinstance(given, kind):
            raise SettingsError(
                f"{kind.__name__} has nothing to search; give the tool a store, a retriever, or "
                f"DeepEraRetriever(source=store, reranker={reranker})"
            )
    return DeepEraRetriever(source=given)


def list_searches(
    given: Any,
) -> tuple[Callable[[str], RerankResult], Callable[[str], Awaitable[RerankResult]]]:
    """Return how to search, sync and async; what the source raises becomes an error of ours."""
    searched = to_retriever(given)

    def find(question: str) -> RerankResult:
        with named_errors(_SOURCE_FAILED):
            return searched.find(question)

    async def afind(question: str) -> RerankResult:
        with named_errors(_SOURCE_FAILED):
            return await searched.afind(question)

    return find, afind


def _with_artifact(result: RerankResult) -> tuple[str, list[Document]]:
    check_judged(result)
    return describe_evidence(result), result.to_documents()
