"""The logistic function, and its fit to labelled rows."""

import math
from collections.abc import Sequence

STEPS = 25
LARGEST = 30.0
CLOSE = 1e-8


def logistic(value: float) -> float:
    """Map any number into [0, 1]."""
    return 1 / (1 + math.exp(-max(-LARGEST, min(LARGEST, value))))


def fit_logistic(
    rows: Sequence[Sequence[float]],
    labels: Sequence[bool],
    shares: Sequence[float] | None = None,
    *,
    ridge: float = 0.1,
) -> list[float]:
    """Return the intercept, then one weight a column, of a logistic regression.

    Args:
        rows: Features, shape (n_rows, n_columns).
        labels: What is predicted, shape (n_rows,).
        shares: How much each row counts, each > 0, shape (n_rows,); all the same if None.
        ridge: Penalty on the squared weights, > 0; the intercept is free.

    Source:
        Newton's method, Hastie, Tibshirani and Friedman (2009), The Elements of Statistical
        Learning, 4.4.1.
    """
    full = [(1.0, *row) for row in rows]
    shares = shares or [1.0] * len(full)
    weights = [0.0] * len(full[0])
    for _ in range(STEPS):
        step = _newton_step(full, labels, shares, weights, ridge)
        weights = [weight + change for weight, change in zip(weights, step, strict=True)]
        if max(map(abs, step)) < CLOSE:
            break
    return weights


def _newton_step(
    rows: Sequence[Sequence[float]],
    labels: Sequence[bool],
    shares: Sequence[float],
    weights: Sequence[float],
    ridge: float,
) -> list[float]:
    size = len(weights)
    penalty = [0.0] + [ridge] * (size - 1)
    slope = [-p * weight for p, weight in zip(penalty, weights, strict=True)]
    bend = [[penalty[i] if i == j else 0.0 for j in range(size)] for i in range(size)]
    for row, label, share in zip(rows, labels, shares, strict=True):
        chance = logistic(sum(w * x for w, x in zip(weights, row, strict=True)))
        spread = share * chance * (1 - chance)
        for i, x in enumerate(row):
            if x:
                slope[i] += share * (label - chance) * x
                scaled = spread * x
                for j in range(size):
                    bend[i][j] += scaled * row[j]
    return _solve(bend, slope)


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a symmetric positive definite system by elimination; changes its arguments."""
    size = len(right)
    for i in range(size):
        for k in range(i + 1, size):
            share = matrix[k][i] / matrix[i][i]
            right[k] -= share * right[i]
            for j in range(i, size):
                matrix[k][j] -= share * matrix[i][j]
    for i in reversed(range(size)):
        known = sum(matrix[i][j] * right[j] for j in range(i + 1, size))
        right[i] = (right[i] - known) / matrix[i][i]
    return right
