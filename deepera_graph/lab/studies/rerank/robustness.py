"""Studies of scores: whether they mean the same in every subject, and are the same in every run."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp, rankdata  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.calibration.statistics import Floats, Values
from deepera_graph.lab.bench.figures import CurveFigure, CurvePoints
from deepera_graph.lab.bench.rank import RankedQuestion
from deepera_graph.lab.studies.base import RankerRun, StudyRunner
from deepera_graph.lab.studies.experiment import StudyResult
from deepera_graph.lab.studies.variants import note_left_out, note_limits
from deepera_graph.lab.tables import Cell, Column, Grid
from deepera_graph.settings.thresholds import Threshold

_THRESHOLDS = [number / 20 for number in range(21)]
_SHARES = (10, 25, 50, 75, 90)
_Groups = dict[str, list[RankedQuestion]]


def study_drift(runner: StudyRunner) -> StudyResult:
    """Compare the scores of subjects, or of data sets if there is but one subject."""
    runs = [run for run, *_ in runner.filter_runs()]
    subjects = {question.judged.subject for run in runs for question in run.questions}
    what = "subject" if len(subjects - {""}) > 1 else "data set"
    groups: dict[str, _Groups] = {}
    thresholds = {run.ranker.name: runner.threshold_of(run.ranker) for run in runs}
    for run in runs:
        for question in run.questions:
            name = question.judged.subject if what == "subject" else run.data.name
            of = groups.setdefault(run.ranker.name, {})
            of.setdefault(name or "(none)", []).append(question)
    quantiles = Grid.told(
        "drift",
        columns=(
            Column("ranker"),
            Column(what),
            *Column.several("count", "questions", "passages", "failed"),
            *(Column(f"p{share}", "number") for share in _SHARES),
            Column("pass", "percent"),
            Column("golden p50", "number"),
            Column("golden that pass", "percent"),
        ),
        rows=tuple(
            (ranker, name, *_describe_scores(runner, questions, thresholds[ranker]))
            for ranker, of in groups.items()
            for name, questions in of.items()
        ),
        what=what,
        threshold=runner.config.threshold_told,
    )
    distances = Grid.told(
        "distance",
        columns=(
            Column("ranker"),
            Column(what),
            Column(f"other {what}"),
            *Column.several("number", "all passages", "golden", "not golden"),
        ),
        rows=tuple(row for ranker, of in groups.items() for row in _distances(ranker, of)),
        what=what,
    )
    figure = CurveFigure(
        name="pass-rate",
        title=f"Share of the golden passages that pass, by threshold and {what}",
        x_label="threshold",
        y_label="percent",
        panels={
            ranker: {name: _pass_curve(questions) for name, questions in of.items()}
            for ranker, of in groups.items()
        },
    )
    findings = note_left_out(runner)
    if not distances.rows:
        findings += (f"There is one {what} only, so nothing to compare.",)
    elif what == "data set":
        findings += ("The data names no more than one subject, so data sets are compared.",)
    return StudyResult(
        grids=(quantiles, distances), drawings=(figure,), findings=(*findings, *note_limits(runner))
    )


def _scores(questions: Sequence[RankedQuestion], *, golden: bool | None = None) -> Floats:
    """Return the scores of all passages, or of those that are golden, or not; without failures."""
    scores = _scores_and_failures(questions, golden=golden)
    return scores[scores >= 0]


def _scores_and_failures(
    questions: Sequence[RankedQuestion], *, golden: bool | None = None
) -> Floats:
    """Return the same with a number below 0 for each passage that could not be judged."""
    return np.array(
        [
            score
            for question in questions
            for id, score in question.scores.items()
            if golden is None or (id in question.judged.golden) == golden
        ],
        dtype=np.float64,
    )


def _describe_scores(
    runner: StudyRunner, questions: Sequence[RankedQuestion], threshold: Threshold
) -> tuple[Cell, ...]:
    scores, golden = _scores(questions), _scores(questions, golden=True)
    rates = [_pass_rate(questions, threshold, golden=kind) for kind in (None, True)]
    passing, golden_passing = runner.estimate(rates)
    quantiles = np.percentile(scores, _SHARES) if len(scores) else [float("nan")] * len(_SHARES)
    return (
        len(questions),
        len(scores),
        len(_scores_and_failures(questions)) - len(scores),
        *map(float, quantiles),
        passing,
        float(np.median(golden)) if len(golden) else None,
        golden_passing,
    )


def _pass_rate(
    questions: Sequence[RankedQuestion], threshold: Threshold, *, golden: bool | None
) -> Values:
    """Return the share of a question's passages that pass; one without a score does not."""
    parts = [_scores_and_failures([question], golden=golden) for question in questions]
    lowest = [one.lowest_kept(threshold) for one in questions]
    counts = np.array([len(one) for one in parts], dtype=np.float64)
    passing = np.array([(one >= at).sum() for one, at in zip(parts, lowest, strict=True)])
    return Values.of(passing / np.maximum(counts, 1), counts)


def _pass_curve(questions: Sequence[RankedQuestion]) -> CurvePoints:
    golden = _scores_and_failures(questions, golden=True)
    y = [100 * float((golden >= at).mean()) if len(golden) else 0.0 for at in _THRESHOLDS]
    return CurvePoints(x=_THRESHOLDS, y=y, low=y, high=y)


