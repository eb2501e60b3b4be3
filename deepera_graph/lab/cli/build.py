"""`deepera-lab bench build`: a benchmark from documents, written by a chat model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import typer

from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.console import (
    INTERRUPTED,
    SOME_FAILED,
    count,
    describe_estimate,
    go_on_command,
    needing,
    progress_bar,
    reading_manifest,
    say,
    tell,
)
from deepera_graph.cli.shared.declaring import given, opt, split_names
from deepera_graph.errors import BackendError, BudgetError, SettingsError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from deepera_graph.budget import Budget
    from deepera_graph.lab.build.builder import BuildEstimate, BuildProgress, BuildResult
    from deepera_graph.lab.build.corpus import Document
    from deepera_graph.lab.build.plan import BuildPlan
    from deepera_graph.lab.build.workers import Workers

_CONTINUE = "what was answered is kept, run it again to go on"
_COMPARED = ("package", "embeddings", "prompts", "generators", "documents", "files")
_make = partial(opt, panel="What is made")
_corpus = partial(opt, panel="Corpus")


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What is made; an earlier manifest settles all of it."""

    questions: int = _make(
        "Questions of each generator.", metavar="N", default=100, setting="n_questions"
    )
    settings: str = _make(
        "[b]base[/b]: pools as retrieved. [b]ssli[/b]: with look-alikes.",
        metavar="NAME,...",
        default="base,ssli",
        many=str,
    )
    contexts: int = _make("Passages in a pool.", metavar="N", default=30, setting="n_contexts")
    distractors: int = _make(
        "Look-alikes in a pool.", metavar="N", default=3, setting="n_distractors"
    )
    attempts: int = _make("Upper bound of attempts at one look-alike.", metavar="N", default=3)
    verify: bool = _make(
        "Let the model check each look-alike against the answer: one call more for each.",
        default=True,
    )
    golden: Literal["insert", "record"] = _make(
        "When retrieval misses the passage that answers: put it in, or name it beside the pool.",
        default="insert",
    )
    per_document: int = _make(
        "Upper bound of questions about one document.", metavar="N", default=1
    )
    seed: int = _make("Random seed of the build.", metavar="S", default=0)
    max_chunk: int = _corpus(
        "Upper bound of tokens in a chunk.", metavar="N", default=200, setting="max_tokens"
    )
    min_similarity: float | None = _corpus(
        "Smallest cosine that connects two documents.",
        metavar="C",
        shown="far below the quartiles of this corpus",
    )
    min_group: int = _corpus(
        "Connected documents needed for them to stay; 1 keeps all.", metavar="N", default=2
    )


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """What it is made of, and where it goes."""

    out: Path = opt("Where the data sets go.", "--out", "-o", metavar="FOLDER", needed=True)
    generator: str = _make(
        "Who writes the questions: [b]lmqg[/b], from one passage; [b]guided[/b], from notes on "
        "methods, results and significance; [b]file:PATH[/b], pairs made elsewhere: JSON lines of "
        '"document" and "pairs", a list of (question, answer).',
        metavar="NAME,...",
        default="lmqg,guided",
    )
    manifest: Path | None = _make(
        "Repeat the build of an earlier manifest.json: its settings, generators, number of "
        "documents, and its model unless --model is given. Differences are reported, with code 1.",
        metavar="FILE",
    )
    embeddings: str | None = _corpus(
        "A function that returns LangChain Embeddings, or a model of OpenAI.",
        metavar="MODULE:FACTORY|openai:MODEL",
        shown="LSA over the corpus: no model",
    )
    qdrant_url: str | None = _corpus(
        "A Qdrant server that finds the pools, for corpora of more than some 100 000 documents; "
        "its key is in QDRANT_API_KEY.",
        metavar="URL",
        shown="a question is compared with all chunks, in a file",
    )
    by_subject: int | None = _corpus(
        "If DOCUMENTS is not there: first write N works of each subject to it, drawn at random "
        "from OpenAlex by --seed. Its key, if any, is in OPENALEX_API_KEY.",
        metavar="N",
        least=1,
    )
    subjects: str | None = _corpus(
        "Subjects of --by-subject: biology, chemistry, computer science, geography, geology, "
        "materials science, mathematics, medicine, physics, psychology.",
        metavar="NAME,...",
        shown="all ten",
    )
    limit: int | None = _corpus("Only the first N documents.", metavar="N", least=1, shown="all")
    dry_run: bool = opt("Only estimate what it would ask of the model.", default=False)
    overwrite: bool = opt("Replace data sets in FOLDER; kept answers are used.", default=False)


