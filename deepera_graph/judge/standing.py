"""Where a passage stands among the others of its question, measure by measure.

A cosine of 0.5 is much in one pool and little in another. So each measure is also told as its
distance from the pool's mean and as the number of passages above.
"""

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judge.measures import Measures
from deepera_graph.judge.surroundings import SURROUNDINGS

Floats = NDArray[np.float64]
TOGETHER = (*Measures._fields, *SURROUNDINGS)
# the same for all passages of a pool, or a distance from the others already
_NOT_COMPARED = frozenset(
    (
        *("is_question", "question_length", "lead", "lead_second", "words_lead"),
        *("topic_lead", "supported_lead"),
        *(name for name in SURROUNDINGS if name.startswith("pool_")),
    )
)
COMPARED = tuple(name for name in TOGETHER if name not in _NOT_COMPARED)
_COLUMNS = [TOGETHER.index(name) for name in COMPARED]
SPREAD, ABOVE = "spread", "above"
SEEN = (
    *TOGETHER,
    *(f"{name}, {SPREAD}" for name in COMPARED),
    *(f"{name}, {ABOVE}" for name in COMPARED),
)
_TO_TRUST = 5  # passages in a pool at which a distance from its mean counts half
_LEAST = 1e-6  # standard deviation, below which all passages count as equal


def together(measures: Floats, around: Floats) -> Floats:
    """Return what passages are ranked by, shape (n, len(SEEN)).

    Args:
        measures: Of each passage, shape (n, n_measures).
        around: What each gains from the others, shape (n, len(SURROUNDINGS)); may hold NaN.
    """
    numbers = np.column_stack([measures, around])
    return np.column_stack([numbers, standing(numbers[:, _COLUMNS])])


def standing(numbers: Floats) -> Floats:
    """Return how far each number is from its column's mean, and how many are above it.

    Args:
        numbers: A row a passage, shape (n, k); NaN counts as 0.

    Returns:
        Shape (n, 2 k): first the distances, in standard deviations times ``n / (n + 5)``, as the
        mean of a few passages says little; then the numbers of passages above, in [0, n).
    """
    known = np.nan_to_num(numbers)
    n = len(known)
    spread = (known - known.mean(axis=0)) / np.maximum(known.std(axis=0), _LEAST)
    spread *= n / (n + _TO_TRUST)
    ordered = np.sort(known, axis=0)
    above = [
        n - np.searchsorted(column, values, side="right")
        for column, values in zip(ordered.T, known.T, strict=True)
    ]
    return np.column_stack([spread, *above])
