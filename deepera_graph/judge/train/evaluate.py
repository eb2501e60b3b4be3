"""An evaluation of a judge: what was measured, set by set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from deepera_graph.bench.metrics.resample import Interval
from deepera_graph.judge.train.measure import (
    KEPT,
    RANKS,
    TAU,
    Bin,
    best_metrics,
    calibration_metrics,
    kept_metrics,
    operating_curve,
    rank_metrics,
    reliability,
)
from deepera_graph.judge.train.scored import Scored


@dataclass(frozen=True, slots=True, kw_only=True)
class SetResult:
    """What was measured on one set.

    Attributes:
        n_questions: How many there are.
        n_groups: Groups that intervals are over.
        n_trained_on: Questions among them that the judge was trained on; its figures are no
            promise then.
        metrics: Rank metrics and what the threshold keeps, by name, with intervals of 95 %.
        curve: What other thresholds keep.
        best: What is left of the evidence when only the best so many passages go on to a reader.
        bins: Probabilities against shares of evidence.
        calibration: Brier score and calibration error.
    """

    n_questions: int
    n_groups: int
    n_trained_on: int
    metrics: Mapping[str, Interval]
    curve: Mapping[float, Mapping[str, Interval]]
    best: Mapping[int, Mapping[str, Interval]]
    bins: Sequence[Bin]
    calibration: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What was measured, by set.

    Attributes:
        how: One sentence on what was measured.
        tau: Threshold of the `kept` columns.
        sets: By name, in the order of the data.
    """

    how: str
    tau: float
    sets: Mapping[str, SetResult]

    def plain(self) -> dict[str, Any]:
        """Return it as JSON values; null for what is not a number."""
        return {
            "how": self.how,
            "tau": self.tau,
            "sets": {name: _plain_set(one) for name, one in self.sets.items()},
        }


def evaluate(
    scored: Sequence[Scored],
    *,
    how: str,
    tau: float = TAU,
    trained_on: Mapping[str, int] | None = None,
    seed: int = 0,
) -> Evaluation:
    """Measure scores, each set for itself.

    Args:
        scored: Not empty.
        how: One sentence on what is measured, for the report.
        tau: Threshold, inclusive, in [0, 1].
        trained_on: By set, how many of its questions the judge was trained on.
        seed: Of the intervals.

    Raises:
        SettingsError: *tau* is out of range.
        InputError: No question of a set has a golden passage.
    """
    by_set: dict[str, list[Scored]] = {}
    for one in scored:
        by_set.setdefault(one.pool.set, []).append(one)
    seen = trained_on or {}
    return Evaluation(
        how=how,
        tau=tau,
        sets={name: _measure(its, tau, seen.get(name, 0), seed) for name, its in by_set.items()},
    )


def _measure(scored: Sequence[Scored], tau: float, n_trained_on: int, seed: int) -> SetResult:
    return SetResult(
        n_questions=len(scored),
        n_groups=len({one.pool.group for one in scored}),
        n_trained_on=n_trained_on,
        metrics={**rank_metrics(scored, seed=seed), **kept_metrics(scored, tau, seed=seed)},
        curve=operating_curve(scored, seed=seed),
        best=best_metrics(scored, seed=seed),
        bins=reliability(scored),
        calibration=calibration_metrics(scored),
    )


def _plain_set(one: SetResult) -> dict[str, Any]:
    return {
        "questions": one.n_questions,
        "groups": one.n_groups,
        "trained_on": one.n_trained_on,
        "metrics": _plain_metrics(one.metrics),
        "curve": [{"tau": tau, **_plain_metrics(its)} for tau, its in one.curve.items()],
        "best": [{"keep": cut, **_plain_metrics(its)} for cut, its in one.best.items()],
        "reliability": [part._asdict() for part in one.bins],
        "calibration": dict(one.calibration),
    }


def _plain_metrics(metrics: Mapping[str, Interval]) -> dict[str, Any]:
    return {
        name: {key: value if isfinite(value) else None for key, value in one._asdict().items()}
        for name, one in metrics.items()
    }


COLUMNS = (*RANKS, *KEPT)
