"""Main table: every ranker on every data set, and what look-alikes cost it."""

import re
from collections.abc import Iterator
from math import isnan

from deepera_graph.bench.experiments.change import changes
from deepera_graph.bench.experiments.experiment import (
    Cell,
    Column,
    Experiment,
    ExperimentResult,
    Grid,
    Unit,
)
from deepera_graph.bench.experiments.lab import Lab
from deepera_graph.bench.experiments.measured import All, measure, metric_columns
from deepera_graph.bench.experiments.numbers import estimates
from deepera_graph.bench.figures.bars import BarFigure
from deepera_graph.bench.table import Estimate


def run(lab: Lab) -> ExperimentResult:
    """Measure."""
    measured = {
        (repeats[0].material.name, repeats[0].ranker.name): measure(lab, repeats)
        for repeats in lab.repeated()
    }
    rows = tuple(_rows(lab, measured))
    columns = (
        Column("data set"),
        Column("setting"),
        Column("ranker"),
        *metric_columns(lab),
    )
    grid = Grid(
        name="main",
        title="Main table",
        columns=columns,
        rows=rows,
        note=(
            "Percent, with 95 % intervals over questions; ± is the standard deviation over runs "
            "of a ranker that differs from run to run."
        ),
    )
    units: tuple[Unit, ...] = ("percent", "number")
    losses = [changes(lab, measured, unit) for unit in units]
    return ExperimentResult(
        grids=(grid, *(one for one in losses if one.rows), *_side_by_side(lab, grid)),
        drawings=_figures(grid),
        findings=_about(lab),
    )


def _figures(grid: Grid) -> tuple[BarFigure, ...]:
    panels: dict[str, dict[str, dict[str, Estimate]]] = {}
    for place, column in list(enumerate(grid.columns))[3:]:
        for row in grid.rows:
            cell = row[place]
            if isinstance(cell, Estimate) and column.unit == "percent" and not isnan(cell.mean):
                groups = panels.setdefault(column.name, {})
                in_percent = Estimate(*(100 * part for part in cell))
                groups.setdefault(str(row[0]), {})[str(row[2])] = in_percent
    if not panels:
        return ()
    title = "Every ranker on every data set"
    return (BarFigure(name="rankers", title=title, x_label="percent", panels=panels),)


def _side_by_side(lab: Lab, grid: Grid) -> Iterator[Grid]:
    """Yield, for a setting that several data sets have, a table as the paper prints it."""
    for setting in dict.fromkeys(str(row[1]) for row in grid.rows):
        rows = {(row[0], row[2]): row[3:] for row in grid.rows if row[1] == setting}
        names = list(dict.fromkeys(str(name) for name, _ in rows))
        rankers = [
            one.name for one in lab.rankers if all((name, one.name) in rows for name in names)
        ]
        if len(names) > 1 and setting:
            yield Grid(
                name=f"setting-{re.sub(r'[^a-z0-9]+', '-', setting.lower())}",
                title=f"Setting {setting}, data sets side by side",
                columns=(
                    Column("ranker"),
                    *(
                        Column(f"{name} {column.name}", column.unit)
                        for name in names
                        for column in grid.columns[3:]
                    ),
                ),
                rows=tuple(
                    (ranker, *(cell for name in names for cell in rows[name, ranker]))
                    for ranker in rankers
                ),
            )


def _rows(lab: Lab, measured: All) -> Iterator[tuple[Cell, ...]]:
    for material in lab.materials():
        mine = [one for one in measured.values() if one.material.name == material.name]
        found = iter(estimates([values for one in mine for values in one.values], lab.setup))
        for one in mine:
            cells = [next(found)._replace(std=std) for std in one.stds]
            yield material.name, material.labels[0].setting, one.ranker, *cells


def _about(lab: Lab) -> tuple[str, ...]:
    return tuple(
        f"{one.name}: {one.survey.n_questions} questions, {one.survey.n_candidates:.1f} candidates "
        f"each ({one.survey.n_distractors:.1f} labelled distractors), golden among them for "
        f"{100 * one.survey.ceiling:.1f} %; first stage: {one.survey.first_stage}."
        for one in lab.materials()
    )


EXPERIMENT = Experiment(
    name="main",
    title="Main table",
    measures=("Every ranker on every data set, and how much each loses when look-alikes come in."),
    run=run,
)
