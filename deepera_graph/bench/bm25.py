"""BM25 scores of a list of texts."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import bm25s  # type: ignore[import-untyped]  # has no stubs
import numpy as np
import Stemmer  # type: ignore[import-not-found]  # a C extension without stubs
from numpy.typing import NDArray

STEMMER = "english"
STOP_WORDS = "en"


class BM25Index:
    """An index over texts, held in memory.

    English stop words go, words are stemmed (Snowball English).

    Args:
        texts: Not empty; shape (n_texts,).

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


def bm25_about() -> dict[str, str]:
    """Return what BM25 scores depend on besides the texts."""
    return {
        "library": f"bm25s {version('bm25s')}",
        "stemmer": f"PyStemmer {version('PyStemmer')} {STEMMER}",
        "stop_words": STOP_WORDS,
    }