def build(
    context: typer.Context,
    documents: Annotated[Path, typer.Argument(metavar="DOCUMENTS", help="A file or a folder.")],
    *,
    chosen: BuildOptions,
    plan: PlanOptions,
    chat: options.ChatOptions,
    budget: options.BudgetOptions,
    engine: options.EngineOptions,
    output: options.OutputOptions,
) -> None:
    """Build a benchmark from documents: questions, pools and look-alikes, by a chat model."""
    with needing("bench build", "bench"):
        from deepera_graph.lab.build import outputs
        from deepera_graph.lab.build.builder import estimate_build
        from deepera_graph.lab.build.corpus import read_corpus
        from deepera_graph.lab.build.plan import BuildPlan
        from deepera_graph.lab.data.documents import read_documents
    from deepera_graph.budget import Budget
    from deepera_graph.cli.opening.judges import search_here
    from deepera_graph.cli.opening.sources import check_engine

    check_engine(engine)
    earlier = None
    if chosen.manifest is not None:
        earlier = _Earlier.read(chosen.manifest)
        chosen, chat = earlier.settle(_given_names(context), chosen, chat)
    names = split_names("--generator", chosen.generator)
    checked = BuildPlan(**given(plan)) if earlier is None else earlier.plan
    limits: Budget = Budget(**given(budget))
    _fetch(documents, chosen, checked.seed)
    documents_read = islice(read_documents(documents), chosen.limit)
    if chosen.dry_run:
        corpus = read_corpus(documents_read, checked.max_tokens, [])
        _tell_estimate(estimate_build(corpus, checked, names), limits, output)
        return
    outputs.check_folder(chosen.out, overwrite=chosen.overwrite)
    search_here()
    total = checked.n_questions * len(names)
    with progress_bar("building", total=total, hidden=output.quiet) as bar:

        def show(progress: BuildProgress) -> None:
            bar.move(to=progress.n_questions, count=progress.n_answers)

        built = _build(documents_read, chosen, chat, engine, plan=checked, budget=limits, show=show)
    tell(output, built.manifest, lambda: _describe_built(built))
    problems = _find_problems(built, earlier)
    for problem in problems:
        say(problem)
    if problems:
        raise typer.Exit(SOME_FAILED)


def _fetch(documents: Path, chosen: BuildOptions, seed: int) -> None:
    """Write works of each subject where the documents are to be, unless they are there."""
    if chosen.by_subject is None:
        if chosen.subjects is not None:
            raise SettingsError("--subjects goes with --by-subject")
        return
    from deepera_graph.calibration.instance import write_rows
    from deepera_graph.lab.data.subjects import find_by_subject, pick_subjects
    from deepera_graph.packages import check_extra

    names = split_names("--subjects", chosen.subjects) if chosen.subjects else ()
    subjects = pick_subjects(names)
    check_extra("httpx", extra="sources", what="--by-subject")
    if documents.exists():
        say(f"{documents} is there: nothing is fetched")
        return
    n = write_rows(documents, find_by_subject(chosen.by_subject, subjects=subjects, seed=seed))
    say(f"{count(n, 'work')} on {count(len(subjects), 'subject')} written to {documents}")


def _given_names(context: typer.Context) -> frozenset[str]:
    """Return the options that are on the command line, by the names of their fields."""
    names = (one.name or "" for one in context.command.params)
    sources = {name: context.get_parameter_source(name) for name in names}
    return frozenset(
        name
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE"
    )


def _build(
    documents: Iterator[Document],
    chosen: BuildOptions,
    chat: options.ChatOptions,
    engine: options.EngineOptions,
    *,
    plan: BuildPlan,
    budget: Budget,
    show: Callable[[BuildProgress], None],
) -> BuildResult:
    from deepera_graph.cli.opening.judges import chat_backend
    from deepera_graph.cli.opening.stores import server_key
    from deepera_graph.lab.build.builder import CALLS_AT_ONCE, build

    if not chat.model:
        raise SettingsError("a chat model is needed: give --model, e.g. openai:gpt-5-mini")
    at_once = chat.max_concurrency
    backend = chat_backend(chat)
    make = None if chosen.embeddings is None else partial(_make_embeddings, chosen.embeddings)
    try:
        with _open_workers(engine) as workers:
            return build(
                documents,
                chosen.out,
                model=backend,
                plan=plan,
                generators=split_names("--generator", chosen.generator),
                embeddings=make,
                calls_at_once=CALLS_AT_ONCE if at_once is None else at_once,
                budget=budget,
                overwrite=chosen.overwrite,
                workers=workers,
                qdrant_url=chosen.qdrant_url,
                qdrant_key=server_key(),
                on_progress=show,
            )
    except (BudgetError, KeyboardInterrupt) as error:
        say(f"{str(error) or 'interrupted'}; {_CONTINUE}: {go_on_command()}")
        code = SOME_FAILED if isinstance(error, BudgetError) else INTERRUPTED
        raise typer.Exit(code) from error
    except BackendError as error:
        raise BackendError(f"{error}; {_CONTINUE}") from error


def _make_embeddings(name: str) -> Embeddings:
    """Make the embeddings that an option names, here or in a worker."""
    from deepera_graph.cli.opening.stores import find_embeddings

    made = find_embeddings(name)
    assert made is not None  # they were named
    return made


def _open_workers(engine: options.EngineOptions) -> AbstractContextManager[Workers]:
    from deepera_graph.cli.opening.sources import count_workers
    from deepera_graph.lab.build.workers import Here, RayWorkers

    if engine.engine == "local":
        return nullcontext(Here())
    return RayWorkers(count_workers(engine), address=engine.ray_address)


