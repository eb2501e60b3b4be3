"""What the commands that make data sets share: earlier manifests, dry runs, and how a run ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import typer

from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.console import (
    INTERRUPTED,
    SOME_FAILED,
    describe_estimate,
    go_on_command,
    progress_bar,
    reading_manifest,
    say,
    tell,
)
from deepera_graph.cli.shared.declaring import given
from deepera_graph.errors import BackendError, BudgetError, SettingsError, StoreError

if TYPE_CHECKING:
    from deepera_graph.lab.asking import Estimate
    from deepera_graph.lab.construction import Built, Progress

NO_MODEL = "a chat model is needed: give --model, e.g. openai:gpt-5-mini"
_CONTINUE = "what was answered is kept, run it again to go on"


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the manifest of an earlier construction says.

    Attributes:
        path: The manifest.
        record: What it holds.
        settled: What a recipe takes from it, by name.
    """

    path: Path
    record: Mapping[str, Any]
    settled: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path, what: str, settle: Callable[[Any], Mapping[str, Any]]) -> Self:
        """Read the manifest of *what*, and what *settle* takes from it."""
        with reading_manifest(path, what) as record:
            return cls(path, record, settle(record))

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
    chat: options.ChatOptions,
    budget: options.BudgetOptions,
    overwrite: bool,
    output: options.OutputOptions,
) -> Built:
    """Do the work under a bar; say how a run that ends early goes on."""
    from deepera_graph.budget import Budget
    from deepera_graph.lab.construction import CALLS_AT_ONCE

    at_once = chat.max_concurrency
    with progress_bar("building", hidden=output.quiet) as bar:

        def show(progress: Progress) -> None:
            bar.move(to=progress.n_done, count=progress.n_counted, total=progress.n_wanted)

        try:
            return work(
                calls_at_once=CALLS_AT_ONCE if at_once is None else at_once,
                budget=Budget(**given(budget)),
                overwrite=overwrite,
                on_progress=show,
            )
        except (BudgetError, KeyboardInterrupt) as error:
            say(f"{str(error) or 'interrupted'}; {_CONTINUE}: {go_on_command()}")
            code = SOME_FAILED if isinstance(error, BudgetError) else INTERRUPTED
            raise typer.Exit(code) from error
        except (BackendError, StoreError) as error:
            raise type(error)(f"{error}; {_CONTINUE}") from error


def end(
    built: Built,
    output: options.OutputOptions,
    describe: Callable[[Built], str],
    problems: Sequence[str],
) -> None:
    """Say what came out, and what is not as it was to be."""
    tell(output, built.manifest, lambda: describe(built))
    for problem in problems:
        say(problem)
    if problems:
        raise typer.Exit(SOME_FAILED)


def tell_estimate(
    found: Estimate,
    budget: options.BudgetOptions,
    output: options.OutputOptions,
    describe: Callable[[Estimate, str, str], str],
) -> None:
    """Write what a run would ask of models, and what that costs where prices are known."""
    from deepera_graph.budget import Budget

    limits: Budget = Budget(**given(budget))
    calls, by_step, price = describe_estimate(found.usage, found.total_usage, limits)
    plain = {**found.counts, **calls}
    tell(replace(output, quiet=False), plain, lambda: describe(found, by_step, price))
