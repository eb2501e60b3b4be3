"""The first stage of a build: the chunks nearest to a question."""

import asyncio
from dataclasses import dataclass

import numpy as np
from langchain_core.documents import Document as Passage
from langchain_core.embeddings import Embeddings

from deepera_graph.bench.build.corpus import Chunk, Corpus
from deepera_graph.retrieval.store import open_store

_COLLECTION = "chunks"
_DECIMALS = 6
_MARGIN = 16


@dataclass(frozen=True, slots=True)
class Found:
    """A chunk in a pool: its place in retrieval from 1 and its cosine, None if it was put in."""

    chunk: Chunk
    rank: int | None
    score: float | None


class ChunkSearch:
    """Chunks in a Qdrant store in memory, found by the cosine of their vectors.

    Args:
        corpus: What to search.
        embeddings: Of chunks and questions.
    """

    def __init__(self, corpus: Corpus, embeddings: Embeddings) -> None:
        self._chunks = {chunk.id: chunk for chunk in corpus}
        self._embeddings = embeddings
        self._store = open_store(_COLLECTION, mode="dense", embeddings=embeddings)
        self._store.add(
            Passage(id=chunk.id, page_content=chunk.text, metadata={"document": chunk.document})
            for chunk in self._chunks.values()
        )

    async def nearest(self, question: str, n: int) -> tuple[Found, ...]:
        """Return the best *n* chunks, best first; equal scores are in order of their ids."""
        return await asyncio.to_thread(self._nearest, question, n)

    async def similarity(self, question: str, text: str) -> float:
        """Return the cosine of a question with a text that need not be in the corpus, [-1, 1]."""
        return (await asyncio.to_thread(self._cosines, question, [text]))[0]

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def _nearest(self, question: str, n: int) -> tuple[Found, ...]:
        """Take a few more than are wanted, and put them in order by cosines of our own.

        The store's are of single precision: their last digits differ from run to run.
        """
        near = [self._chunks[str(one.id)] for one in self._store.search(question, n + _MARGIN)]
        scores = self._cosines(question, [chunk.text for chunk in near])
        best = sorted(zip(scores, near, strict=True), key=lambda pair: (-pair[0], pair[1].id))
        return tuple(
            Found(chunk, rank, score) for rank, (score, chunk) in enumerate(best[:n], start=1)
        )

    def _cosines(self, question: str, texts: list[str]) -> list[float]:
        """Return cosines in double precision, rounded; 0 where a vector is zero."""
        query = np.asarray(self._embeddings.embed_query(question), dtype=np.float64)
        rows = np.asarray(self._embeddings.embed_documents(texts), dtype=np.float64)
        lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
        found: list[float] = (rows @ query / np.where(lengths > 0, lengths, 1)).tolist()
        return [round(one, _DECIMALS) + 0.0 for one in found]
