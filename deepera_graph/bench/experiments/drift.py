"""Calibration drift: whether a score means the same in every subject."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from deepera_graph.bench.experiments.experiment import (
    Cell,
    Column,
    Experiment,
    ExperimentResult,
    Grid,
)
from deepera_graph.bench.experiments.lab import Lab, Pass
from deepera_graph.bench.experiments.numbers import estimates
from deepera_graph.bench.experiments.scored import Scored
from deepera_graph.bench.figures.curves import Curve, CurveFigure
from deepera_graph.bench.metrics.values import Floats, Values

_THRESHOLDS = [number / 20 for number in range(21)]
_SHARES = (10, 25, 50, 75, 90)
_Groups = dict[str, list[Scored]]


def run(lab: Lab) -> ExperimentResult:
    """Measure."""
    by_ranker: dict[str, list[Pass]] = {}
    for one in lab.filtering():
        by_ranker.setdefault(one.ranker.name, []).append(one)
    subjects = {
        question.labels.subject
        for passes in by_ranker.values()
        for one in passes
        for question in one.questions
    }
    what = "subject" if len(subjects - {""}) > 1 else "data set"
    groups = {ranker: _groups(passes, what) for ranker, passes in by_ranker.items()}
    quantiles = Grid(
        name="drift",
        title=f"Scores by {what}",
        columns=(
            Column("ranker"),
            Column(what),
            Column("questions", "count"),
            Column("passages", "count"),
            *(Column(f"p{share}", "number") for share in _SHARES),
            Column("pass", "percent"),
            Column("golden p50", "number"),
            Column("golden that pass", "percent"),
        ),
        rows=tuple(
            (ranker, name, *_row(lab, questions))
            for ranker, of in groups.items()
            for name, questions in of.items()
        ),
        note=(
            "Quantiles of the scores of all judged passages, and of the golden ones; pass is the "
            f"share with a score from {lab.setup.threshold:g} on."
        ),
    )
    distances = Grid(
        name="distance",
        title=f"How far the scores of two {what}s are apart",
        columns=(
            Column("ranker"),
            Column(what),
            Column(f"other {what}"),
            Column("all passages", "number"),
            Column("golden", "number"),
            Column("not golden", "number"),
        ),
        rows=tuple(row for ranker, of in groups.items() for row in _distances(ranker, of)),
        note=(
            "Kolmogorov-Smirnov distance of two samples, in [0, 1], largest first. That of all "
            "passages also grows when one has more golden passages than the other; those of "
            "golden and of not golden passages do not."
        ),
    )
    return ExperimentResult(
        grids=(quantiles, distances),
        drawings=(_figure(groups, what),),
        findings=_findings(distances, what),
    )


def distance(first: Floats, second: Floats) -> float:
    """Return the Kolmogorov-Smirnov distance of two samples, in [0, 1]; not a number for none."""
    if not len(first) or not len(second):
        return float("nan")
    values = np.union1d(first, second)
    shares = [np.searchsorted(np.sort(one), values, "right") / len(one) for one in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def _groups(passes: Sequence[Pass], what: str) -> _Groups:
    groups: _Groups = {}
    for one in passes:
        for question in one.questions:
            name = question.labels.subject if what == "subject" else one.material.name
            groups.setdefault(name or "(none)", []).append(question)
    return groups


def _scores(questions: Sequence[Scored], *, golden: bool | None = None) -> Floats:
    """Return the scores of all passages, or of those that are golden, or not; without failures."""
    return np.array(
        [
            score
            for question in questions
            for id, score in question.scores.items()
            if score >= 0 and (golden is None or (id in question.judged.golden) == golden)
        ],
        dtype=np.float64,
    )


def _row(lab: Lab, questions: Sequence[Scored]) -> tuple[Cell, ...]:
    scores, golden = _scores(questions), _scores(questions, golden=True)
    passing = [
        _pass_rate(lab, questions, golden=None),
        _pass_rate(lab, questions, golden=True),
    ]
    found = estimates(passing, lab.setup)
    quantiles = np.percentile(scores, _SHARES) if len(scores) else [float("nan")] * len(_SHARES)
    return (
        len(questions),
        len(scores),
        *map(float, quantiles),
        found[0],
        float(np.median(golden)) if len(golden) else None,
        found[1],
    )


def _pass_rate(lab: Lab, questions: Sequence[Scored], *, golden: bool | None) -> Values:
    parts = [_scores([question], golden=golden) for question in questions]
    counts = np.array([len(one) for one in parts], dtype=np.float64)
    passing = np.array([(one >= lab.setup.threshold).sum() for one in parts])
    return Values.of(passing / np.maximum(counts, 1), counts)


def _figure(groups: dict[str, _Groups], what: str) -> CurveFigure:
    return CurveFigure(
        name="pass-rate",
        title=f"Share of the golden passages that pass, by threshold and {what}",
        x_label="threshold",
        y_label="percent",
        panels={
            ranker: {name: _pass_curve(questions) for name, questions in of.items()}
            for ranker, of in groups.items()
        },
    )


def _pass_curve(questions: Sequence[Scored]) -> Curve:
    golden = _scores(questions, golden=True)
    y = [100 * float((golden >= at).mean()) if len(golden) else 0.0 for at in _THRESHOLDS]
    return Curve(x=_THRESHOLDS, y=y, low=y, high=y)


def _distances(ranker: str, groups: _Groups) -> list[tuple[Cell, ...]]:
    kinds = (None, True, False)
    scores = {
        name: [_scores(questions, golden=kind) for kind in kinds]
        for name, questions in groups.items()
    }
    found = [
        ([*map(distance, scores[one], scores[other])], one, other)
        for one, other in combinations(scores, 2)
    ]
    found.sort(key=lambda pair: -pair[0][0])
    return [(ranker, one, other, *distances) for distances, one, other in found]


def _findings(distances: Grid, what: str) -> tuple[str, ...]:
    if not distances.rows:
        return (f"There is one {what} only, so nothing to compare.",)
    if what == "subject":
        return ()
    return ("The data names no more than one subject, so data sets are compared.",)


EXPERIMENT = Experiment(
    name="drift",
    title="Calibration drift",
    measures=(
        "Whether a score means the same in every subject: quantiles, how many passages pass the "
        "threshold, and how far the distributions are apart."
    ),
    run=run,
)
