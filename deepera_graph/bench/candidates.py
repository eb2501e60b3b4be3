"""A first stage for a whole corpus: BM25, the best documents of a query."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from deepera_graph.bench.bm25 import BM25Index


class Found(NamedTuple):
    """One document a first stage found; a higher score is better."""

    id: str
    score: float


class CorpusBM25:
    """BM25 over a corpus held in memory.

    Args:
        texts: Document id to text, not empty.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._ids = list(texts)
        self._index = BM25Index(list(texts.values()))

    def search(self, query: str, n: int) -> list[Found]:
        """Return the best *n* documents, or all if there are fewer; ties in corpus order."""
        scores = self._index.scores(query)
        best = np.argsort(-scores, kind="stable")[:n]
        return [Found(self._ids[place], float(scores[place])) for place in best]
