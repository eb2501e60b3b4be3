"""Cosine similarity under any LangChain embeddings."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from deepera_graph.bench.rankers.ranker import Passage, Ranking, by_score, texts_of

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
        self._embeddings = embeddings
        self._kept: OrderedDict[str, Vector] = OrderedDict()

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Return all passages by cosine, in [-1, 1]; 0 for a vector of length 0."""
        if not passages:
            return []
        asked = _unit(self._embeddings.embed_query(question))
        vectors = np.stack(self._vectors(texts_of(passages)))
        return by_score(passages, list(vectors @ asked))

    def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        for text, vector in zip(new, self._embeddings.embed_documents(new), strict=True):
            self._kept[text] = _unit(vector)
        vectors = [self._kept[text] for text in texts]
        while len(self._kept) > _MOST_VECTORS_KEPT:
            self._kept.popitem(last=False)
        return vectors


def _unit(vector: Sequence[float]) -> Vector:
    array = np.asarray(vector, dtype=np.float32)
    length = float(np.linalg.norm(array))
    return array / length if length else array
