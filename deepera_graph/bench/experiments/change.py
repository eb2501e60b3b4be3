"""From base to look-alikes: what a ranker loses on the questions that two data sets share."""

from collections.abc import Iterator, Sequence

import numpy as np

from deepera_graph.bench.errors import MetricError
from deepera_graph.bench.experiments.experiment import Cell, Column, Grid, Unit
from deepera_graph.bench.experiments.lab import Lab, Material
from deepera_graph.bench.experiments.measured import All, metric_columns
from deepera_graph.bench.experiments.numbers import estimates
from deepera_graph.bench.metrics.resample import paired_bootstraps
from deepera_graph.bench.metrics.values import Values
from deepera_graph.bench.table import Estimate

_BASE = "base"


def changes(lab: Lab, measured: All, unit: Unit) -> Grid:
    """Return the change of every ranker and metric with that unit.

    Raises:
        MetricError: The setup names a base that is no data set.
    """
    rows = [
        row
        for before, after in _pairs(lab)
        for row in _pair_rows(lab, before, after, measured, unit)
    ]
    return Grid(
        name="change" if unit == "percent" else "change-lfs",
        title="From base to look-alikes",
        columns=(
            Column("from"),
            Column("to"),
            Column("ranker"),
            Column("metric"),
            Column("questions", "count"),
            Column("before", unit),
            Column("after", unit),
            Column("difference", unit),
            Column("relative", "percent"),
        ),
        rows=tuple(rows),
        note=(
            "Over the questions that both data sets have. Difference is in points, with a paired "
            "95 % interval; relative is (after - before) / before."
        ),
    )


def _pairs(lab: Lab) -> Iterator[tuple[Material, Material]]:
    """Yield the data sets that have a base: same source, and questions in common."""
    materials = list(lab.materials())
    named = lab.setup.base
    if named and named not in [one.name for one in materials]:
        raise MetricError(f"base must be one of {[one.name for one in materials]}, got {named!r}")
    for before in materials:
        if before.name != named if named else before.labels[0].setting != _BASE:
            continue
        for after in materials:
            if after is not before and _shared(before, after)[0]:
                yield before, after


def _shared(before: Material, after: Material) -> tuple[list[int], list[int]]:
    """Return the places of the questions that both have, pair by pair."""
    places = {one.question: place for place, one in enumerate(before.labels)}
    both = [
        (places[one.question], place)
        for place, one in enumerate(after.labels)
        if one.question in places
    ]
    return [first for first, _ in both], [second for _, second in both]


def _pair_rows(
    lab: Lab, before: Material, after: Material, measured: All, unit: Unit
) -> Iterator[tuple[Cell, ...]]:
    here, there = _shared(before, after)
    names = [
        (ranker.name, place, column.name)
        for ranker in lab.rankers
        if {(before.name, ranker.name), (after.name, ranker.name)} <= measured.keys()
        for place, column in enumerate(metric_columns(lab))
        if column.unit == unit
    ]
    old = [_only(measured[before.name, ranker].values[at], here) for ranker, at, _ in names]
    new = [_only(measured[after.name, ranker].values[at], there) for ranker, at, _ in names]
    found = estimates([*old, *new], lab.setup)
    differences = paired_bootstraps(
        list(zip(new, old, strict=True)), n_resamples=lab.setup.n_resamples, seed=lab.setup.seed
    )
    for place, (ranker, _, name) in enumerate(names):
        first, second = found[place], found[len(names) + place]
        relative = (second.mean - first.mean) / first.mean if first.mean else None
        cells = (first, second, Estimate(*differences[place], 0), relative)
        yield before.name, after.name, ranker, name, len(here), *cells


def _only(values: Values, places: Sequence[int]) -> Values:
    chosen = np.asarray(places)
    return Values(values.values[chosen], values.weights[chosen])
