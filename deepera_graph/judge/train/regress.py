"""Fits a logistic regression to numbers that are of different sizes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judge.train.packages import needed

Floats = NDArray[np.float64]
_DIGITS = 6
_LEAST = 1e-6  # standard deviation that a number is divided by at least


def regress(
    numbers: Floats,
    labels: Sequence[bool],
    weights: Sequence[float] | None = None,
    *,
    balanced: bool = False,
) -> tuple[tuple[float, ...], float]:
    """Return what each number weighs, and what is added to their sum; in log odds.

    Each number is divided by its standard deviation for the fit, so that the penalty on large
    weights (L2, of strength 1) is the same for all.

    Args:
        numbers: Shape (n, k).
        labels: Shape (n,), of both kinds.
        weights: What each row counts; all count the same if None.
        balanced: Whether both labels count the same in all.
    """
    spread = np.maximum(numbers.std(axis=0), _LEAST)
    model = needed("sklearn.linear_model").LogisticRegression(
        C=1.0, max_iter=2000, class_weight="balanced" if balanced else None
    )
    model.fit(numbers / spread, labels, weights)
    found = np.round(model.coef_[0] / spread, _DIGITS).tolist()
    return tuple(found), round(float(model.intercept_[0]), _DIGITS)
