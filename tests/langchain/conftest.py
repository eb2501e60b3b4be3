"""Documents about tea, a store of them, and rerankers whose scores are scripted."""

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from deepera_graph import EvidenceReranker
from support.scripted import TEA_SCORES, Script
from support.tea import QUESTION, TEA


@pytest.fixture
def question():
    return QUESTION


@pytest.fixture
def documents():
    return [
        Document(id=name, page_content=text, metadata={"source": f"{name}.txt", "key": name})
        for name, text in TEA
    ]


@pytest.fixture
def script():
    return Script(TEA_SCORES)


@pytest.fixture
def reranker(script):
    return EvidenceReranker(script.backend())


@pytest.fixture
def store(documents):
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    store.add_documents(documents)
    return store
