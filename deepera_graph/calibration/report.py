"""The work of `deepera calibrate`: labelled passages in, a curve and a report on thresholds out."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from deepera_graph.calibration.calibrate import (
    N_FOLDS,
    JudgedQuestion,
    Probabilities,
    Watch,
    check_classes,
    check_method,
    cross_validate,
    fit_curve,
    judge_passages,
)
from deepera_graph.calibration.instance import read_labels
from deepera_graph.calibration.statistics import (
    LEVEL,
    MAX_FAILED_SHARE,
    Floats,
    Interval,
    bootstrap_ratios,
    brier_score,
    calibration_error,
)
from deepera_graph.errors import FailedShareError, InputError, SettingsError
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.settings.ranges import check_share
from deepera_graph.settings.thresholds import Curve, Method, judge_identity

N_CALIBRATION_RESAMPLES = 2000
FEWEST_KEPT = 10
TAU = 0.8  # the default threshold of chat models
TAUS = tuple(step / 100 for step in range(101))


@dataclass(frozen=True, slots=True)
class RateInterval:
    """A number and its bootstrap interval of 95 %; all None where nothing was kept."""

    mean: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, found: Interval) -> "RateInterval":
        """Put None where there is no number, as JSON has no word for that."""
        return cls(*(None if math.isnan(number) else number for number in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """What one threshold does, over all questions."""

    precision: RateInterval  # share of the kept passages that are evidence, in [0, 1]
    recall: RateInterval  # share of the evidence, judged or not, that is kept, in [0, 1]
    kept: RateInterval  # passages kept a question, >= 0, before any `top_n`
    answered: RateInterval  # share of the questions of which something is kept, in [0, 1]


class ThresholdCounts:
    """How much of every question is kept at every threshold of a list."""

    def __init__(
        self,
        questions: Sequence[JudgedQuestion],
        values: Sequence[Sequence[float]],
        taus: Sequence[float],
        *,
        n_resamples: int = N_CALIBRATION_RESAMPLES,
        seed: int = 0,
    ) -> None:
        self._n_resamples, self._seed = n_resamples, seed
        pairs = [
            _count_kept(its_values, one.labels, taus)
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
                self._rates(found, kept),
                self._rates(found, self._relevant * ones),
                self._rates(kept, ones),
                self._rates((kept > 0).astype(float), ones),
                strict=True,
            )
        ]

    def precisions(self) -> list[RateInterval]:
        """Return the precision at each threshold; unknown where fewer than ten are kept in all."""
        found = self._rates(self._found, self._kept)
        enough = self._kept.sum(axis=0) >= FEWEST_KEPT
        return [
            one if ok else RateInterval(None, None, None)
            for one, ok in zip(found, enough, strict=True)
        ]

    def _rates(self, above: Floats, below: Floats) -> list[RateInterval]:
        found = bootstrap_ratios(above, below, n_resamples=self._n_resamples, seed=self._seed)
        return [RateInterval.of(one) for one in found]


def _count_kept(
    values: Sequence[float], labels: Sequence[int], taus: Sequence[float]
) -> tuple[Floats, Floats]:
    """Count what is kept, and the evidence in it, at every threshold; shape (n_taus,) each."""
    passes = np.asarray(values, dtype=float).reshape(-1, 1) >= np.asarray(taus, dtype=float)
    truth = np.asarray(labels, dtype=float)
    return passes.sum(axis=0).astype(float), truth @ passes


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A threshold, or why there is none."""

    probability: float | None
    why_not: str = ""

    def to_dict(self, curve: Curve) -> dict[str, Any]:
        """Return it as plain data, with the lowest score that has this probability."""
        score = None if self.probability is None else curve.lowest_score(self.probability)
        return {"probability": self.probability, "score": score, "why_not": self.why_not}


