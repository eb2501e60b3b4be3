"""Cut-off study: how many passages to hand on, with and without the filter."""

from collections.abc import Sequence

from deepera_graph.bench.experiments.experiment import Column, Experiment, ExperimentResult, Grid
from deepera_graph.bench.experiments.lab import Lab, Pass
from deepera_graph.bench.experiments.prefix import prefix_findings
from deepera_graph.bench.experiments.ways import (
    GOLDEN,
    PRECISION,
    Way,
    curve,
    measure_ways,
    way_columns,
    way_rows,
)
from deepera_graph.bench.figures.curves import Curve, CurveFigure

_WITH, _WITHOUT = "with", "without"


def run(lab: Lab) -> ExperimentResult:
    """Measure."""
    passes = list(lab.filtering())
    ways = [way for one in passes for way in _ways(lab, one)]
    columns = (
        Column("data set"),
        Column("ranker"),
        Column("filter"),
        Column("n", "count"),
    )
    grid = Grid(
        name="cutoff",
        title="Cut-off study",
        columns=(*columns, *way_columns(lab)),
        rows=way_rows(ways),
        note=(
            f"At most n passages are handed on; the filter keeps scores from "
            f"{lab.setup.threshold:g} on. Golden kept is HitRate@n of what is handed on."
        ),
    )
    findings = prefix_findings(passes, threshold=lab.setup.threshold, n=max(lab.setup.cutoffs))
    rankers = dict.fromkeys(way.ranker for way in ways)
    drawings = tuple(
        _figure(number, ranker, [way for way in ways if way.ranker == ranker])
        for number, ranker in enumerate(rankers, start=1)
    )
    return ExperimentResult(grids=(grid,), drawings=drawings, findings=findings)


def _ways(lab: Lab, one: Pass) -> list[Way]:
    return measure_ways(
        lab,
        one,
        {
            (name, n): [question.kept(threshold=threshold, n=n) for question in one.questions]
            for name, threshold in ((_WITH, lab.setup.threshold), (_WITHOUT, None))
            for n in lab.setup.cutoffs
        },
    )


def _figure(number: int, ranker: str, ways: Sequence[Way]) -> CurveFigure:
    metrics = [GOLDEN, PRECISION, *[name for name in ("F1", "P", "R") if name in ways[0].means]]
    panels: dict[str, dict[str, Curve]] = {}
    for material in dict.fromkeys(way.material for way in ways):
        lines = panels.setdefault(material, {})
        for metric in metrics:
            for name in (_WITH, _WITHOUT):
                mine = [way for way in ways if way.material == material and way.label[0] == name]
                lines[f"{metric}, {name} filter"] = curve(
                    [float(way.label[1]) for way in mine],
                    [way.means[metric] for way in mine],
                    dashed=name == _WITHOUT,
                )
    return CurveFigure(
        name=f"cutoff-{number}",
        title=f"What the first n of {ranker} hold, with and without the filter",
        x_label="n",
        y_label="percent",
        panels=panels,
    )


EXPERIMENT = Experiment(
    name="cutoff",
    title="Cut-off study",
    measures=(
        "What the first n passages hold, with and without the filter; and whether the filter can "
        "raise HitRate at all."
    ),
    run=run,
)
