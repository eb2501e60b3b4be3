"""Threshold study: what the filter keeps, and what that costs, at several thresholds."""

from collections.abc import Sequence

from deepera_graph.bench.experiments.experiment import Column, Experiment, ExperimentResult, Grid
from deepera_graph.bench.experiments.lab import Lab, Pass
from deepera_graph.bench.experiments.ways import (
    EMPTY,
    GOLDEN,
    PRECISION,
    Way,
    curve,
    measure_ways,
    way_columns,
    way_rows,
)
from deepera_graph.bench.figures.curves import Curve, CurveFigure
from deepera_graph.bench.metrics.judged import Judged

_CURVES = (PRECISION, GOLDEN, "HitRate@1", EMPTY)


def run(lab: Lab) -> ExperimentResult:
    """Measure."""
    ways = [way for one in lab.filtering() for way in _ways(lab, one)]
    columns = (Column("data set"), Column("ranker"), Column("threshold", "number"))
    grid = Grid(
        name="threshold",
        title="Threshold study",
        columns=(*columns, *way_columns(lab)),
        rows=way_rows(ways),
        note=(
            "Every threshold is applied to the same scores; no passage is judged twice. Kept is "
            f"passages a question, at most {lab.setup.top_n}; precision is the golden share of all "
            "kept passages; golden kept is the share of questions with a golden passage among "
            "them. A rule sets the threshold of each question from its scores: gap at the widest "
            "gap between them, quantile:0.1 for the best tenth, neither under its floor, 0.5 if "
            "none is given."
        ),
    )
    return ExperimentResult(grids=(grid,), drawings=_figures(ways))


def _ways(lab: Lab, one: Pass) -> list[Way]:
    n = lab.setup.top_n
    lists: dict[tuple[str | float, ...], list[Judged]] = {
        (threshold,): [question.kept(threshold=threshold, n=n) for question in one.questions]
        for threshold in lab.setup.thresholds
    }
    for name, rule in lab.setup.rules.items():
        lists[name,] = [
            question.kept(threshold=question.cut(rule), n=n) for question in one.questions
        ]
    return measure_ways(lab, one, lists)


def _figures(ways: Sequence[Way]) -> tuple[CurveFigure, ...]:
    figures: list[CurveFigure] = []
    for ranker in dict.fromkeys(way.ranker for way in ways):
        panels: dict[str, dict[str, Curve]] = {}
        for name in dict.fromkeys(way.material for way in ways):
            mine = [
                way
                for way in ways
                if (way.material, way.ranker) == (name, ranker) and isinstance(way.label[0], float)
            ]
            x = [float(way.label[0]) for way in mine]
            if mine:
                panels[name] = {
                    label: curve(x, [way.means[label] for way in mine]) for label in _CURVES
                }
        figures.append(
            CurveFigure(
                name=f"threshold-{len(figures) + 1}",
                title=f"What the filter keeps of the ranking of {ranker}, by threshold",
                x_label="threshold",
                y_label="percent",
                panels=panels,
            )
        )
    return tuple(figures)


EXPERIMENT = Experiment(
    name="threshold",
    title="Threshold study",
    measures=(
        "How many passages a filter keeps at each threshold, fixed or drawn from the scores, how "
        "often none, how many of them are golden, and where the golden one stands."
    ),
    run=run,
)
