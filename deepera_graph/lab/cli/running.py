"""What the commands share: options, chat models, how results come out, and how a run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import typer

from deepera_graph.cli.opening.judges import check_server, default_cache, rates_of, retry_of
from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import (
    INTERRUPTED,
    SOME_FAILED,
    check_folder,
    describe_estimate,
    go_on_command,
    say,
    tell,
    tell_done,
)
from deepera_graph.cli.shared.declaring import given, opt, opt_of
from deepera_graph.errors import BackendError, BudgetError, SettingsError, StoreError
from deepera_graph.lab.settings import StudySettings

if TYPE_CHECKING:
    from deepera_graph.lab.asking import ConstructionEstimate
    from deepera_graph.lab.construction import Built, Progress
    from deepera_graph.lab.rankers.named import Models
    from deepera_graph.lab.studies.experiment import About, StudyResult

NO_MODEL = "a chat model is needed: give --model, e.g. openai:gpt-5-mini"
_CONTINUE = "what was answered is kept, run it again to go on"
of_study = partial(opt_of, StudySettings, panel="Measure", ranged=True, config=None)
_of_data = partial(of_study, panel="Data")
_measure = partial(opt, panel="Measure")


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """What is read of the data sets."""

    limit: int | None = _of_data("limit")
    split: str | None = _of_data("split")
    candidates: int | None = _of_data("n_candidates")
    queries: Path | None = _of_data("queries")
    corpus: Path | None = _of_data("corpus")
    qrels: Path | None = _of_data("qrels")


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """How rankers are measured."""

    repeats: int | None = of_study("n_repeats")
    resamples: int | None = of_study("n_resamples")
    seed: int | None = of_study("seed")
    strict: bool = of_study("strict", default=False)
    keep: Path | None = of_study("keep", panel=None)


@dataclass(frozen=True, kw_only=True)
class ComparedOptions:
    """Over which questions systems are compared, and how often these are resampled."""

    limit: int | None = _measure("Only the first N questions.", metavar="N", least=1, shown="all")
    resamples: int = _measure(
        "Resamples for intervals and tests.",
        metavar="N",
        default=10_000,
        least=1,
        setting="n_resamples",
    )
    seed: int = _measure(
        "Random seed of resamples, and of all that is drawn.", metavar="S", default=0, least=0
    )


@dataclass(frozen=True, kw_only=True)
class ResultOptions:
    """Where results go."""

    out: Path | None = opt(
        "Where tables, figures and a manifest go, see below.",
        "--out",
        "-o",
        metavar="FOLDER",
        shown="nowhere",
    )
    overwrite: bool = opt("Replace results in FOLDER.", default=False)


@contextmanager
def open_models(asked: options.ModelOptions, rankers: Sequence[str]) -> Iterator[Models]:
    """Give what makes the chat models of *rankers*, with the cache open if one of them asks."""
    from deepera_graph.lab.asking import MAX_CONCURRENCY
    from deepera_graph.lab.rankers.named import Models, asks_a_model
    from deepera_graph.settings.budget import Budget
    from deepera_graph.stores.judgements import open_cache

    spending = given(asked, of=options.BudgetOptions)
    asking = any(asks_a_model(one) for one in rankers)
    if asked.model and not asking:
        raise SettingsError(
            f"--model {asked.model} is asked by no ranker in --rankers; name one that does, "
            "e.g. deepera:llm or rankgpt"
        )
    check_server(asked)
    cache = None
    if asking:
        cache = default_cache() if asked.cache is None else open_cache(asked.cache)
    try:
        yield Models(
            model=asked.model or "",
            base_url=asked.base_url,
            api_key_env=asked.api_key_env,
            retry=retry_of(asked),
            limits=rates_of(asked),
            cache=cache,
            max_concurrency=(
                MAX_CONCURRENCY if asked.max_concurrency is None else asked.max_concurrency
            ),
            budget=Budget(**spending) if spending else None,
        )
    finally:
        if cache is not None:
            cache.close()


@dataclass(frozen=True, kw_only=True)
class ResumedOptions(ComparedOptions):
    """Whether work that was interrupted goes on."""

    resume: bool = opt(
        "Go on with what is done in FOLDER, after Ctrl-C, say; give the same options as before.",
        default=False,
    )


def check_resume(*, resume: bool, overwrite: bool) -> None:
    """Raise `SettingsError` for a run that is to go on and to begin anew."""
    if resume and overwrite:
        raise SettingsError("give --resume or --overwrite, not both")


def check_results(
    chosen: ResumedOptions, results: ResultOptions, names: Sequence[str], begun: Iterable[Path]
) -> None:
    """Raise `SettingsError` for results that would be lost, or a resume of nothing."""
    # *names* are files that are written when all is done, *begun* those that are written on the
    # way.
    check_resume(resume=chosen.resume, overwrite=results.overwrite)
    if chosen.resume and results.out is None:
        raise SettingsError("--resume goes with --out, the folder that has what is done")
    replaced = chosen.resume or results.overwrite
    check_folder(results.out, names, overwrite=replaced)
    for path in () if replaced else begun:
        if path.exists():
            raise SettingsError(
                f"{str(path)!r} exists; --resume goes on with it, --overwrite replaces it"
            )


def finish(
    study: About,
    result: StudyResult,
    setup: Callable[[], Mapping[str, Any]],
    results: ResultOptions,
    output: options.OutputOptions,
) -> None:
    """Write a study into its folder, with a manifest of its *setup*, and show it."""
    from deepera_graph.lab.studies.run import format_study, write_study

    if results.out is not None:
        write_study(study, result, dict(setup()), results.out)
    plain = plain_result(study.name, result)
    tell(output, plain, lambda: format_study(study, result, figures=False), out=results.out)


def plain_result(name: str, result: StudyResult) -> dict[str, Any]:
    """Return what a study found, for JSON."""
    return {
        "experiment": name,
        "findings": list(result.findings),
        "tables": [
            {
                "name": grid.name,
                "columns": [{"name": one.name, "unit": one.unit} for one in grid.columns],
                "rows": [[plain_number(cell) for cell in row] for row in grid.rows],
            }
            for grid in result.grids
        ],
    }


def plain_number(cell: Any) -> Any:
    """Return a number, or a record of numbers, for JSON: null takes the place of NaN."""
    if hasattr(cell, "_asdict"):
        return {name: plain_number(value) for name, value in cell._asdict().items()}
    return None if isinstance(cell, float) and isnan(cell) else cell


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the manifest of an earlier construction says."""

    path: Path  # the manifest
    record: Mapping[str, Any]  # what it holds
    settled: Mapping[str, Any]  # what a recipe takes from it, by name

    @classmethod
    def read(cls, path: Path, what: str, settle: Callable[[Any], Mapping[str, Any]]) -> Self:
        """Read the manifest of *what*, and what *settle* takes from it."""
        try:
            record = json.loads(path.read_bytes())
            return cls(path, record, settle(record))
        except OSError as error:
            raise SettingsError(f"--manifest {path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SettingsError(f"--manifest {path} is no manifest of {what}: {error!r}") from error

    def refuse(self, names: Collection[str]) -> None:
        """Raise `SettingsError` if fields of options are given that the manifest settles."""
        if names:
            shown = ", ".join(f"--{name.replace('_', '-')}" for name in names)
            raise SettingsError(f"--manifest settles {shown}: leave them out")

    def differences(self, manifest: Mapping[str, Any], names: Collection[str]) -> list[str]:
        """Return in which of some keys another manifest differs, in words; none if in none."""
        changed = [name for name in names if self.record.get(name) != manifest[name]]
        return [f"not the same as in {self.path}: {', '.join(changed)}"] if changed else []


def construct(
    work: Callable[..., Built],
    *,
    chat: options.PaidChatOptions,
    overwrite: bool,
    output: options.OutputOptions,
) -> Built:
    """Do the work under a bar; say how a run that ends early goes on."""
    from deepera_graph.lab.construction import CALLS_AT_ONCE
    from deepera_graph.settings.budget import Budget

    at_once = chat.max_concurrency
    with progress_bar("building", hidden=output.quiet) as bar:

        def show(progress: Progress) -> None:
            bar.move(to=progress.n_done, count=progress.n_counted, total=progress.n_wanted)

        try:
            return work(
                calls_at_once=CALLS_AT_ONCE if at_once is None else at_once,
                budget=Budget(**given(chat, of=options.BudgetOptions)),
                overwrite=overwrite,
                on_progress=show,
            )
        except (BudgetError, KeyboardInterrupt) as error:
            say(f"{str(error) or 'interrupted'}; {_CONTINUE}: {go_on_command()}")
            code = SOME_FAILED if isinstance(error, BudgetError) else INTERRUPTED
            raise typer.Exit(code) from error
        except (BackendError, StoreError) as error:
            raise type(error)(f"{error}; {_CONTINUE}") from error


def tell_built(
    built: Built,
    output: options.OutputOptions,
    describe: Callable[[Built], str],
    problems: Sequence[str],
) -> None:
    """Say what came out, and what is not as it was to be."""
    tell_done(output, built.manifest, lambda: describe(built))
    for problem in problems:
        say(problem)
    if problems:
        raise typer.Exit(SOME_FAILED)


def tell_estimate(
    found: ConstructionEstimate,
    chat: options.PaidChatOptions,
    output: options.OutputOptions,
    describe: Callable[[ConstructionEstimate, str, str], str],
) -> None:
    """Write what a run would ask of models, and what that costs where prices are known."""
    from deepera_graph.settings.budget import Budget

    limits: Budget = Budget(**given(chat, of=options.BudgetOptions))
    calls, by_step, price = describe_estimate(found.usage, found.total_usage, limits)
    plain = {**found.counts, **calls}
    tell(output, plain, lambda: describe(found, by_step, price))
