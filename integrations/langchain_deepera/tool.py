"""A tool with which an agent finds evidence."""

from langchain_core.documents import Document
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field

from deepera_graph import DeepEraError, RerankResult
from langchain_deepera.documents import check_judged
from langchain_deepera.report import evidence_text
from langchain_deepera.retriever import DeepEraRetriever

_DESCRIPTION = (
    "Find passages that give direct evidence for a scientific question. Returns short numbered "
    "pieces of evidence with their sources, or says that there is none."
)


class EvidenceQuestion(BaseModel):
    """What the tool is asked."""

    question: str = Field(
        description="One complete scientific question that names its entities and the relation."
    )


def create_evidence_tool(
    retriever: DeepEraRetriever,
    *,
    name: str = "find_evidence",
    description: str = _DESCRIPTION,
) -> BaseTool:
    """Return a tool: numbered evidence for the agent, documents for the program.

    The artifact is the list of kept documents, empty when none was kept; a checkpointer gives them
    back as dicts, like every artifact. An error of ours, e.g. an
    unreachable backend, becomes a message of status ``error`` that the agent reads; to have it
    raised as `ToolException`, set `handle_tool_error` of the tool to False.

    Args:
        retriever: Where to look, and who judges.
        name: What the agent calls it.
        description: Tells the agent when to call it.
    """

    def find(question: str) -> tuple[str, list[Document]]:
        try:
            return _reported(retriever.find(question))
        except DeepEraError as error:
            raise _failed(error) from error

    async def afind(question: str) -> tuple[str, list[Document]]:
        try:
            return _reported(await retriever.afind(question))
        except DeepEraError as error:
            raise _failed(error) from error

    return StructuredTool.from_function(
        find,
        afind,
        name=name,
        description=description,
        args_schema=EvidenceQuestion,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _reported(result: RerankResult) -> tuple[str, list[Document]]:
    check_judged(result)
    return evidence_text(result), result.to_documents()


def _failed(error: DeepEraError) -> ToolException:
    return ToolException(
        f"The search for evidence failed: {error}. This does not mean that there is no evidence."
    )
