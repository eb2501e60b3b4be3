"""Does a text report results, or tell background, aims and methods? A linear model on vectors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judge.encoder import Floats


@dataclass(frozen=True, slots=True)
class ResultsRole:
    """Two logistic regressions on vectors of length 1.

    Attributes:
        passage: Weights for a passage's vector, shape (n_dimensions,).
        passage_start: Added to it.
        sentence: Weights for a sentence's vector, shape (n_dimensions,).
        sentence_start: Added to it.
    """

    passage: NDArray[np.float64]
    passage_start: float
    sentence: NDArray[np.float64]
    sentence_start: float

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Return the model of its plain form, as `plain` gives it."""
        return cls(
            passage=np.array(plain["passage"], np.float64),
            passage_start=float(plain["passage_start"]),
            sentence=np.array(plain["sentence"], np.float64),
            sentence_start=float(plain["sentence_start"]),
        )

    def plain(self) -> dict[str, Any]:
        """Return the model as lists and numbers."""
        return {
            "passage": self.passage.tolist(),
            "passage_start": self.passage_start,
            "sentence": self.sentence.tolist(),
            "sentence_start": self.sentence_start,
        }

    def of_passages(self, vectors: Floats) -> NDArray[np.float64]:
        """Return the log odds of each passage; *vectors* have the shape (n, n_dimensions)."""
        return np.asarray(vectors @ self.passage + self.passage_start, np.float64)

    def of_sentences(self, vectors: Floats) -> NDArray[np.float64]:
        """Return the log odds of each sentence; *vectors* have the shape (n, n_dimensions)."""
        return np.asarray(vectors @ self.sentence + self.sentence_start, np.float64)
