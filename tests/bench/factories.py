"""Factories that tests name by their path."""

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.embeddings import DeterministicFakeEmbedding


class Backwards(BaseDocumentCompressor):
    """Turns the order around."""

    def compress_documents(self, documents, query, callbacks=None):
        return list(reversed(documents))


def words():
    return DeterministicFakeEmbedding(size=8)


def backwards():
    return Backwards()


def broken():
    raise RuntimeError("no weights")
