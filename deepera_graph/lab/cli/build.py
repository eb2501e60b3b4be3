"""`deepera-lab bench build`: a benchmark from documents, written by a chat model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deepera_graph.cli.opening.judges import chat_backend, check_engine, count_workers, search_here
from deepera_graph.cli.opening.stores import find_embeddings, server_key
from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.console import needing, say
from deepera_graph.cli.shared.declaring import arg, given, opt, opt_of, split_names
from deepera_graph.errors import SettingsError
from deepera_graph.lab.cli.running import NO_MODEL, Earlier, construct, tell_built, tell_estimate
from deepera_graph.lab.settings import BuildPlan, Golden
from deepera_graph.packages import check_extra
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from deepera_graph.jobs.cluster import Workers
    from deepera_graph.lab.asking import ConstructionEstimate
    from deepera_graph.lab.construction import Built

_COMPARED = ("package", "embeddings", "prompts", "generators", "documents", "files")
_make = partial(opt, panel="What is made")
_of_plan = partial(opt_of, BuildPlan, panel="What is made", config=None)
_corpus = partial(opt, panel="Corpus")


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What is made; an earlier manifest settles all of it."""

    questions: int | None = _of_plan("n_questions")
    settings: str | None = _of_plan("settings", many=str)
    contexts: int | None = _of_plan("n_contexts")
    distractors: int | None = _of_plan("n_distractors")
    attempts: int | None = _of_plan("attempts")
    verify: bool = _of_plan("verify", default=True)
    golden: Golden | None = _of_plan("golden")
    per_document: int | None = _of_plan("per_document")
    seed: int | None = _of_plan("seed")
    max_chunk: int | None = _of_plan("max_tokens", panel="Corpus")
    min_similarity: float | None = _of_plan("min_similarity", panel="Corpus")
    min_group: int | None = _of_plan("min_group", panel="Corpus")


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
    documents: Annotated[Path, arg("DOCUMENTS", "A file or a folder.")],
    *,
    chosen: BuildOptions,
    plan: PlanOptions,
    chat: options.PaidChatOptions,
    engine: options.EngineOptions,
    output: options.OutputOptions,
) -> None:
    """Build a benchmark from documents: questions, pools and look-alikes, by a chat model."""
    with needing("bench build", "bench"):
        from deepera_graph.lab.build.builder import build as build_datasets
        from deepera_graph.lab.build.builder import estimate_build
        from deepera_graph.lab.build.corpus import read_corpus
        from deepera_graph.lab.construction import check_folder
        from deepera_graph.lab.data.documents import read_documents

    check_engine(engine)
    earlier = None
    if chosen.manifest is not None:
        earlier = Earlier.read(chosen.manifest, "a build", _read_settled)
        chosen, chat = _settle(earlier, _given_names(context), chosen, chat)
    names = split_names("--generator", chosen.generator)
    checked = BuildPlan(**given(plan)) if earlier is None else earlier.settled["plan"]
    _fetch(documents, chosen, checked.seed)
    documents_read = islice(read_documents(documents), chosen.limit)
    if chosen.dry_run:
        corpus = read_corpus(documents_read, checked.max_tokens, [])
        tell_estimate(estimate_build(corpus, checked, names), chat, output, _describe_estimate)
        return
    check_folder(chosen.out, overwrite=chosen.overwrite)
    search_here()
    if not chat.model:
        raise SettingsError(NO_MODEL)
    backend = chat_backend(chat)
    make = None if chosen.embeddings is None else partial(_make_embeddings, chosen.embeddings)
    with _open_workers(engine) as workers:
        work = partial(
            build_datasets,
            documents_read,
            chosen.out,
            model=backend,
            plan=checked,
            generators=names,
            embeddings=make,
            workers=workers,
            qdrant_url=chosen.qdrant_url,
            qdrant_key=server_key(),
        )
        built = construct(work, chat=chat, overwrite=chosen.overwrite, output=output)
    tell_built(built, output, _describe_built, _find_problems(built, earlier))


