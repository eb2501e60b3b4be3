"""A small corpus of passages, and embeddings that need no model."""

import math
from zlib import crc32

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings


class WordEmbeddings(Embeddings):
    """Counts of words, hashed to a few dimensions: texts that share words are close."""

    def __init__(self, size=64, model="words"):
        self.size, self.model, self.texts = size, model, []

    def embed_query(self, text):
        vector = [0.01] * self.size
        for word in text.lower().replace(".", "").split():
            vector[crc32(word.encode()) % self.size] += 1 + crc32(word.encode(), 7) % 97 / 97
        norm = math.hypot(*vector)
        return [value / norm for value in vector]

    def embed_documents(self, texts):
        self.texts += texts
        return [self.embed_query(text) for text in texts]


TEXTS = {
    "lamp": "The lamp of the lighthouse was made by the Orsay works.",
    "keeper": "The keeper of the lighthouse was Ines Marrow.",
    "marrow": "Ines Marrow was born in the village of Tolvan.",
    "tolvan": "The village of Tolvan lies on the river Ebb.",
    "ebb": "The river Ebb rises in the hills of Carn.",
    "works": "The Orsay works made glass until 1912.",
    "glass": "Glass of the Orsay works is kept in museums.",
    "hills": "Sheep graze in the hills of Carn.",
}


@pytest.fixture
def passages():
    return [
        Document(id=name, page_content=text, metadata={"n": place})
        for place, (name, text) in enumerate(TEXTS.items())
    ]


@pytest.fixture
def embeddings():
    return WordEmbeddings()


@pytest.fixture(scope="session")
def make_embeddings():
    return WordEmbeddings
