"""BM25 over the passages of one question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deepera_graph.bench.bm25 import BM25Index, bm25_about
from deepera_graph.bench.rankers.ranker import Passage, Ranking, by_score, texts_of


@dataclass(frozen=True)
class BM25:
    """Counts shared words; how rare a word is comes from the passages of the question alone."""

    name: str = "BM25"

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """It depends on the library, the stemmer and the stop words."""
        return {"kind": "bm25 over the pool", **bm25_about()}

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Return all passages by BM25 score, >= 0."""
        if not passages:
            return []
        return by_score(passages, list(BM25Index(texts_of(passages)).scores(question)))
