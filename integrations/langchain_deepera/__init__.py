"""DeepEra in LangChain: compressor, retriever, cross-encoder, embeddings, tools for agents."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepera_graph import EvidenceEmbeddings
    from langchain_deepera.compressor import DeepEraCompressor
    from langchain_deepera.evidence import create_check_tool, create_table_tool
    from langchain_deepera.papers import LiteratureRetriever, PaperRetriever, paper_tools
    from langchain_deepera.retriever import DeepEraRetriever
    from langchain_deepera.scorers import EvidenceCrossEncoder, ScorerCompressor
    from langchain_deepera.tool import create_evidence_tool, create_multihop_tool

_HOME = {
    "DeepEraCompressor": "compressor",
    "DeepEraRetriever": "retriever",
    "EvidenceCrossEncoder": "scorers",
    "LiteratureRetriever": "papers",
    "PaperRetriever": "papers",
    "ScorerCompressor": "scorers",
    "create_check_tool": "evidence",
    "create_evidence_tool": "tool",
    "create_multihop_tool": "tool",
    "create_table_tool": "evidence",
    "paper_tools": "papers",
}

__all__ = [
    "DeepEraCompressor",
    "DeepEraRetriever",
    "EvidenceCrossEncoder",
    "EvidenceEmbeddings",
    "LiteratureRetriever",
    "PaperRetriever",
    "ScorerCompressor",
    "create_check_tool",
    "create_evidence_tool",
    "create_multihop_tool",
    "create_table_tool",
    "paper_tools",
]


def __getattr__(name: str) -> Any:  # langgraph takes over a second to import
    if name == "EvidenceEmbeddings":
        return getattr(import_module("deepera_graph"), name)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