def _fetch(documents: Path, chosen: BuildOptions, seed: int) -> None:
    """Write works of each subject where the documents are to be, unless they are there."""
    if chosen.by_subject is None:
        if chosen.subjects is not None:
            raise SettingsError("--subjects goes with --by-subject")
        return
    from deepera_graph.calibration.instance import write_rows
    from deepera_graph.lab.data.documents import find_by_subject, pick_subjects

    names = split_names("--subjects", chosen.subjects) if chosen.subjects else ()
    subjects = pick_subjects(names)
    check_extra("httpx", extra="sources", what="--by-subject")
    if documents.exists():
        say(f"{documents} exists: nothing is fetched")
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


def _make_embeddings(name: str) -> Embeddings:
    """Make the embeddings that an option names, here or in a worker."""
    made = find_embeddings(name)
    assert made is not None  # they were named
    return made


def _open_workers(engine: options.EngineOptions) -> AbstractContextManager[Workers]:
    from deepera_graph.jobs.cluster import Here, RayWorkers

    if engine.engine == "local":
        return nullcontext(Here())
    return RayWorkers(count_workers(engine), address=engine.ray_address)


def _read_settled(record: Any) -> dict[str, Any]:
    return {
        "plan": BuildPlan.of(record["plan"]),
        "generators": tuple(one["name"] for one in record["generators"]),
        "model": record["model"]["model"],
        "server": record["model"].get("server"),
        "n_documents": record["documents"]["read"],
    }


def _settle(
    earlier: Earlier, names: Collection[str], chosen: BuildOptions, chat: options.PaidChatOptions
) -> tuple[BuildOptions, options.PaidChatOptions]:
    """Return the options with what a manifest says; *names* are on the command line."""
    from deepera_graph.lab.build.search import LsaEmbeddings
    from deepera_graph.lab.build.writing.questions import DEFAULT

    earlier.refuse(sorted({"limit", *(one.name for one in fields(PlanOptions))} & set(names)))
    before = earlier.settled
    elsewhere = [name for name in before["generators"] if name not in DEFAULT]
    if elsewhere and "generator" not in names:
        raise SettingsError(
            f"--manifest {earlier.path}: {elsewhere[0]!r} was made of a file of pairs; name all "
            "generators with --generator, this one as file:PATH"
        )
    embeddings = earlier.record.get("embeddings", {}).get("name")
    if embeddings != LsaEmbeddings.model and "embeddings" not in names:
        raise SettingsError(
            f"--manifest {earlier.path}: it was built with {embeddings}; name it with --embeddings"
        )
    made_of = chosen.generator if "generator" in names else ",".join(before["generators"])
    server = chat.base_url or (None if chat.model else before["server"])
    return (
        replace(chosen, generator=made_of, limit=before["n_documents"]),
        replace(chat, model=chat.model or before["model"], base_url=server),
    )


def _describe_estimate(found: ConstructionEstimate, by_step: str, price: str) -> str:
    total, counts = found.total_usage, found.counts
    return (
        f"{count(counts['questions'], 'question')} from {count(counts['documents'], 'document')}: "
        f"{count(total.calls, 'call')} ({by_step}), at most {counts['most_calls']} if look-alikes "
        f"are rejected; about {total.input_tokens} prompt and {total.output_tokens} "
        f"answer tokens{price}"
    )


def _describe_built(built: Built) -> str:
    from deepera_graph.lab.build.datasets import DROPPED

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


def _find_problems(built: Built, earlier: Earlier | None) -> list[str]:
    """Return what is not as it was to be, a line each."""
    from deepera_graph.lab.build.datasets import DROPPED

    problems = [
        f"{name} has no question, see {DROPPED}"
        for name, record in built.manifest["datasets"].items()
        if not record["questions"]
    ]
    if built.n_failed:
        problems.append(
            f"{count(built.n_failed, 'call')} failed; run it again with --overwrite to retry them"
        )
    return (
        problems
        if earlier is None
        else [*problems, *earlier.differences(built.manifest, _COMPARED)]
    )
