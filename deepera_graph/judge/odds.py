"""From log odds to probabilities."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

NumberT = TypeVar("NumberT", np.float32, np.float64)


def probability(log_odds: NDArray[NumberT]) -> NDArray[NumberT]:
    """Return the probabilities, in [0, 1], of the same shape and kind."""
    return np.asarray(1 / (1 + np.exp(-log_odds)), log_odds.dtype)