@dataclass(frozen=True, slots=True)
class _Earlier:
    """What the manifest of an earlier build says."""

    path: Path
    record: Mapping[str, Any]
    plan: BuildPlan
    generators: tuple[str, ...]
    model: str
    server: str | None
    n_documents: int

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a manifest."""
        from deepera_graph.lab.build.plan import BuildPlan

        with reading_manifest(path, "a build") as record:
            return cls(
                path,
                record,
                BuildPlan.from_dict(record["plan"]),
                tuple(one["name"] for one in record["generators"]),
                record["model"]["model"],
                record["model"].get("server"),
                record["documents"]["read"],
            )

    def settle(
        self, names: Collection[str], chosen: BuildOptions, chat: options.ChatOptions
    ) -> tuple[BuildOptions, options.ChatOptions]:
        """Return the options with what the manifest says; *names* are on the command line."""
        self._check(names)
        made_of = chosen.generator if "generator" in names else ",".join(self.generators)
        server = chat.base_url or (None if chat.model else self.server)
        return (
            replace(chosen, generator=made_of, limit=self.n_documents),
            replace(chat, model=chat.model or self.model, base_url=server),
        )

    def _check(self, names: Collection[str]) -> None:
        from deepera_graph.lab.build.embeddings import LsaEmbeddings
        from deepera_graph.lab.build.writing.questions import DEFAULT

        fixed = {"limit", *(one.name for one in fields(PlanOptions))}
        settled = sorted(f"--{name.replace('_', '-')}" for name in fixed & set(names))
        if settled:
            raise SettingsError(f"--manifest settles {', '.join(settled)}: leave them out")
        elsewhere = [name for name in self.generators if name not in DEFAULT]
        if elsewhere and "generator" not in names:
            raise SettingsError(
                f"--manifest {self.path}: {elsewhere[0]!r} was made of a file of pairs; name all "
                "generators with --generator, this one as file:PATH"
            )
        embeddings = self.record.get("embeddings", {}).get("name")
        if embeddings != LsaEmbeddings.model and "embeddings" not in names:
            raise SettingsError(
                f"--manifest {self.path}: it was built with {embeddings}; name it with --embeddings"
            )

    def differences(self, manifest: Mapping[str, Any]) -> list[str]:
        """Return in what another manifest differs, by its keys; the server does not count."""
        return [name for name in _COMPARED if self.record.get(name) != manifest[name]]


def _tell_estimate(found: BuildEstimate, budget: Budget, output: options.OutputOptions) -> None:
    """Write what a build would ask of the model, and what that costs where prices are known."""
    total = found.total_usage
    calls, by_step, price = describe_estimate(found.usage, total, budget)
    plain = {
        "documents": found.n_documents,
        "questions": found.n_questions,
        "most_calls": found.most_calls,
        **calls,
    }
    words = (
        f"{count(found.n_questions, 'question')} from {count(found.n_documents, 'document')}: "
        f"{count(total.calls, 'call')} ({by_step}), at most {found.most_calls} if look-alikes are "
        f"rejected; about {total.input_tokens} prompt and {total.output_tokens} "
        f"answer tokens{price}"
    )
    tell(replace(output, quiet=False), plain, lambda: words)


def _describe_built(built: BuildResult) -> str:
    """Return a line a data set, what was dropped, and where all of it is."""
    from deepera_graph.lab.build.outputs import DROPPED

    lines = [_describe_dataset(name, one) for name, one in built.manifest["datasets"].items()]
    n_dropped = sum(sum(reasons.values()) for reasons in built.manifest["dropped"].values())
    lines.append(f"{n_dropped} documents and questions dropped, see {DROPPED}")
    lines.append(f"{count(built.n_sent, 'call')}; written to {built.folder}")
    return "\n".join(lines)


def _describe_dataset(name: str, record: Mapping[str, Any]) -> str:
    wanted, got = record["wanted"], record["questions"]
    text = f"{name}: {count(got, 'question')}" + ("" if got == wanted else f" of {wanted} wanted")
    ceiling = record["golden"]["ceiling_of_retrieval"]
    if ceiling is not None:
        text += f", golden passage retrieved for {ceiling:.1%}"
    if "distractors" in record:
        made = record["distractors"]
        text += f", {made['passed']} look-alikes passed, {made['rejected']} tries rejected"
    return text


def _find_problems(built: BuildResult, earlier: _Earlier | None) -> list[str]:
    """Return what is not as it was to be, a line each."""
    from deepera_graph.lab.build.outputs import DROPPED

    problems = [
        f"{name} has no question, see {DROPPED}"
        for name, record in built.manifest["datasets"].items()
        if not record["questions"]
    ]
    if built.n_failed:
        problems.append(
            f"{count(built.n_failed, 'call')} failed; run it again with --overwrite to retry them"
        )
    changed = [] if earlier is None else earlier.differences(built.manifest)
    if earlier is not None and changed:
        problems.append(f"not the same as in {earlier.path}: {', '.join(changed)}")
    return problems
