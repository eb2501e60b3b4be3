"""Fit a curve to scores and labels."""

import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from deepera_graph.curve import Curve, Method
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.version import __version__

Floats = NDArray[np.float64]
FEWEST_OF_A_CLASS = 10
_LEAST_SPREAD = 1e-9


def fit(
    scores: Sequence[float] | Floats,
    labels: Sequence[int],
    *,
    method: Method = "isotonic",
    judge: Mapping[str, str] | None = None,
    n_questions: int = 0,
) -> Curve:
    """Return the curve from scores to the probability that a label is 1.

    The order of the passages does not matter. Where higher scores are not more often evidence, the
    curve is flat, never falling.

    Args:
        scores: In [0, 1], shape (n_passages,).
        labels: 0 or 1, shape (n_passages,), at least ten of each: our choice, below it a share is
            uncertain by more than 0.3 either way.
        method: ``isotonic`` follows any rising shape and wants some hundred passages of each
            label; ``platt`` is a logistic curve and wants few.
        judge: Who gave the scores, for the record.
        n_questions: How many questions the passages belong to, for the record.

    Raises:
        InputError: Scores or labels are out of range, too few, or all the same; the message has
            the counts.
        SettingsError: The method is unknown, or scikit-learn is not installed.

    Source:
        Isotonic: Zadrozny and Elkan (2002), KDD. Platt: Platt (1999), Probabilistic outputs for
        support vector machines, section 2.2, with its smoothed targets.
    """
    x, y = np.asarray(scores, dtype=float), np.asarray(labels)
    _check(x, y)
    check_method(method)
    numbers = _isotonic(x, y) if method == "isotonic" else _platt(x, y)
    return Curve(
        method=method,
        **numbers,
        judge=dict(judge or {}),
        n_questions=n_questions,
        n_passages=len(x),
        version=__version__,
    )


def check_method(method: str) -> None:
    """Raise `SettingsError` unless the method is known and scikit-learn is installed."""
    if method not in get_args(Method):
        raise SettingsError(f"method must be isotonic or platt, got {method!r}")
    _sklearn("isotonic" if method == "isotonic" else "linear_model")


def check_classes(n_relevant: int, n_others: int, *, of: str = "passages") -> None:
    """Raise `InputError` unless there are enough of both labels."""
    if min(n_relevant, n_others) < FEWEST_OF_A_CLASS:
        raise InputError(
            f"calibration needs at least {FEWEST_OF_A_CLASS} relevant and {FEWEST_OF_A_CLASS} "
            f"irrelevant {of}, got {n_relevant} and {n_others}"
        )


def _check(x: Floats, y: NDArray[np.generic]) -> None:
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(f"scores and labels must be as many, got {x.shape} and {y.shape}")
    outside = x[~((x >= 0) & (x <= 1))]
    if len(outside):
        raise InputError(f"scores must be in [0, 1], got {float(outside[0])}")
    n_relevant, n_others = int((y == 1).sum()), int((y == 0).sum())
    if n_relevant + n_others != len(y):
        raise InputError(f"labels must be 0 or 1, {len(y) - n_relevant - n_others} are not")
    check_classes(n_relevant, n_others)
    if np.ptp(x) < _LEAST_SPREAD:
        raise InputError(f"all {len(x)} scores are {float(x[0])}: they tell nothing apart")


def _isotonic(x: Floats, y: NDArray[np.generic]) -> dict[str, tuple[float, ...]]:
    model = _sklearn("isotonic").IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(x, y.astype(float))
    knots, heights = model.X_thresholds_, np.maximum.accumulate(model.y_thresholds_)
    return {"x": tuple(map(float, knots)), "y": tuple(map(float, heights))}


def _platt(x: Floats, y: NDArray[np.generic]) -> dict[str, float]:
    """Fit the logistic curve to Platt's targets: every passage counts partly as either label."""
    n_relevant = int((y == 1).sum())
    high, low = (n_relevant + 1) / (n_relevant + 2), 1 / (len(y) - n_relevant + 2)
    target = np.where(y == 1, high, low)
    middle, spread = float(x.mean()), float(x.std())
    column = ((x - middle) / spread).reshape(-1, 1)
    model = _sklearn("linear_model").LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000)
    model.fit(
        np.concatenate([column, column]),
        np.repeat([1, 0], len(x)),
        sample_weight=np.concatenate([target, 1 - target]),
    )
    slope, offset = float(model.coef_[0, 0]), float(model.intercept_[0])
    if slope <= 0:
        mean = float(target.mean())
        return {"a": 0.0, "b": math.log(mean / (1 - mean))}
    return {"a": slope / spread, "b": offset - slope * middle / spread}


def _sklearn(name: str) -> ModuleType:
    try:
        return import_module(f"sklearn.{name}")
    except ImportError as error:
        raise SettingsError(
            "calibration needs scikit-learn: pip install 'deepera-graph[calibrate]'"
        ) from error
