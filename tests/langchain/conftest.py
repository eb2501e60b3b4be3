"""Documents about tea, a store of them, and rerankers whose scores are scripted."""

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from deepera_graph import EvidenceReranker
from support.scripted import TEA_SCORES, Script

QUESTION = "Does tea drinking lower fasting glucose?"
TEA = [
    ("debate", "The effects of tea on glucose are debated. More work is needed."),
    ("trial", "Green tea lowered fasting glucose by 0.4 mmol/L in 212 adults. It was blind."),
    ("kelp", "Kelp forests recovered after otters returned. Urchins became rare."),
    ("cohort", "In tea drinkers glucose fell over six years. The cohort was large."),
    ("meal", "Black tea gave a smaller rise in glucose after a meal. Sugar was added."),
    ("null", "There was no difference in fasting glucose with tea. The dose was low."),
]


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
