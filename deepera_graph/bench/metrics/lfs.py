"""LFS: how faithful answers are in the eyes of a judge."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepera_graph.bench.errors import MetricError
from deepera_graph.bench.metrics.values import Values


@dataclass(frozen=True, slots=True)
class Lfs:
    """Judged answers.

    Attributes:
        values: A score an answer, from `low` to `high`; the weight is 0 where there is none.
        std: Standard deviation (n - 1) of the scores over answers, >= 0; 0 for fewer than two.
        n_failed: Answers without a score; they are in no mean.
        low: Lowest score of the scale.
        high: Highest score of the scale.
    """

    values: Values
    std: float
    n_failed: int
    low: int
    high: int

    @property
    def mean(self) -> float:
        """The mean score, from `low` to `high`; not a number if no answer has one."""
        return self.values.mean()

    def __str__(self) -> str:
        """Name mean, spread and scale, e.g. ``4.02 ± 0.81 (1 to 5, 3 not judged)``."""
        failed = f", {self.n_failed} not judged" if self.n_failed else ""
        return f"{self.mean:.2f} ± {self.std:.2f} ({self.low} to {self.high}{failed})"


def lfs(scores: Sequence[int | None], *, low: int, high: int) -> Lfs:
    """Return mean and spread of the scores of a judge.

    Args:
        scores: One an answer; None for one that could not be judged.
        low: Lowest score of the scale.
        high: Highest score of the scale.

    Raises:
        MetricError: A score is not on the scale.

    Source:
        DeepEra, section on metrics: a judge's score of factual correctness, logical consistency
        and contextual adequacy, as mean and standard deviation. The scale is not printed.
    """
    judged = [one for one in scores if one is not None]
    for one in judged:
        if not low <= one <= high:
            raise MetricError(f"score must be from {low} to {high}, got {one}")
    values = [float(low if one is None else one) for one in scores]
    weights = [float(one is not None) for one in scores]
    std = float(np.std(judged, ddof=1)) if len(judged) > 1 else 0.0
    return Lfs(Values.of(values, weights), std, len(scores) - len(judged), low, high)
