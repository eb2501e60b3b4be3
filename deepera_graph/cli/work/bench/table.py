"""What `deepera bench table` does."""

from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any

import typer

from deepera_graph.bench.run import Options, bench_table
from deepera_graph.bench.table import Row, Table
from deepera_graph.cli.exits import say
from deepera_graph.cli.work.backend import search_here
from deepera_graph.cli.work.bench.bars import bars
from deepera_graph.cli.work.bench.chat_models import ChatModels
from deepera_graph.cli.work.bench.names import split_names
from deepera_graph.cli.work.bench.outputs import check_folder
from deepera_graph.cli.work.terminal import write_json

_OF_THE_MODEL = "deepera:llm"
__all__ = ["ChatModels", "Request", "run"]

_RESULTS = ("results.md", "results.csv", "differences.csv", "manifest.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of a table, as they were given."""

    data: tuple[Path, ...]
    rankers: str | None
    metrics: str | None
    baseline: str
    n_repeats: int
    n_resamples: int | None
    seed: int
    limit: int | None
    split: str
    n_candidates: int
    out: Path | None
    overwrite: bool
    keep: Path | None
    retry_failed: bool = False
    strict: bool = False

    def options(self) -> Options:
        """Return them as the benchmark takes them.

        Raises:
            SettingsError: One is out of range.
            MetricError: A metric is unknown.
        """
        plain = Options(
            data=self.data,
            out=self.out,
            limit=self.limit,
            split=self.split,
            n_candidates=self.n_candidates,
        )
        plan = replace(plain.plan, **self._plan())
        rankers = plain.rankers if self.rankers is None else split_names("--rankers", self.rankers)
        return replace(plain, plan=plan, rankers=rankers)

    def check_out(self) -> None:
        """Raise `SettingsError` if results would be lost, or cannot be written."""
        check_folder(self.out, _RESULTS, overwrite=self.overwrite)

    def _plan(self) -> dict[str, Any]:
        given: dict[str, Any] = {
            "baseline": self.baseline,
            "n_repeats": self.n_repeats,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
            "keep": self.keep,
            "retry_failed": self.retry_failed,
            "strict": self.strict,
            "metrics": None if self.metrics is None else split_names("--metrics", self.metrics),
        }
        return {name: value for name, value in given.items() if value is not None}


def run(
    request: Request,
    chat_models: ChatModels,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Measure, write the results, and show the table; a line on stderr for what is not available.

    Raises:
        SettingsError: An option is out of range, or results would be lost.
        StoreError: The cache that was asked for cannot be used.
        DatasetError: A data set cannot be read.
        RankingError: A ranker gave back no ranking.
        MetricError: A metric or the baseline is unknown.
        UnavailableError, BackendError: No ranker could run, or one could not and it is strict.
        BudgetError: The budget is spent.
    """
    request.check_out()
    search_here()
    options = request.options()
    if request.rankers is None and chat_models.model:
        options = replace(options, rankers=(*options.rankers, _OF_THE_MODEL))
    with chat_models.opened(options.rankers) as models:
        options = replace(options, models=models)
        with bars(hidden=quiet) as watch:
            table = bench_table(options, watch=watch)
    for ranker, reason in dict.fromkeys((one.ranker, one.reason) for one in table.missing):
        say(f"{ranker} is not available: {reason}")
    if request.keep is not None and any(row.failed for row in table.rows):
        say("passages that could not be judged are kept as such; --retry-failed ranks them anew")
    if as_json:
        write_json(_plain(table))
    elif not quiet:
        typer.echo(f"{table.overview()}\n{table.markdown()}", nl=False)


def _plain(table: Table) -> dict[str, Any]:
    return {
        "metrics": list(table.metrics),
        "datasets": [
            {
                "name": one.name,
                "questions": one.n_questions,
                "candidates": one.n_candidates,
                "ceiling": one.ceiling,
                "first_stage": one.first_stage,
            }
            for one in table.surveys
        ],
        "rows": [_row(row, table.metrics) for row in table.rows],
        "differences": [_without_nan(one._asdict()) for one in table.differences],
        "not_available": [one._asdict() for one in table.missing],
    }


def _row(row: Row, metrics: tuple[str, ...]) -> dict[str, Any]:
    return {
        "dataset": row.dataset,
        "ranker": row.ranker,
        "repeats": row.n_repeats,
        "metrics": {
            metric: _without_nan(one._asdict())
            for metric, one in zip(metrics, row.estimates, strict=True)
        },
        "seconds": row.seconds,
        "calls": row.calls,
        "tokens": row.tokens,
        "failed": row.failed,
        "problem": row.problem,
    }


def _without_nan(fields: dict[str, Any]) -> dict[str, Any]:
    """JSON has no word for what is not a number; null takes its place."""
    return {
        name: None if isinstance(value, float) and isnan(value) else value
        for name, value in fields.items()
    }
