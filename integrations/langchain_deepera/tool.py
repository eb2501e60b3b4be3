"""A tool with which an agent finds evidence: the search, and the text that the agent reads."""

from typing import Any

from langchain_core.documents import Document
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field

from deepera_graph import (
    BackendError,
    DeepEraError,
    EvidenceReranker,
    MultiHopAgent,
    MultiHopResult,
    RankedPassage,
    RerankResult,
    SettingsError,
    describe_directions,
    name_direction,
)
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
_JUDGES = {DeepEraCompressor: "compressor.reranker", EvidenceReranker: "reranker"}
_NOTHING = "Say that no evidence was found; do not answer from other knowledge."


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
    back as dicts, like every artifact. An error of ours, e.g. an
    unreachable backend, becomes a message of status ``error`` that the agent reads; to have it
    raised as `ToolException`, set `handle_tool_error` of the tool to False.

    Args:
        retriever: Where to look, and who judges; or a vector store, a passage store or another
            retriever, on which the local judge then judges.
        name: What the agent calls it.
        description: Tells the agent when to call it.

    Raises:
        SettingsError: There is nothing to search.
    """
    searched = _to_retriever(retriever)

    def find(question: str) -> tuple[str, list[Document]]:
        try:
            return _with_artifact(searched.find(question))
        except DeepEraError as error:
            raise _tool_error(error) from error

    async def afind(question: str) -> tuple[str, list[Document]]:
        try:
            return _with_artifact(await searched.afind(question))
        except DeepEraError as error:
            raise _tool_error(error) from error

    return StructuredTool.from_function(
        find,
        afind,
        name=name,
        description=description,
        args_schema=EvidenceQuestion,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


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

    def solve(question: str) -> tuple[str, list[Document]]:
        try:
            return _with_path(agent.solve(question))
        except DeepEraError as error:
            raise _tool_error(error) from error

    async def asolve(question: str) -> tuple[str, list[Document]]:
        try:
            return _with_path(await agent.asolve(question))
        except DeepEraError as error:
            raise _tool_error(error) from error

    return StructuredTool.from_function(
        solve,
        asolve,
        name=name,
        description=description,
        args_schema=MultiHopQuestion,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _with_path(result: MultiHopResult) -> tuple[str, list[Document]]:
    if result.outcome == "failed":
        raise BackendError(result.answer["cause"])
    return result.to_text(), result.to_documents()


def _to_retriever(given: Any) -> DeepEraRetriever:
    if isinstance(given, DeepEraRetriever):
        return given
    for kind, reranker in _JUDGES.items():
        if isinstance(given, kind):
            raise SettingsError(
                f"{kind.__name__} has nothing to search; give the tool a store, a retriever, or "
                f"DeepEraRetriever(source=store, reranker={reranker})"
            )
    return DeepEraRetriever(source=given)


def _with_artifact(result: RerankResult) -> tuple[str, list[Document]]:
    check_judged(result)
    return evidence_text(result), result.to_documents()


def _tool_error(error: DeepEraError) -> ToolException:
    return ToolException(
        f"The search for evidence failed: {error}. This does not mean that there is no evidence."
    )


def evidence_text(result: RerankResult) -> str:
    """Return an outcome line, then one a kept passage: ``[1] (source; score 0.93) summary``.

    Where the judge says what passages say to the question, both lines have it.

    Line breaks inside a passage become spaces, so that no passage can forge a line of its own.
    """
    lines = [_outcome_line(result), *(f"Note: {one}." for one in result.warnings)]
    if result.failed and result.dropped + result.kept:
        lines.append(
            f"{len(result.failed)} of {_passages(len(result.all_passages))} could not be judged "
            f"({_one_line(result.failed[0].reason)}), so evidence may have been missed."
        )
    if result.not_needed:
        lines.append(
            f"Not read, as there was enough evidence: {len(result.not_needed)} of "
            f"{_passages(len(result.all_passages))}."
        )
    kept = enumerate(result.kept, start=1)
    lines += [_evidence_line(result, number, one) for number, one in kept]
    return "\n".join(lines)


def _outcome_line(result: RerankResult) -> str:
    n, least = len(result.all_passages), result.threshold
    cut = f"threshold {f'{least:.2f}' if least == round(least, 2) else f'{least:g}'}"
    if not n:
        return f"The search found no passages for this question. {_NOTHING}"
    if result.kept and result.fallback is not None:
        return f"No passage gives direct evidence ({cut}). The nearest of {n} are weak evidence:"
    if result.kept:
        verb = "gives" if len(result.kept) == 1 else "give"
        said = "; ".join(filter(None, (cut, describe_directions(result.direction_counts))))
        return f"{len(result.kept)} of {_passages(n)} {verb} direct evidence ({said}):"
    best = max((one.score for one in result.dropped if one.score is not None), default=None)
    rejected = "" if best is None else f"; best rejected score {result.show_score(best)}"
    return f"No passage of {n} gives direct evidence ({cut}{rejected}). {_NOTHING}"


def _evidence_line(result: RerankResult, number: int, one: RankedPassage) -> str:
    text = _one_line(one.summary or one.text)
    said = f", {name_direction(one.direction)}" if one.direction else ""
    source, shown = _one_line(str(one.citation)), result.show_score(one.score)
    return f"[{number}] ({source}; score {shown}{said}) {text}"


def _passages(n: int) -> str:
    return "1 passage" if n == 1 else f"{n} passages"


def _one_line(text: str) -> str:
    return " ".join(text.split())