def suggest_threshold(
    taus: Sequence[float],
    precisions: Sequence[RateInterval],
    wanted: float,
    *,
    bound: Literal["mean", "low"] = "mean",
) -> Suggestion:
    """Return the lowest threshold whose precision is at least *wanted*."""
    known = [
        (tau, value)
        for tau, one in zip(taus, precisions, strict=True)
        if (value := one.mean if bound == "mean" else one.low) is not None
    ]
    reached = [tau for tau, value in known if value >= wanted]
    if reached:
        return Suggestion(probability=min(reached))
    if not known:
        few = f"fewer than {FEWEST_KEPT} passages to keep, or all of one question"
        return Suggestion(probability=None, why_not=few)
    best, tau = max((value, -tau) for tau, value in known)
    name = "precision" if bound == "mean" else "lower end of the precision"
    return Suggestion(
        probability=None,
        why_not=f"the best {name} is {best:.3f}, at probability {-tau:.2f}; wanted {wanted:g}",
    )


def build_report(
    questions: Sequence[JudgedQuestion],
    curve: Curve,
    *,
    precision: float = 0.8,
    threshold: float = TAU,
    n_resamples: int = N_CALIBRATION_RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    """Return plain data about a curve and the questions it was fitted on."""
    # *threshold* is the judge's own, on scores: what it keeps is measured, too.
    # Probabilities are cross-validated; only the suggested threshold is chosen on the passages that
    # it is then measured on: ``suggested.sure`` leaves room for that. Of too few labels for
    # cross-validation nothing is said of probabilities: on its own passages a curve looks too good.
    draws: dict[str, int] = {"n_resamples": n_resamples, "seed": seed}
    probabilities: Probabilities | None = None
    points: list[dict[str, Any]] = []
    why_not = ""
    try:
        probabilities = cross_validate(questions, method=curve.method, seed=seed)
    except InputError as error:
        why_not = str(error)
        none = Suggestion(probability=None, why_not=why_not)
        suggested = {"even": none, "sure": none}
    else:
        precisions = ThresholdCounts(questions, probabilities, TAUS, **draws).precisions()
        suggested = {
            "even": suggest_threshold(TAUS, precisions, precision, bound="mean"),
            "sure": suggest_threshold(TAUS, precisions, precision, bound="low"),
        }
        reached = [one.probability for one in suggested.values() if one.probability is not None]
        points = _measure_points(questions, probabilities, curve, draws, sorted({TAU, *reached}))
    return {
        "curve": curve.to_dict(),
        "data": {
            "questions": len(questions),
            "judged": sum(len(one.scores) for one in questions),
            "relevant": sum(sum(one.labels) for one in questions),
            "failed": sum(one.n_failed for one in questions),
            "failed_relevant": sum(one.n_failed_relevant for one in questions),
        },
        "quality": _measure_quality(questions, probabilities),
        "wanted_precision": precision,
        "suggested": {name: one.to_dict(curve) for name, one in suggested.items()},
        "operating_points": [
            *_measure_points(
                questions, [one.scores for one in questions], None, draws, sorted({TAU, threshold})
            ),
            *points,
        ],
        "how": {"folds": 0 if why_not else N_FOLDS, "why_not": why_not, "level": LEVEL, **draws},
    }


def _measure_quality(
    questions: Sequence[JudgedQuestion], probabilities: Probabilities | None
) -> dict[str, dict[str, float | None]]:
    labels = list(chain.from_iterable(one.labels for one in questions))
    before = list(chain.from_iterable(one.scores for one in questions))
    after = None if probabilities is None else list(chain.from_iterable(probabilities))
    always = [sum(labels) / len(labels)] * len(labels)
    return {
        "brier": {
            "before": brier_score(before, labels),
            "after": None if after is None else brier_score(after, labels),
            "base_rate": brier_score(always, labels),
        },
        "calibration_error": {
            "before": calibration_error(before, labels),
            "after": None if after is None else calibration_error(after, labels),
        },
    }


def _measure_points(
    questions: Sequence[JudgedQuestion],
    values: Sequence[Sequence[float]],
    curve: Curve | None,
    draws: dict[str, int],
    taus: Sequence[float],
) -> list[dict[str, Any]]:
    """Measure thresholds on the probabilities of a curve; without one, on scores."""
    measured = ThresholdCounts(questions, values, taus, **draws).points()
    on = "score" if curve is None else "probability"
    scores = [tau if curve is None else curve.lowest_score(tau) for tau in taus]
    return [
        {"on": on, "tau": tau, "score": score, **asdict(point)}
        for tau, score, point in zip(taus, scores, measured, strict=True)
    ]


def calibrate(
    labelled: Path | str,  # labelled questions; see `deepera_graph.calibration.instance`
    out: Path | str | None,  # where the curve goes, for `Curve.load`; None writes nothing
    *,
    reranker: EvidenceReranker,  # who judges the passages
    method: Method = "isotonic",  # ``isotonic``, or ``platt`` for few passages
    precision: float = 0.8,  # what `suggested` in the report aims at, in [0, 1]
    n_resamples: int = N_CALIBRATION_RESAMPLES,  # of the intervals, >= 1
    seed: int = 0,  # the same seed gives the same report
    limit: int | None = None,  # only the first so many questions, >= 1; all if None
    overwrite: bool = False,  # replace *out* if it exists
    # share of passages that could not be judged, in [0, 1], above which there is no curve
    max_failed_share: float = MAX_FAILED_SHARE,
    watch: Watch = lambda question: None,  # called with every question that was judged
) -> dict[str, Any]:
    """Fit a curve, write it, and report what thresholds would keep, as `build_report` does."""
    # Everything that can be checked is checked before the first passage is judged.
    labelled, out = Path(labelled), None if out is None else Path(out)
    check_method(method)
    check_share("precision", precision)
    check_share("max_failed_share", max_failed_share)
    if n_resamples < 1:
        raise SettingsError(f"n_resamples must be >= 1, got {n_resamples}")
    _check_out(out, labelled, overwrite=overwrite)
    if labelled.is_dir():
        raise InputError(f"{labelled} is a folder; name a file of labelled questions")
    if labelled.exists() and not labelled.is_file():
        raise InputError(f"{labelled} must be a regular file: it is read twice")
    labels = read_labels(labelled, limit=limit)
    each = [label for its in labels.values() for label in its.values()]
    check_classes(sum(each), len(each) - sum(each))
    judged = judge_passages(reranker, labelled, labels, limit=limit, watch=watch)
    questions = [one for one in judged if one.scores or one.n_failed]
    n_failed = sum(one.n_failed for one in questions)
    n_passages = n_failed + sum(len(one.scores) for one in questions)
    if n_failed > max_failed_share * n_passages:
        raise FailedShareError(
            f"{n_failed} of {n_passages} passages could not be judged, more than "
            f"{100 * max_failed_share:g} %: a curve on the rest would say little about them"
        )
    own = reranker.effective_settings.threshold  # a number, or a rule for a pool
    curve = fit_curve(
        list(chain.from_iterable(one.scores for one in questions)),
        list(chain.from_iterable(one.labels for one in questions)),
        method=method,
        judge=judge_identity(reranker.backend.name, reranker.backend.about),
        n_questions=len(questions),
    )
    report = build_report(
        questions,
        curve,
        precision=precision,
        threshold=own if isinstance(own, float) else TAU,
        n_resamples=n_resamples,
        seed=seed,
    )
    if out is not None:
        curve.save(out)
    return report


def _check_out(out: Path | None, labelled: Path, *, overwrite: bool) -> None:
    if out is None:
        return
    if out.is_dir() or not out.parent.is_dir():
        raise SettingsError(f"{str(out)!r} cannot be written")
    if out.absolute() == labelled.absolute():
        raise SettingsError(f"{str(out)!r} is the input; write somewhere else")
    if out.exists() and not overwrite:
        raise SettingsError(f"{str(out)!r} exists; give --overwrite to replace it")
