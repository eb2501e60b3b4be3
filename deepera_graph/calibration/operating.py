"""What a threshold keeps: precision, recall, how much, and how often anything."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepera_graph.calibration.fit import Floats
from deepera_graph.calibration.judged import JudgedQuestion
from deepera_graph.calibration.resample import N_RESAMPLES, Ratios, ratios

FEWEST_KEPT = 10
TAUS = tuple(step / 100 for step in range(101))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and its bootstrap interval of 95 %; all None where nothing was kept."""

    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """What one threshold does, over all questions.

    Attributes:
        precision: Share of the kept passages that are evidence, in [0, 1].
        recall: Share of the evidence that is kept, in [0, 1]; evidence that could not be judged
            is not kept.
        kept: Passages kept a question, >= 0, before any `top_n`.
        answered: Share of the questions of which something is kept, in [0, 1].
    """

    precision: Estimate
    recall: Estimate
    kept: Estimate
    answered: Estimate


class Kept:
    """How much of every question is kept at every threshold of a list.

    Args:
        questions: Labelled.
        values: What the thresholds are set on, scores or probabilities: one tuple a question.
        taus: Thresholds, inclusive, shape (n_taus,).
        n_resamples: For the intervals.
        seed: For the intervals.
    """

    def __init__(
        self,
        questions: Sequence[JudgedQuestion],
        values: Sequence[Sequence[float]],
        taus: Sequence[float],
        *,
        n_resamples: int = N_RESAMPLES,
        seed: int = 0,
    ) -> None:
        self.taus = tuple(taus)
        self._n_resamples, self._seed = n_resamples, seed
        pairs = [
            _counts(its_values, one.labels, taus)
            for one, its_values in zip(questions, values, strict=True)
        ]
        self._kept = np.array([kept for kept, _ in pairs])
        self._found = np.array([found for _, found in pairs])
        self._relevant = np.array([[float(one.n_relevant)] for one in questions])

    def points(self) -> list[OperatingPoint]:
        """Return what each threshold does, with intervals."""
        kept, found, ones = self._kept, self._found, np.ones_like(self._kept)
        return [
            OperatingPoint(precision=precision, recall=recall, kept=number, answered=answered)
            for precision, recall, number, answered in zip(
                _estimates(self._ratios(found, kept)),
                _estimates(self._ratios(found, self._relevant * ones)),
                _estimates(self._ratios(kept, ones)),
                _estimates(self._ratios((kept > 0).astype(float), ones)),
                strict=True,
            )
        ]

    def precisions(self) -> list[Estimate]:
        """Return the precision at each threshold; unknown where fewer than ten are kept in all."""
        found = _estimates(self._ratios(self._found, self._kept))
        enough = self._kept.sum(axis=0) >= FEWEST_KEPT
        return [
            one if ok else Estimate(None, None, None) for one, ok in zip(found, enough, strict=True)
        ]

    def _ratios(self, above: Floats, below: Floats) -> Ratios:
        return ratios(above, below, n_resamples=self._n_resamples, seed=self._seed)


def _counts(
    values: Sequence[float], labels: Sequence[int], taus: Sequence[float]
) -> tuple[Floats, Floats]:
    """Count what is kept, and the evidence in it, at every threshold; shape (n_taus,) each."""
    passes = np.asarray(values, dtype=float).reshape(-1, 1) >= np.asarray(taus, dtype=float)
    truth = np.asarray(labels, dtype=float)
    return passes.sum(axis=0).astype(float), truth @ passes


def _estimates(found: Ratios) -> list[Estimate]:
    return [
        Estimate(*(None if math.isnan(number) else float(number) for number in numbers))
        for numbers in zip(found.mean, found.low, found.high, strict=True)
    ]
