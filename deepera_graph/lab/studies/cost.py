"""What the rankings took."""

import numpy as np

from deepera_graph.lab.studies.base import RankerRun, StudyRunner
from deepera_graph.lab.studies.results import StudyResult
from deepera_graph.lab.tables import Column, Grid, Row


def study_cost(runner: StudyRunner) -> StudyResult:
    """Average what the rankings took when they were made."""
    grid = Grid(
        name="cost",
        title="Efficiency",
        columns=(
            *Column.several("text", "data set", "ranker"),
            Column("passages", "count"),
            *Column.several("seconds", "time", "slowest"),
            *Column.several("count", "calls", "tokens in", "tokens out", "failed"),
        ),
        rows=tuple(map(_cost_row, runner.repeated_runs())),
        note=(
            "For a question, on average; slowest is the mean of the slowest group of questions "
            "ranked together. Times were measured when the rankings were made, and are read back "
            "with them; they are of the machine and the load of that moment."
        ),
    )
    return StudyResult(grids=(grid,))


def _cost_row(repeats: list[RankerRun]) -> Row:
    ranked = [question.ranked for run in repeats for question in run.questions]
    seconds = np.array([one.seconds for one in ranked])
    counts = np.array(
        [(one.calls, one.input_tokens, one.output_tokens, one.failed) for one in ranked]
    )
    return (
        *repeats[0].key,
        repeats[0].data.summary.n_candidates,
        float(seconds.mean()),
        float(seconds.max()),
        *map(float, counts.mean(axis=0)),
    )
