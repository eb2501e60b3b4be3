"""BM25: over texts held in memory, over a corpus as a first stage, and as a ranker."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import bm25s  # type: ignore[import-untyped]  # has no stubs
import numpy as np
import Stemmer  # type: ignore[import-not-found]  # a C extension without stubs
from numpy.typing import NDArray

from deepera_graph.bench.rankers.base import (
    Candidate,
    Ranker,
    Ranking,
    rank_by_score,
    texts_of,
)

STEMMER = "english"
STOP_WORDS = "en"


class BM25Index:
    """An index over texts, held in memory.

    English stop words go, words are stemmed (Snowball English).

    Source:
        Lu, Xing Han (2024), BM25S; its defaults: Lucene's variant, k1 1.5, b 0.75.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._stemmer = Stemmer.Stemmer(STEMMER)
        self._n_texts = len(texts)
        tokens = self._tokens(texts)
        self._model: Any = None
        if any(tokens):
            self._model = bm25s.BM25()
            self._model.index(tokens, show_progress=False)

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return one score >= 0 a text; 0 where no word of the query occurs; shape (n_texts,)."""
        words = self._tokens([query])[0]
        if not words or self._model is None:
            return np.zeros(self._n_texts)
        return np.asarray(self._model.get_scores(words), dtype=np.float64)

    def _tokens(self, texts: Sequence[str]) -> list[list[str]]:
        tokens: list[list[str]] = bm25s.tokenize(
            list(texts),
            stopwords=STOP_WORDS,
            stemmer=self._stemmer,
            show_progress=False,
            return_ids=False,
        )
        return tokens


def bm25_versions() -> dict[str, str]:
    """Return what BM25 scores depend on besides the texts."""
    return {
        "library": f"bm25s {version('bm25s')}",
        "stemmer": f"PyStemmer {version('PyStemmer')} {STEMMER}",
        "stop_words": STOP_WORDS,
    }


class Hit(NamedTuple):
    """One document a first stage found; a higher score is better."""

    id: str
    score: float


class CorpusBM25:
    """BM25 over a corpus held in memory."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._ids = list(texts)
        self._index = BM25Index(list(texts.values()))

    def search(self, query: str, n: int) -> list[Hit]:
        """Return the best *n* documents, or all if there are fewer; ties in corpus order."""
        scores = self._index.scores(query)
        best = np.argsort(-scores, kind="stable")[:n]
        return [Hit(self._ids[place], float(scores[place])) for place in best]


class BM25(Ranker):
    """Counts shared words; how rare a word is comes from the passages of the question alone."""

    name = "BM25"

    def __init__(self) -> None:
        self.fingerprint = {"kind": "bm25 over the pool", **bm25_versions()}

    def rank(self, question: str, passages: Sequence[Candidate]) -> Ranking:
        """Return all passages by BM25 score, >= 0."""
        if not passages:
            return []
        return rank_by_score(passages, list(BM25Index(texts_of(passages)).scores(question)))
