"""`deepera ask`: find the evidence for a question."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Annotated

import typer

from deepera_graph.cli.judging.candidates import Place
from deepera_graph.cli.judging.multihop import HopOptions, ask_in_steps, check_options
from deepera_graph.cli.judging.report import (
    check_report,
    open_writer,
    read_content,
    show_report,
    tell_estimate,
)
from deepera_graph.cli.opening.judges import open_reranker, settings_of
from deepera_graph.cli.opening.limits import note_limits
from deepera_graph.cli.opening.stores import find_collection_folder, keep_with
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.console import (
    OK,
    SOME_FAILED,
    from_thread,
    progress_bar,
    say,
    text_console,
    write_text,
)
from deepera_graph.errors import BackendError
from deepera_graph.settings import Settings

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig

    from deepera_graph.evidence.report.writer import ReportWriter
    from deepera_graph.reranker import EvidenceReranker
    from deepera_graph.result import RankedPassage, RerankResult

DAILY = {
    "ask": (
        "sources", "library", "retrieve", "adaptive", "multihop", "where", "answer", "report",
        "preset", "backend", "model", "base_url", "threshold", "top_n", "format", "verbose",
        "as_json", "quiet",
    ),
}  # fmt: skip
FLAGS = {  # all other options are keys of deepera.toml
    "ask": (
        *DAILY["ask"], "path", "qdrant_url", "embeddings", "retractions", "judge", "call_timeout",
        "cache", "max_calls", "per_passage", "dry_run",
    ),
}  # fmt: skip


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What is asked.")],
    source: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE", help="Files or folders, instead of --library."),
    ] = None,
    *,
    literature: places.LiteratureOptions,
    store: places.StoreOptions,
    search: places.SearchOptions,
    keep: places.KeepOptions,
    reading: places.ReadOptions,
    judge: options.JudgingOptions,
    hops: HopOptions,
    output: options.ShowOptions,
) -> None:
    """Find the evidence for a question in a library, files or the literature."""
    check_options(hops, judge, search)
    check_report(search, hops, literature)
    settings = Settings.of(settings_of(judge, answer=search.answer) | read_content(search))
    place = Place(
        question,
        source or [],
        store=store,
        literature=literature,
        reading=reading,
        search=search,
        cache=judge,
        output=output,
        multihop=hops.multihop,
    )
    if hops.multihop:
        code = ask_in_steps(
            question,
            place,
            hops=hops,
            judge=judge,
            as_json=output.as_json or search.format == "json",
        )
        raise typer.Exit(code)
    keeping = keep_with(find_collection_folder(store), keep)
    with open_reranker(judge, settings.to_dict(), keep=keeping, dry_run=search.dry_run) as (
        reranker,
        judgements,
    ):
        from deepera_graph.agents.run import share_limits

        writer = open_writer(search, reranker, judge, judgements)
        found = place.find()
        if (note := note_limits(question, place.limits)) and not output.quiet:
            say(note)
        if search.dry_run or output.quiet or output.as_json or search.format != "text":
            for note in found.notes:
                say(note)
        if search.dry_run:
            tell_estimate(reranker, place.question, found.documents, writer, output)
            raise typer.Exit(OK)
        shared = share_limits(None, reranker.settings)  # one budget for judging and writing
        result = found.add_to(
            _rerank(reranker, place.question, found.documents, shared, quiet=output.quiet)
        )
        failed = _tell_failures(result)
        result = _count_apart(result) if search.per_passage else result
        _show(result, search, writer, shared, output)
    raise typer.Exit(failed or found.exit_code or place.exit_code)


def _count_apart(result: RerankResult) -> RerankResult:
    """Return a result in which every passage stands for a study of its own."""
    numbers = count(1)

    def apart(passages: tuple[RankedPassage, ...]) -> tuple[RankedPassage, ...]:
        return tuple(replace(one, study=next(numbers)) for one in passages)

    return replace(result, passages=apart(result.passages), left_out=apart(result.left_out))


def _show(
    result: RerankResult,
    search: places.SearchOptions,
    writer: ReportWriter | None,
    config: RunnableConfig,
    output: options.ShowOptions,
) -> None:
    """Show what was found, or a report on it."""
    from deepera_graph.cli.judging.evidence import show_result
    from deepera_graph.evidence.table.writing import result_studies
    from deepera_graph.export import export_result

    form = "json" if output.as_json else search.format
    if writer is not None:
        show_report(writer, result, form, config, quiet=output.quiet)
    elif form == "text":
        show_result(text_console(), result, verbose=output.verbose, quiet=output.quiet)
    else:
        studies = result_studies(result) if form == "html" else ""
        write_text(export_result(result, form, whole=output.verbose, studies=studies))


def _tell_failures(result: RerankResult) -> int:
    """Say on stderr what could not be judged, if anything; return the exit code."""
    from deepera_graph.pipeline.shown import describe_failures

    if result.backend_failure is not None:
        raise BackendError(result.backend_failure)
    if failures := describe_failures(result):
        say(failures)
    nothing_judged = len(result.failed) == len(result.all_passages) > 0
    return SOME_FAILED if nothing_judged or result.outcome in ("degraded", "budget_stop") else OK


def _rerank(
    reranker: EvidenceReranker,
    question: str,
    candidates: list[Document],
    config: RunnableConfig,
    *,
    quiet: bool,
) -> RerankResult:
    """Rerank with a bar that moves with every passage that is judged."""
    n_judged = 0
    with progress_bar("judging", total=len(candidates) or None, hidden=quiet) as bar:
        for event in from_thread(reranker.stream(question, candidates, config=config)):
            if event["event"] == "scored":
                n_judged += 1
                bar.move(to=n_judged, count=n_judged)
            if event["event"] == "result":
                result: RerankResult = event["result"]
    return result
