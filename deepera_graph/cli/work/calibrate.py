"""What `deepera calibrate` does."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from deepera_graph.bench.calibrate import JudgedQuestion, Watch, check_method
from deepera_graph.bench.calibrate_report import EarlierScores, calibrate, report_lines
from deepera_graph.cli.work.backend import Judge
from deepera_graph.cli.work.judgements import judgements_of
from deepera_graph.cli.work.terminal import progress_bar, write_json
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.thresholds import Method

__all__ = ["Fit", "Judge", "Source", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The options that say what to fit on, and how; see `calibrate`."""

    labelled: Path
    out: Path | None
    overwrite: bool
    method: Method
    precision: float
    n_resamples: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The options that say where scores come from, as they were given."""

    ranked: Path | None
    ranked_report: Path | None
    judge: Judge
    cache: str | None
    max_concurrency: int | None

    @contextmanager
    def open(self) -> Iterator[EvidenceReranker | EarlierScores]:
        """Open who judges, or what was judged before.

        Raises:
            SettingsError: The options do not go together, or the backend cannot be built.
            StoreError: The cache that was asked for cannot be used.
        """
        if self.ranked is not None:
            self._check_nobody_judges()
            yield EarlierScores(path=self.ranked, report=self.ranked_report)
            return
        if self.ranked_report is not None:
            raise SettingsError("--ranked-report goes with --ranked")
        backend = self.judge.build()
        chosen: dict[str, Any] = {}
        if self.max_concurrency is not None:
            chosen["max_concurrency"] = self.max_concurrency
        with judgements_of(backend, self.cache) as judgements:
            yield EvidenceReranker(backend, cache=judgements, **chosen)

    def _check_nobody_judges(self) -> None:
        given: dict[str, Any] = {
            "--backend": self.judge.name,
            "--cache": self.cache,
            "--max-concurrency": self.max_concurrency,
        }
        idle = [option for option, value in given.items() if value is not None]
        idle = idle or (["--model"] if self.judge.kind == "llm" else [])
        if idle:
            raise SettingsError(f"--ranked judges nothing, so {idle[0]} has no part in it")


def run(fit: Fit, source: Source, *, as_json: bool, quiet: bool) -> None:
    """Fit a curve and show the report.

    Raises:
        InputError: A file or line cannot be used.
        SettingsError: An option is out of range, or scikit-learn is not installed.
        StoreError: The cache that was asked for cannot be used.
        BackendError: The backend is unreachable.
    """
    check_method(fit.method)
    if not fit.labelled.exists():
        raise InputError(f"there is no file {str(fit.labelled)!r}")
    with source.open() as scores, _watching(quiet=quiet) as watch:
        report = calibrate(
            fit.labelled,
            fit.out,
            scores=scores,
            method=fit.method,
            precision=fit.precision,
            n_resamples=fit.n_resamples,
            seed=fit.seed,
            overwrite=fit.overwrite,
            watch=watch,
        )
    if as_json:
        write_json(report)
    elif not quiet:
        typer.echo("\n".join(report_lines(report)))


@contextmanager
def _watching(*, quiet: bool) -> Iterator[Watch]:
    """Show how many questions are judged."""
    n_judged = 0
    with progress_bar("judging", hidden=quiet) as bar:

        def watch(question: JudgedQuestion) -> None:
            nonlocal n_judged
            n_judged += 1
            bar.move(count=n_judged)

        yield watch
