"""From log odds to probabilities, and back."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

NumberT = TypeVar("NumberT", np.float32, np.float64)

_LEAST = 1e-6


def probability(log_odds: NDArray[NumberT]) -> NDArray[NumberT]:
    """Return the probabilities, in [0, 1], of the same shape and kind."""
    return np.asarray(1 / (1 + np.exp(-log_odds)), log_odds.dtype)


def log_odds(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log odds of probabilities, which are held within 1e-6 and 1 - 1e-6."""
    within = np.clip(probabilities, _LEAST, 1 - _LEAST)
    return np.asarray(np.log(within / (1 - within)), np.float64)