def _distances(ranker: str, groups: _Groups) -> list[tuple[Cell, ...]]:
    scores = {
        name: [_scores(questions, golden=kind) for kind in (None, True, False)]
        for name, questions in groups.items()
    }
    found = [
        ([*map(ks_distance, scores[one], scores[other])], one, other)
        for one, other in combinations(scores, 2)
    ]
    found.sort(key=lambda pair: -pair[0][0])
    return [(ranker, one, other, *distances) for distances, one, other in found]


def ks_distance(first: Floats, second: Floats) -> float:
    """Return the Kolmogorov-Smirnov distance of two samples, in [0, 1]; not a number for none."""
    if not len(first) or not len(second):
        return float("nan")
    return float(ks_2samp(first, second, method="asymp").statistic)


def study_stability(runner: StudyRunner) -> StudyResult:
    """Ask every ranker several times, and compare the scores and ranks."""
    config = runner.config
    rows = []
    same: dict[str, bool] = {}
    for repeats in runner.fresh_runs():
        matrices = [
            np.array([_by_place(question) for question in questions])
            for questions in zip(*(run.questions for run in repeats), strict=True)
        ]
        marks = repeats[0].ranker.marks_failures
        stds = [
            _stds(matrix[:, _judged_always(matrix, marks_failures=marks)]) for matrix in matrices
        ]
        rows.append((*repeats[0].key, *_describe_runs(runner, repeats, matrices, stds)))
        name = repeats[0].ranker.name
        same[name] = same.get(name, True) and not any(one.any() for one in stds)
    grid = Grid.told(
        "stability",
        columns=(
            *Column.several("text", "data set", "ranker"),
            *Column.several("count", "questions", "runs"),
            Column("failed", "percent"),
            Column("std of a score", "number"),
            Column("scores that change", "percent"),
            Column("rank correlation", "number"),
            *Column.several("percent", "other first passage", "change side of the threshold"),
        ),
        rows=tuple(rows),
        threshold=runner.config.threshold_told,
    )
    return StudyResult(
        grids=(grid,),
        findings=_say_stable(config.n_fresh_runs, same),
        facts={"n_sampled": config.n_sampled},
    )


def _say_stable(n_repeats: int, same: Mapping[str, bool]) -> tuple[str, ...]:
    if n_repeats == 1:
        return ("One run has no spread; ask for more.",)
    stable = ", ".join(ranker for ranker, always in same.items() if always)
    if not stable:
        return ()
    return (
        f"{stable}: the same scores in all {n_repeats} runs on every data set, so one run is "
        "enough.",
    )


def _describe_runs(
    runner: StudyRunner, repeats: list[RankerRun], matrices: list[Floats], stds: list[Floats]
) -> tuple[Cell, ...]:
    marks = repeats[0].ranker.marks_failures
    judged = [_judged_always(matrix, marks_failures=marks) for matrix in matrices]
    scored = [matrix[:, always] for matrix, always in zip(matrices, judged, strict=True)]
    counts = [matrix.shape[1] for matrix in scored]
    threshold = runner.threshold_of(repeats[0].ranker)
    lowest = [one.lowest_kept(threshold) for one in repeats[0].questions]
    columns = [
        Values.of(
            [float((matrix < 0).mean()) if marks else 0.0 for matrix in matrices],
            [matrix.shape[1] for matrix in matrices],
        ),
        Values.of([_mean(one) for one in stds], counts),
        Values.of([_mean(one > 0) for one in stds], counts),
        Values.of([_rank_correlation(matrix) for matrix in matrices]),
        Values.of([_other_first(matrix) for matrix in matrices]),
        Values.of([_share_crossing(*one) for one in zip(scored, lowest, strict=True)], counts),
    ]
    means: list[Cell] = [*runner.estimate(columns)]
    if not repeats[0].ranker.says_why:
        means[-1] = None
    return len(matrices), len(repeats), *means


def _by_place(question: RankedQuestion) -> list[float]:
    """Return the scores in first-stage order; one below all others for a passage left out."""
    scores = question.scores
    lowest = min(scores.values(), default=0.0) - 1
    return [scores.get(id, lowest) for id in question.first]


def _judged_always(matrix: Floats, *, marks_failures: bool) -> NDArray[np.bool_]:
    """Tell which passages have a score in every run; shape (n_passages,)."""
    if not marks_failures:
        return np.ones(matrix.shape[1], dtype=bool)
    always: NDArray[np.bool_] = np.all(matrix >= 0, axis=0)
    return always


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else 0.0


def _stds(matrix: Floats) -> Floats:
    """Return the standard deviation of each column of (n_runs, n_passages)."""
    if len(matrix) == 1:
        return np.zeros(matrix.shape[1])
    return np.asarray(matrix.std(axis=0, ddof=1) * (np.ptp(matrix, axis=0) > 0))


def _rank_correlation(matrix: Floats) -> float:
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


def _share_crossing(matrix: Floats, threshold: float) -> float:
    passing = matrix >= threshold
    return _mean(np.asarray(passing.any(axis=0) & ~passing.all(axis=0)))
