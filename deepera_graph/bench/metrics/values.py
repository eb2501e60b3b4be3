"""What a metric gives: a value and a weight a question, so that the mean can be resampled."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepera_graph.bench.errors import MetricError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """A metric over questions.

    Attributes:
        values: One number a question, shape (n_questions,).
        weights: How much the question counts, >= 0, shape (n_questions,); 1 for most metrics.
    """

    values: Floats
    weights: Floats

    @classmethod
    def of(cls, values: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Make arrays of both, weights 1 when None.

        Raises:
            MetricError: The shapes differ, or a value is not a finite number.
        """
        numbers = np.asarray(values, dtype=np.float64)
        counts = np.ones_like(numbers) if weights is None else np.asarray(weights, np.float64)
        if numbers.shape != counts.shape or numbers.ndim != 1:
            raise MetricError(
                f"values and weights must have one shape, got {numbers.shape} and {counts.shape}"
            )
        if not (np.isfinite(numbers).all() and np.isfinite(counts).all()):
            raise MetricError("values must be finite numbers")
        return cls(numbers, counts)

    def mean(self) -> float:
        """Return the weighted mean; not a number when nothing counts."""
        total = float(self.weights.sum())
        return float(self.values @ self.weights) / total if total else float("nan")
