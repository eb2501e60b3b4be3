"""Spread of a mean over repeated runs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deepera_graph.bench.errors import MetricError
from deepera_graph.bench.metrics.values import Values


class Spread(NamedTuple):
    """Mean and standard deviation (n - 1) over repeats; 0 for a single one."""

    mean: float
    std: float


def spread(means: Sequence[float]) -> Spread:
    """Return mean and standard deviation of one number a repeat.

    Raises:
        MetricError: There is no repeat.
    """
    if not means:
        raise MetricError("a spread needs at least one repeat")
    numbers = np.asarray(means, dtype=np.float64)
    return Spread(float(numbers.mean()), float(numbers.std(ddof=1)) if len(means) > 1 else 0.0)


def average(repeats: Sequence[Values]) -> Values:
    """Return the mean over repeats of each question.

    Raises:
        MetricError: There is no repeat, or the repeats differ in questions or weights.
    """
    if not repeats:
        raise MetricError("an average needs at least one repeat")
    weights = repeats[0].weights
    if any(not np.array_equal(one.weights, weights) for one in repeats):
        raise MetricError("all repeats must have the same questions and weights")
    return Values.of(np.mean([one.values for one in repeats], axis=0), weights)
