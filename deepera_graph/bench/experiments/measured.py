"""What a ranker is worth on a data set: a value a question and column, over all its runs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from deepera_graph.bench.experiments.answering import answer_columns, answer_values
from deepera_graph.bench.experiments.experiment import Column
from deepera_graph.bench.experiments.lab import Lab, Material, Pass
from deepera_graph.bench.metrics.named import compute
from deepera_graph.bench.metrics.spread import average, spread
from deepera_graph.bench.metrics.values import Values


class Measured(NamedTuple):
    """A ranker on a data set: values a column, and their standard deviations over runs."""

    material: Material
    ranker: str
    values: list[Values]
    stds: list[float]


All = dict[tuple[str, str], Measured]


def metric_columns(lab: Lab) -> tuple[Column, ...]:
    """Return the columns: those of answers if the lab has a generator, then the metrics."""
    return *answer_columns(lab), *(Column(metric, "percent") for metric in lab.setup.metrics)


def measure(lab: Lab, repeats: Sequence[Pass]) -> Measured:
    """Measure a ranker that went over a data set once, or several times."""
    by_column = list(zip(*(_columns(lab, one) for one in repeats), strict=True))
    return Measured(
        repeats[0].material,
        repeats[0].ranker.name,
        [average(runs) for runs in by_column],
        [spread([one.mean() for one in runs]).std for runs in by_column],
    )


def _columns(lab: Lab, one: Pass) -> list[Values]:
    """Return what one run is worth: answers from its best passages, then its ranks."""
    judged = [question.judged for question in one.questions]
    best = [replace(each, ranked=each.ranked[: lab.setup.top_n]) for each in judged]
    answers = answer_values(lab, one.material, best)
    return [*answers, *(compute(metric, judged) for metric in lab.setup.metrics)]
