"""What `deepera bench build` does."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import typer

from deepera_graph.bench.build import outputs
from deepera_graph.bench.build.builder import CALLS_AT_ONCE, Built, Progress, build
from deepera_graph.bench.build.corpus import read_corpus
from deepera_graph.bench.build.document import Document
from deepera_graph.bench.build.estimate import BuildEstimate, estimate
from deepera_graph.bench.build.plan import BuildPlan
from deepera_graph.bench.readers.documents import read_documents
from deepera_graph.budget import Budget
from deepera_graph.cli.exits import INTERRUPTED, SOME_FAILED, say
from deepera_graph.cli.work.backend import Judge, search_here
from deepera_graph.cli.work.place import Place
from deepera_graph.cli.work.terminal import progress_bar, write_json
from deepera_graph.errors import BackendError, BudgetError, SettingsError
from deepera_graph.roles import Backend

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

    def checked_plan(self) -> BuildPlan:
        """Return the plan.

        Raises:
            SettingsError: A setting is out of range.
        """
        return BuildPlan(settings=_names("--settings", self.settings), **self.plan)

    def generator_names(self) -> tuple[str, ...]:
        """Return the generators, as they were named."""
        return _names("--generator", self.generators)

    def calls_at_once(self) -> int:
        """Return the most calls in flight."""
        return CALLS_AT_ONCE if self.max_concurrency is None else self.max_concurrency

    def read(self) -> Iterator[Document]:
        """Read the documents, one by one."""
        return islice(read_documents(self.documents), self.limit)


def run(request: Request, writer: Writer, *, dry_run: bool, as_json: bool, quiet: bool) -> None:
    """Build, or say what that would ask of the model.

    Raises:
        SettingsError: An option is out of range, or data sets would be lost.
        DatasetError: The documents cannot be read, or there are none.
        BackendError: The model is unreachable; what it answered is kept.
    """
    plan, budget = request.checked_plan(), Budget(**request.budget)  # type: ignore[arg-type]  # as given
    if dry_run:
        _tell_estimate(_estimate(request, plan), budget, as_json=as_json)
        return
    outputs.check(request.out, overwrite=request.overwrite)
    search_here()
    built = _build(request, writer, plan, budget, quiet=quiet)
    if as_json:
        write_json(built.manifest)
    elif not quiet:
        typer.echo(_summary(built), nl=False)
    if built.n_failed:
        say(f"{built.n_failed} calls failed; run it again with --overwrite to try these again")
        raise typer.Exit(SOME_FAILED)


def _build(
    request: Request, writer: Writer, plan: BuildPlan, budget: Budget, *, quiet: bool
) -> Built:
    backend = writer.build()
    place = Place(
        collection=None, path=None, qdrant_url=None, mode=None, embeddings=request.embeddings
    )
    with progress_bar(
        "building", total=plan.n_questions * len(request.generator_names()), hidden=quiet
    ) as bar:

        def show(progress: Progress) -> None:
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
    return estimate(corpus, plan, request.generator_names())


def _tell_estimate(found: BuildEstimate, budget: Budget, *, as_json: bool) -> None:
    priced = None not in (budget.input_price, budget.output_price)
    cost = budget.cost(found.total) if priced else None
    if as_json:
        write_json(
            {
                "documents": found.n_documents,
                "questions": found.n_questions,
                "calls": found.total.calls,
                "most_calls": found.most_calls,
                "input_tokens": found.total.input_tokens,
                "output_tokens": found.total.output_tokens,
                "steps": {step: used.calls for step, used in found.usage.items()},
                "cost": cost,
            }
        )
        return
    steps = ", ".join(f"{step} {used.calls}" for step, used in found.usage.items())
    money = "" if cost is None else f", about {cost:.2f} of money"
    typer.echo(
        f"{found.n_questions} questions from {found.n_documents} documents: "
        f"{found.total.calls} calls ({steps}), at most {found.most_calls} if look-alikes are "
        f"rejected; about {found.total.input_tokens} prompt and {found.total.output_tokens} "
        f"answer tokens{money}"
    )


def _summary(built: Built) -> str:
    lines = [_dataset_line(name, record) for name, record in built.manifest["datasets"].items()]
    n_dropped = sum(sum(reasons.values()) for reasons in built.manifest["dropped"].values())
    lines.append(f"{n_dropped} documents and questions dropped, see {outputs.DROPPED}")
    lines.append(f"{built.n_sent} calls; written to {built.folder}")
    return "".join(f"{line}\n" for line in lines)


def _dataset_line(name: str, record: Mapping[str, Any]) -> str:
    wanted, got = record["wanted"], record["questions"]
    text = f"{name}: {got} questions" + ("" if got == wanted else f" of {wanted} wanted")
    ceiling = record["golden"]["ceiling_of_retrieval"]
    if ceiling is not None:
        text += f", golden passage retrieved for {ceiling:.1%}"
    if "distractors" in record:
        made = record["distractors"]
        text += f", {made['passed']} look-alikes passed, {made['rejected']} tries rejected"
    return text


def _names(option: str, text: str) -> tuple[Any, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise SettingsError(f"{option} must be names with commas between them, got {text!r}")
    return names
