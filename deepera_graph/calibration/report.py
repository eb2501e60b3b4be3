"""The report of a calibration: how good the curve is, and what thresholds on it would keep."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

from deepera_graph.calibration.folds import N_FOLDS, Probabilities, cross_validated
from deepera_graph.calibration.judged import JudgedQuestion
from deepera_graph.calibration.operating import TAUS, Kept
from deepera_graph.calibration.quality import brier_score, calibration_error
from deepera_graph.calibration.resample import LEVEL, N_RESAMPLES
from deepera_graph.calibration.suggest import Suggestion, suggest
from deepera_graph.curve import Curve

TAU = 0.8


def build_report(
    questions: Sequence[JudgedQuestion],
    curve: Curve,
    *,
    precision: float = 0.8,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    """Return plain data about a curve and the questions it was fitted on.

    Probabilities are cross-validated by question, so no passage is judged by a curve that has seen
    it. Only the suggested threshold is one number chosen on the same passages that it is then
    measured on; ``suggested.sure`` leaves room for that.

    Args:
        questions: At least one with passages; see `cross_validated`.
        curve: Fitted on all of them.
        precision: Wanted, in [0, 1].
        n_resamples: For the intervals.
        seed: For folds and intervals.

    Raises:
        InputError: There is too little to cross-validate.
    """
    probabilities = cross_validated(questions, method=curve.method, seed=seed)
    draws: dict[str, int] = {"n_resamples": n_resamples, "seed": seed}
    scale = Kept(questions, probabilities, TAUS, **draws)
    precisions = scale.precisions()
    suggested = {
        "even": suggest(scale.taus, precisions, precision, bound="mean"),
        "sure": suggest(scale.taus, precisions, precision, bound="low"),
    }
    return {
        "curve": curve.to_dict(),
        "data": _data(questions),
        "quality": _quality(questions, probabilities),
        "wanted_precision": precision,
        "suggested": {name: _suggested(one, curve) for name, one in suggested.items()},
        "operating_points": [
            *_points(questions, [one.scores for one in questions], curve, draws),
            *_points(questions, probabilities, curve, draws, _taus(suggested)),
        ],
        "how": {"folds": N_FOLDS, "level": LEVEL, **draws},
    }


def _data(questions: Sequence[JudgedQuestion]) -> dict[str, int]:
    return {
        "questions": len(questions),
        "judged": sum(len(one.scores) for one in questions),
        "relevant": sum(sum(one.labels) for one in questions),
        "failed": sum(one.n_failed for one in questions),
        "failed_relevant": sum(one.n_failed_relevant for one in questions),
    }


def _quality(
    questions: Sequence[JudgedQuestion], probabilities: Probabilities
) -> dict[str, dict[str, float]]:
    labels = list(chain.from_iterable(one.labels for one in questions))
    before = list(chain.from_iterable(one.scores for one in questions))
    after = list(chain.from_iterable(probabilities))
    always = [sum(labels) / len(labels)] * len(labels)
    return {
        "brier": {
            "before": brier_score(before, labels),
            "after": brier_score(after, labels),
            "base_rate": brier_score(always, labels),
        },
        "calibration_error": {
            "before": calibration_error(before, labels),
            "after": calibration_error(after, labels),
        },
    }


def _suggested(one: Suggestion, curve: Curve) -> dict[str, Any]:
    tau = one.probability
    score = None if tau is None else curve.lowest_score(tau)
    return {"probability": tau, "score": score, "why_not": one.why_not}


def _taus(suggested: dict[str, Suggestion]) -> list[float]:
    return sorted(
        {TAU, *(one.probability for one in suggested.values() if one.probability is not None)}
    )


def _points(
    questions: Sequence[JudgedQuestion],
    values: Sequence[Sequence[float]],
    curve: Curve,
    draws: dict[str, int],
    taus: Sequence[float] | None = None,
) -> list[dict[str, Any]]:
    """Measure thresholds on probabilities; or, if none are given, the plain one on scores."""
    measured = Kept(questions, values, taus or [TAU], **draws).points()
    on = "score" if taus is None else "probability"
    return [
        {
            "on": on,
            "tau": tau,
            "score": curve.lowest_score(tau) if taus else tau,
            **asdict(point),
        }
        for tau, point in zip(taus or [TAU], measured, strict=True)
    ]
