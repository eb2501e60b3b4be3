"""Calibration drift: whether a score means the same in every subject."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from scipy.stats import rankdata  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.bench.figures import CurveFigure, CurvePoints
from deepera_graph.bench.metrics.statistics import Floats, Values
from deepera_graph.bench.studies.base import (
    Cell,
    Column,
    Experiment,
    ExperimentResult,
    Grid,
    Lab,
    Pass,
    Scored,
    estimates,
)

_THRESHOLDS = [number / 20 for number in range(21)]
_SHARES = (10, 25, 50, 75, 90)
_Groups = dict[str, list[Scored]]


def run_drift(lab: Lab) -> ExperimentResult:
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
            (ranker, name, *_row_drift(lab, questions))
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
        findings=_findings_drift(distances, what),
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


def _row_drift(lab: Lab, questions: Sequence[Scored]) -> tuple[Cell, ...]:
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


def _pass_curve(questions: Sequence[Scored]) -> CurvePoints:
    golden = _scores(questions, golden=True)
    y = [100 * float((golden >= at).mean()) if len(golden) else 0.0 for at in _THRESHOLDS]
    return CurvePoints(x=_THRESHOLDS, y=y, low=y, high=y)


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


def _findings_drift(distances: Grid, what: str) -> tuple[str, ...]:
    if not distances.rows:
        return (f"There is one {what} only, so nothing to compare.",)
    if what == "subject":
        return ()
    return ("The data names no more than one subject, so data sets are compared.",)


DRIFT = Experiment(
    name="drift",
    title="Calibration drift",
    measures=(
        "Whether a score means the same in every subject: quantiles, how many passages pass the "
        "threshold, and how far the distributions are apart."
    ),
    run=run_drift,
)


def run_stability(lab: Lab) -> ExperimentResult:
    """Measure."""
    rows = []
    same: dict[str, list[bool]] = {}
    for repeats in lab.asked_again():
        row, equal = _row_stability(lab, repeats)
        rows.append(row)
        same.setdefault(repeats[0].ranker.name, []).append(equal)
    grid = Grid(
        name="stability",
        title="Stability over runs",
        columns=(
            Column("data set"),
            Column("ranker"),
            Column("questions", "count"),
            Column("runs", "count"),
            Column("std of a score", "number"),
            Column("scores that change", "percent"),
            Column("rank correlation", "number"),
            Column("other first passage", "percent"),
            Column("change side of the threshold", "percent"),
        ),
        rows=tuple(rows),
        note=(
            "Every run judges anew. Std is that of one passage over runs (n - 1), on the ranker's "
            "own scale, averaged; rank correlation is Spearman's, between two runs of a question; "
            "other first passage is the share of questions in which two runs put another one "
            f"first; the last column counts passages that are not on the same side of "
            f"{lab.setup.threshold:g} in all runs."
        ),
    )
    return ExperimentResult(
        grids=(grid,),
        findings=_findings_stability(lab, same),
        facts={"n_sampled": lab.setup.n_sampled},
    )


def _findings_stability(lab: Lab, same: Mapping[str, Sequence[bool]]) -> tuple[str, ...]:
    if lab.setup.n_repeats == 1:
        return ("One run has no spread; ask for more.",)
    always = [ranker for ranker, equal in same.items() if all(equal)]
    if not always:
        return ()
    return (
        f"{', '.join(always)}: the same scores in all {lab.setup.n_repeats} runs on every data "
        "set, so one run is enough.",
    )


def _row_stability(lab: Lab, repeats: Sequence[Pass]) -> tuple[tuple[Cell, ...], bool]:
    first = repeats[0]
    matrices = [
        np.array([_by_place(question) for question in questions])
        for questions in zip(*(one.questions for one in repeats), strict=True)
    ]
    counts = [matrix.shape[1] for matrix in matrices]
    spread = [_stds(matrix) for matrix in matrices]
    columns = [
        Values.of([one.mean() for one in spread], counts),
        Values.of([(one > 0).mean() for one in spread], counts),
        Values.of([_correlation(matrix) for matrix in matrices]),
        Values.of([_other_first(matrix) for matrix in matrices]),
        Values.of([_crossing(matrix, lab.setup.threshold) for matrix in matrices], counts),
    ]
    means: list[Cell] = [*estimates(columns, lab.setup)]
    if not first.ranker.says_why:
        means[-1] = None
    head = (first.material.name, first.ranker.name, len(matrices), len(repeats))
    return (*head, *means), not any(one.any() for one in spread)


def _by_place(question: Scored) -> list[float]:
    """Return the scores in first-stage order; one below all others for a passage left out."""
    scores = question.scores
    lowest = min(scores.values(), default=0.0) - 1
    return [scores.get(id, lowest) for id in question.first]


def _stds(matrix: Floats) -> Floats:
    if len(matrix) == 1:
        return np.zeros(matrix.shape[1])
    return np.asarray(matrix.std(axis=0, ddof=1) * (np.ptp(matrix, axis=0) > 0))


def _correlation(matrix: Floats) -> float:
    """Return the mean of Spearman's correlation over pairs of runs, in [-1, 1]; 1 for one run."""
    pairs = list(combinations([rankdata(row) for row in matrix], 2))
    return float(np.mean([_pearson(*pair) for pair in pairs])) if pairs else 1.0


def _pearson(first: Floats, second: Floats) -> float:
    if np.array_equal(first, second):
        return 1.0
    here, there = first - first.mean(), second - second.mean()
    length = float(np.sqrt((here @ here) * (there @ there)))
    return float(here @ there) / length if length else 0.0


def _other_first(matrix: Floats) -> float:
    best = [int(row.argmax()) for row in matrix]
    pairs = list(combinations(best, 2))
    return float(np.mean([one != other for one, other in pairs])) if pairs else 0.0


def _crossing(matrix: Floats, threshold: float) -> float:
    passing = matrix >= threshold
    return float((passing.any(axis=0) & ~passing.all(axis=0)).mean())


STABILITY = Experiment(
    name="stability",
    title="Stability over runs",
    measures=(
        "Whether scores and ranks stay the same when a ranker is asked again: the spread of each "
        "score, rank correlation, and changes across the threshold."
    ),
    run=run_stability,
    asks_again=True,
)
