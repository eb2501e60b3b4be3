"""How sure a ratio of sums is: bootstrap intervals over questions, not passages."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from deepera_graph.calibration.fit import Floats

N_RESAMPLES = 2000
LEVEL = 0.95
_CELLS_AT_ONCE = 4_000_000


class Ratios(NamedTuple):
    """Ratios and their intervals, each of shape (n_ratios,); NaN where nothing is divided."""

    mean: Floats
    low: Floats
    high: Floats


def ratios(
    numerators: Floats, denominators: Floats, *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> Ratios:
    """Return sums of numerators over sums of denominators, with percentile intervals of 95 %.

    Passages of a question stand or fall together, so whole questions are drawn, the same ones for
    every ratio. Resamples in which a denominator is 0 are left out of that ratio's interval.

    Args:
        numerators: Of every question, shape (n_questions, n_ratios).
        denominators: Of every question, shape (n_questions, n_ratios).
        n_resamples: >= 1.
        seed: The same seed gives the same intervals.

    Source:
        Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
    """
    above, below = numerators.astype(float), denominators.astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = above.sum(axis=0) / below.sum(axis=0)
        drawn = np.concatenate(
            [(times @ above) / (times @ below) for times in _draws(len(above), n_resamples, seed)]
        )
    bounds = [_interval(column) for column in drawn.T]
    return Ratios(
        mean, np.array([low for low, _ in bounds]), np.array([high for _, high in bounds])
    )


def _draws(n_questions: int, n_resamples: int, seed: int) -> Iterator[Floats]:
    """Yield how often each question is drawn, shape (some, n_questions)."""
    rng = np.random.default_rng(seed)
    size = max(1, _CELLS_AT_ONCE // n_questions)
    even = np.full(n_questions, 1 / n_questions)
    for start in range(0, n_resamples, size):
        some = min(size, n_resamples - start)
        yield rng.multinomial(n_questions, even, size=some).astype(float)


def _interval(values: Floats) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
