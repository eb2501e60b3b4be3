"""LangChain's own standard tests."""

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from deepera_graph import EvidenceReranker
from langchain_deepera import DeepEraRetriever, LiteratureRetriever, create_evidence_tool
from support.literature import Literature
from support.scripted import TEA_SCORES, Script

QUESTION = "Does tea drinking lower fasting glucose?"


def tea_store() -> InMemoryVectorStore:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    store.add_documents([Document(id=text, page_content=f"Tea: {text}.") for text in TEA_SCORES])
    return store


def tea_parameters() -> dict[str, object]:
    return {"source": tea_store(), "reranker": EvidenceReranker(Script(TEA_SCORES).backend())}


class TestRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return DeepEraRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, object]:
        return tea_parameters()

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


class TestLiteratureRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def world(self, monkeypatch):
        with Literature() as running:
            for name, value in {**running.variables, "NO_PROXY": "127.0.0.1"}.items():
                monkeypatch.setenv(name, value)
            yield

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return LiteratureRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, object]:
        return {"sources": "all"}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


class Tool:
    @property
    def tool_constructor(self) -> BaseTool:
        return create_evidence_tool(DeepEraRetriever(**tea_parameters()))

    @property
    def tool_invoke_params_example(self) -> dict[str, str]:
        return {"question": QUESTION}


class TestToolUnit(Tool, ToolsUnitTests):
    pass


class TestTool(Tool, ToolsIntegrationTests):
    pass


@pytest.mark.parametrize("suite", [TestRetriever, TestLiteratureRetriever, TestToolUnit, TestTool])
def test_no_standard_test_is_overridden(suite):
    own = {name for kind in (suite, Tool) for name in vars(kind) if name.startswith("test_")}
    assert own == set()
