"""What `deepera bench build` does."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import typer

from deepera_graph.bench.build import outputs
from deepera_graph.bench.build.builder import (
    CALLS_AT_ONCE,
    BuildEstimate,
    BuildProgress,
    BuildResult,
    build,
    estimate_build,
)
from deepera_graph.bench.build.corpus import Document, read_corpus
from deepera_graph.bench.build.plan import BuildPlan
from deepera_graph.bench.data.documents import read_documents
from deepera_graph.budget import Budget
from deepera_graph.cli.exits import INTERRUPTED, SOME_FAILED, say
from deepera_graph.cli.work.backend import Judge, search_here
from deepera_graph.cli.work.bench.build_view import problems_of, summary, tell_estimate
from deepera_graph.cli.work.bench.names import split_names
from deepera_graph.cli.work.bench.rebuild import Earlier
from deepera_graph.cli.work.place import Place
from deepera_graph.cli.work.terminal import progress_bar, write_json
from deepera_graph.errors import BackendError, BudgetError, SettingsError
from deepera_graph.schema import Backend

_GO_ON = "what was answered is kept, run it again to go on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """The options that say which chat model writes, as they were given."""

    model: str | None
    base_url: str | None
    api_key_env: str | None
    limits: Mapping[str, float] = field(default_factory=dict)

    def build(self) -> Backend:
        """Return the backend of the model.

        Raises:
            SettingsError: There is no model, or it cannot be made.
        """
        if not self.model:
            raise SettingsError("a chat model is needed: give --model, e.g. openai:gpt-5-mini")
        return Judge(
            name="llm",
            model=self.model,
            base_url=self.base_url,
            api_key_env=self.api_key_env,
            limits=self.limits,
        ).build()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of a build, as they were given."""

    documents: Path
    out: Path
    limit: int | None
    generators: str
    settings: str
    embeddings: str | None
    max_concurrency: int | None
    plan: Mapping[str, Any]
    budget: Mapping[str, float]
    overwrite: bool
    earlier: Earlier | None = None

    def checked_plan(self) -> BuildPlan:
        """Return the plan.

        Raises:
            SettingsError: A setting is out of range.
        """
        if self.earlier is not None:
            return self.earlier.plan
        settings: Any = split_names("--settings", self.settings)
        return BuildPlan(settings=settings, **self.plan)

    def generator_names(self) -> tuple[str, ...]:
        """Return the generators, as they were named."""
        return split_names("--generator", self.generators)

    def calls_at_once(self) -> int:
        """Return the most calls in flight."""
        return CALLS_AT_ONCE if self.max_concurrency is None else self.max_concurrency

    def read(self) -> Iterator[Document]:
        """Read the documents, one by one."""
        return islice(read_documents(self.documents), self.limit)


def as_before(
    path: Path, request: Request, writer: Writer, given: Collection[str]
) -> tuple[Request, Writer]:
    """Return a request and its writer with what the manifest of an earlier build says.

    Args:
        path: The manifest.
        request: What it does not settle is taken from here.
        writer: Its model counts if one is named.
        given: Options on the command line, e.g. ``--seed``.

    Raises:
        SettingsError: It is no manifest, or an option contradicts it.
    """
    earlier = Earlier.read(path)
    earlier.check_options(given)
    generators = request.generators if "--generator" in given else ",".join(earlier.generators)
    model = writer.model or earlier.model
    server = writer.base_url or (None if writer.model else earlier.server)
    return (
        replace(request, earlier=earlier, generators=generators, limit=earlier.n_documents),
        replace(writer, model=model, base_url=server),
    )


def run(request: Request, writer: Writer, *, dry_run: bool, as_json: bool, quiet: bool) -> None:
    """Build, or say what that would ask of the model.

    Raises:
        SettingsError: An option is out of range, or data sets would be lost.
        DatasetError: The documents cannot be read, or there are none.
        BackendError: The model is unreachable; what it answered is kept.
    """
    plan, budget = request.checked_plan(), Budget(**request.budget)  # type: ignore[arg-type]  # as given
    if dry_run:
        tell_estimate(_estimate(request, plan), budget, as_json=as_json)
        return
    outputs.check_folder(request.out, overwrite=request.overwrite)
    search_here()
    built = _build(request, writer, plan, budget, quiet=quiet)
    if as_json:
        write_json(built.manifest)
    elif not quiet:
        typer.echo(summary(built), nl=False)
    problems = problems_of(built, request.earlier)
    for problem in problems:
        say(problem)
    if problems:
        raise typer.Exit(SOME_FAILED)


def _build(
    request: Request, writer: Writer, plan: BuildPlan, budget: Budget, *, quiet: bool
) -> BuildResult:
    backend = writer.build()
    place = Place(
        collection=None, path=None, qdrant_url=None, mode=None, embeddings=request.embeddings
    )
    with progress_bar(
        "building", total=plan.n_questions * len(request.generator_names()), hidden=quiet
    ) as bar:

        def show(progress: BuildProgress) -> None:
            bar.move(to=progress.n_questions, count=progress.n_answers)

        try:
            return build(
                request.read(),
                request.out,
                model=backend,
                plan=plan,
                generators=request.generator_names(),
                embeddings=place.find_embeddings(),
                calls_at_once=request.calls_at_once(),
                budget=budget,
                overwrite=request.overwrite,
                on_progress=show,
            )
        except (BudgetError, KeyboardInterrupt) as error:
            say(f"{str(error) or 'interrupted'}; {_GO_ON}")
            code = SOME_FAILED if isinstance(error, BudgetError) else INTERRUPTED
            raise typer.Exit(code) from error
        except BackendError as error:
            raise BackendError(f"{error}; {_GO_ON}") from error


def _estimate(request: Request, plan: BuildPlan) -> BuildEstimate:
    corpus = read_corpus(request.read(), plan.max_tokens, [])
    return estimate_build(corpus, plan, request.generator_names())
