"""Inner products of vectors, small ones without threads."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

NumberT = TypeVar("NumberT", np.float32, np.float64)
MOST_ALONE = 8_000_000  # multiplications; beyond, threads are worth it


def products(left: NDArray[NumberT], right: NDArray[NumberT]) -> NDArray[NumberT]:
    """Return the inner product of each row of one array with each row of another.

    A small product takes a linear algebra library longer to spread over threads than to compute,
    many times longer where other work keeps the cores busy.

    Args:
        left: Shape (n, n_dimensions).
        right: Shape (m, n_dimensions).

    Returns:
        Shape (n, m).
    """
    if left.size * len(right) <= MOST_ALONE:
        return np.asarray(np.einsum("id,jd->ij", left, right), left.dtype)
    return np.asarray(left @ right.T, left.dtype)
