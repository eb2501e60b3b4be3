"""Vectors of texts: of length 1, and compared."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


def unit_rows(vectors: ArrayLike) -> NDArray[np.float32]:
    """Return rows of length 1, or 0 where a row is zero; shape (n, n_dimensions)."""
    rows = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def cosines(units: NDArray[np.float32], vector: Sequence[float]) -> NDArray[np.float64]:
    """Return the cosine of each unit row with a vector, in [-1, 1]; shape (n,)."""
    return np.asarray(units @ unit_rows(vector)[0], dtype=np.float64)
