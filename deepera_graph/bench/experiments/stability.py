"""Stability: whether a ranker says the same when it is asked again."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from scipy.stats import rankdata  # type: ignore[import-untyped]  # has no stubs

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
from deepera_graph.bench.metrics.values import Floats, Values
from deepera_graph.bench.rankers.ranker import NotingRanker


def run(lab: Lab) -> ExperimentResult:
    """Measure."""
    rows = []
    same: dict[str, list[bool]] = {}
    for repeats in lab.asked_again():
        row, equal = _row(lab, repeats)
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
        grids=(grid,), findings=_findings(lab, same), facts={"n_sampled": lab.setup.n_sampled}
    )


def _findings(lab: Lab, same: Mapping[str, Sequence[bool]]) -> tuple[str, ...]:
    if lab.setup.n_repeats == 1:
        return ("One run has no spread; ask for more.",)
    always = [ranker for ranker, equal in same.items() if all(equal)]
    if not always:
        return ()
    return (
        f"{', '.join(always)}: the same scores in all {lab.setup.n_repeats} runs on every data "
        "set, so one run is enough.",
    )


def _row(lab: Lab, repeats: Sequence[Pass]) -> tuple[tuple[Cell, ...], bool]:
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
    if not isinstance(first.ranker, NotingRanker):
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


EXPERIMENT = Experiment(
    name="stability",
    title="Stability over runs",
    measures=(
        "Whether scores and ranks stay the same when a ranker is asked again: the spread of each "
        "score, rank correlation, and changes across the threshold."
    ),
    run=run,
    asks_again=True,
)
