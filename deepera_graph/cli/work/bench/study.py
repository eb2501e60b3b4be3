"""What `deepera bench study` does."""

from math import isnan
from pathlib import Path
from typing import Any

import typer

from deepera_graph.bench.studies.base import StudyRunner
from deepera_graph.bench.studies.results import Cell, StudyResult
from deepera_graph.bench.studies.run import MANIFEST, STUDIES, Study, format_study, run_studies
from deepera_graph.bench.table import Estimate
from deepera_graph.cli.exits import say
from deepera_graph.cli.work.backend import search_here
from deepera_graph.cli.work.bench.bars import bars
from deepera_graph.cli.work.bench.chat_models import ChatModels
from deepera_graph.cli.work.bench.outputs import check_folder
from deepera_graph.cli.work.bench.study_request import Request
from deepera_graph.cli.work.terminal import write_json

__all__ = ["ChatModels", "Request", "run"]

ALL = "all"


def run(
    name: str,
    request: Request,
    chat_models: ChatModels,
    *,
    out: Path | None,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run a study, write its files, and show its tables.

    Raises:
        SettingsError: An option is out of range, or results would be lost.
        DatasetError: A data set cannot be read.
        RankingError: A ranker gave back no ranking.
        MetricError: A metric is unknown.
        UnavailableError, BackendError: No ranker could run, or one could not and it is strict.
        BudgetError: The budget is spent.
        StoreError: The cache that was asked for cannot be used.
    """
    chosen = list(STUDIES.values()) if name == ALL else [STUDIES[name]]
    check_folder(out, _files(chosen, nested=name == ALL), overwrite=overwrite)
    search_here()
    with request.opened(chat_models) as config, bars(hidden=quiet) as watch:
        runner = config.open_runner(watch=watch)
        done = run_studies(
            chosen,
            runner,
            lambda one: _place(out, one, nested=name == ALL),
            fresh=config.open_runner(watch=watch, cached=False),
        )
    tell_missing(runner)
    if as_json:
        write_json([_plain(study, result) for study, result in done])
    elif not quiet:
        for study, result in done:
            typer.echo(format_study(study, result, figures=False))


def tell_missing(runner: StudyRunner) -> None:
    """Write a line to stderr for every ranker that was not available."""
    for ranker, reason in dict.fromkeys(
        (ranker, reason) for (_, ranker), reason in runner.missing.items()
    ):
        say(f"{ranker} is not available: {reason}")


def _place(out: Path | None, study: Study, *, nested: bool) -> Path | None:
    return out / study.name if out is not None and nested else out


def _files(chosen: list[Study], *, nested: bool) -> list[str]:
    if nested:
        return [f"{one.name}/{MANIFEST}" for one in chosen]
    return [f"{chosen[0].name}.md", MANIFEST]


def _plain(study: Study, result: StudyResult) -> dict[str, Any]:
    return {
        "experiment": study.name,
        "findings": list(result.findings),
        "tables": [
            {
                "name": grid.name,
                "columns": [{"name": one.name, "unit": one.unit} for one in grid.columns],
                "rows": [[_value(cell) for cell in row] for row in grid.rows],
            }
            for grid in result.grids
        ],
    }


def _value(cell: Cell) -> Any:
    """JSON has no word for what is not a number; null takes its place."""
    if isinstance(cell, Estimate):
        return {key: _value(value) for key, value in cell._asdict().items()}
    return None if isinstance(cell, float) and isnan(cell) else cell
