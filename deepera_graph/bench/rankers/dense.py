"""Cosine similarity under any LangChain embeddings."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from deepera_graph.bench.rankers.ranker import Job, Passage, Ranking, by_score, texts_of

_MOST_VECTORS_KEPT = 20_000
Vector = NDArray[np.float32]


class Dense:
    """Ranks by the cosine of question and passage; vectors of passages seen before are kept.

    Args:
        embeddings: Any LangChain embeddings.
        name: What the table calls it.
        fingerprint: Model and version, as plain data; None if not known, then nothing is cached.
    """

    def __init__(
        self, embeddings: Embeddings, *, name: str, fingerprint: Mapping[str, Any] | None = None
    ) -> None:
        self.name, self.fingerprint = name, fingerprint
        self.embeddings = embeddings
        self._kept: OrderedDict[str, Vector] = OrderedDict()

    def prepare(self) -> None:
        """Load the model, by embedding a word."""
        if not self._kept:
            self.embeddings.embed_query("word")

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Return all passages by cosine, in [-1, 1]; 0 for a vector of length 0."""
        if not passages:
            return []
        asked = _unit(self.embeddings.embed_query(question))
        vectors = np.stack(self._vectors(texts_of(passages)))
        return by_score(passages, list(vectors @ asked))

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Do what `rank` does for many questions, with one call for all their passages."""
        texts = [text for _, passages in jobs for text in texts_of(passages)]
        if texts:
            self._vectors(texts)
        return [self.rank(*job) for job in jobs]

    def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        vectors_of_new = self.embeddings.embed_documents(new) if new else []
        for text, vector in zip(new, vectors_of_new, strict=True):
            self._kept[text] = _unit(vector)
        vectors = [self._kept[text] for text in texts]
        while len(self._kept) > _MOST_VECTORS_KEPT:
            self._kept.popitem(last=False)
        return vectors


def _unit(vector: Sequence[float]) -> Vector:
    array = np.asarray(vector, dtype=np.float32)
    length = float(np.linalg.norm(array))
    return array / length if length else array
