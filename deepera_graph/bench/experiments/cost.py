"""Efficiency: seconds, calls and tokens a question."""

from collections.abc import Iterator

import numpy as np

from deepera_graph.bench.experiments.experiment import (
    Cell,
    Column,
    Experiment,
    ExperimentResult,
    Grid,
)
from deepera_graph.bench.experiments.lab import Lab, Pass


def run(lab: Lab) -> ExperimentResult:
    """Measure."""
    grid = Grid(
        name="cost",
        title="Efficiency",
        columns=(
            Column("data set"),
            Column("ranker"),
            Column("passages", "count"),
            Column("time", "seconds"),
            Column("slowest", "seconds"),
            Column("calls", "count"),
            Column("tokens in", "count"),
            Column("tokens out", "count"),
            Column("failed", "count"),
        ),
        rows=tuple(row for repeats in lab.repeated() for row in _row(repeats)),
        note=(
            "For a question, on average; slowest is the mean of the slowest group of questions "
            "ranked together. Times were measured when the rankings were made, and are read back "
            "with them; they are of the machine and the load of that moment."
        ),
    )
    return ExperimentResult(grids=(grid,))


def _row(repeats: list[Pass]) -> Iterator[tuple[Cell, ...]]:
    ranked = [question.ranked for one in repeats for question in one.questions]
    first = repeats[0]
    seconds = np.array([one.seconds for one in ranked])
    counts = np.array(
        [(one.calls, one.input_tokens, one.output_tokens, one.failed) for one in ranked]
    )
    yield (
        first.material.name,
        first.ranker.name,
        first.material.survey.n_candidates,
        float(seconds.mean()),
        float(seconds.max()),
        *map(float, counts.mean(axis=0)),
    )


EXPERIMENT = Experiment(
    name="cost",
    title="Efficiency",
    measures="Seconds, model calls and tokens that a ranker takes for a question.",
    run=run,
)
