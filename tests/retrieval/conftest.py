"""Embeddings that need no model, a small corpus, and files written where the test runs."""

import math
from zlib import crc32

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings


class WordEmbeddings(Embeddings):
    """Counts of words, hashed to a few dimensions: texts that share words are close."""

    def __init__(self, size=64, model="words"):
        self.size = size
        self.model = model

    def embed_query(self, text):
        vector = [0.01] * self.size
        for word in text.lower().split():
            vector[crc32(word.encode()) % self.size] += 1 + crc32(word.encode(), 7) % 97 / 97
        norm = math.hypot(*vector)
        return [value / norm for value in vector]

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


CORPUS = [
    ("tea", "Green tea lowered fasting glucose in the trial.", {"year": 2012, "topic": "diet"}),
    ("coffee", "Coffee drinkers slept forty minutes less.", {"year": 2015, "topic": "sleep"}),
    ("kelp", "Kelp forests recovered after otters returned.", {"year": 2018, "topic": "ecology"}),
    ("glucose", "Fasting glucose was measured each morning.", {"year": 2020, "topic": "diet"}),
    ("cathode", "The coated cathode kept its capacity.", {"year": 2021, "topic": "energy"}),
]


@pytest.fixture
def corpus():
    return [
        Document(id=name, page_content=text, metadata=dict(metadata))
        for name, text, metadata in CORPUS
    ]


@pytest.fixture(scope="session")
def make_embeddings():
    return WordEmbeddings


@pytest.fixture(params=["sparse", "dense", "hybrid"])
def settings(request):
    """Settings of `open_store` for each mode."""
    embeddings = None if request.param == "sparse" else WordEmbeddings()
    return {"mode": request.param, "embeddings": embeddings}


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file below the current folder; return its name."""
    monkeypatch.chdir(tmp_path)

    def write(name, content):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write
