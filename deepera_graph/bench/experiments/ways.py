"""Ways to hand passages on, measured side by side: a row a way, all over the same questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deepera_graph.bench.experiments.answering import answer_columns, answer_values
from deepera_graph.bench.experiments.experiment import Column
from deepera_graph.bench.experiments.lab import Lab, Pass
from deepera_graph.bench.experiments.numbers import (
    empty,
    estimates,
    found_golden,
    n_kept,
    precision,
)
from deepera_graph.bench.figures.curves import Curve
from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.bench.metrics.named import compute
from deepera_graph.bench.table import Estimate

KEPT, EMPTY, PRECISION, GOLDEN = "kept", "nothing kept", "precision of the kept", "golden kept"
_RANK_METRICS = ("HitRate@1", "HitRate@3", "RP")


@dataclass(frozen=True, slots=True)
class Way:
    """One way measured: what it is called, and a mean a column of `way_columns`."""

    material: str
    ranker: str
    label: tuple[str | float, ...]
    means: Mapping[str, Estimate]


def way_columns(lab: Lab) -> tuple[Column, ...]:
    """Return the columns of every way; those of answers only if the lab has a generator."""
    return (
        Column(KEPT, "count"),
        Column(EMPTY, "percent"),
        Column(PRECISION, "percent"),
        *(Column(metric, "percent") for metric in _RANK_METRICS),
        Column(GOLDEN, "percent"),
        *answer_columns(lab),
    )


def measure_ways(
    lab: Lab, one: Pass, ways: Mapping[tuple[str | float, ...], Sequence[Judged]]
) -> list[Way]:
    """Measure what each way hands on of every question of a pass."""
    columns = way_columns(lab)
    values = [value for kept in ways.values() for value in [
        n_kept(kept),
        empty(kept),
        precision(kept),
        *(compute(metric, kept) for metric in _RANK_METRICS),
        found_golden(kept),
        *answer_values(lab, one.material, kept),
    ]]  # fmt: skip
    found = iter(estimates(values, lab.setup))
    return [
        Way(
            one.material.name,
            one.ranker.name,
            label,
            {column.name: next(found) for column in columns},
        )
        for label in ways
    ]


def way_rows(ways: Sequence[Way]) -> tuple[tuple[str | float | Estimate, ...], ...]:
    """Return the rows of a grid: data set, ranker, label, means."""
    return tuple((way.material, way.ranker, *way.label, *way.means.values()) for way in ways)


def curve(x: Sequence[float], means: Sequence[Estimate], *, dashed: bool = False) -> Curve:
    """Return a curve in percent, without the points that have nothing to measure."""
    points = [(at, one) for at, one in zip(x, means, strict=True) if one.mean == one.mean]
    return Curve(
        x=[at for at, _ in points],
        y=[100 * one.mean for _, one in points],
        low=[100 * one.low for _, one in points],
        high=[100 * one.high for _, one in points],
        dashed=dashed,
    )
