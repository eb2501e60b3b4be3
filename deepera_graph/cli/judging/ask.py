"""`deepera ask`: find the evidence for a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deepera_graph.cli.judging.candidates import (
    SearchOptions,
    make_adaptive,
    mark_retracted,
    read_conditions,
    search_passages,
)
from deepera_graph.cli.judging.multihop import HopOptions, ask_in_steps, check_options
from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.console import (
    OK,
    SOME_FAILED,
    from_thread,
    progress_bar,
    say,
    text_console,
    write_text,
)
from deepera_graph.errors import BackendError, InputError

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig

    from deepera_graph.evidence.report.writer import ReportWriter
    from deepera_graph.reranker import EvidenceReranker
    from deepera_graph.result import RerankResult

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
        "cache", "cascade", "max_calls", "dry_run",
    ),
}  # fmt: skip


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What is asked.")],
    source: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE", help="Files or folders, instead of --library."),
    ] = None,
    *,
    literature: options.LiteratureOptions,
    store: options.StoreOptions,
    search: SearchOptions,
    keep: options.KeepOptions,
    reading: options.ReadOptions,
    judge: options.JudgeOptions,
    cache: options.CacheOptions,
    budget: options.BudgetOptions,
    kept: options.FilterOptions,
    hops: HopOptions,
    output: options.ShowOptions,
) -> None:
    """Find the evidence for a question in a library, files or the literature."""
    from deepera_graph.cli.judging.literature import (
        check_literature,
        check_one_place,
        find_scope,
        search_literature,
    )
    from deepera_graph.cli.judging.report import check_report, read_content
    from deepera_graph.cli.opening.judges import judgements_of, open_judge, open_unasked
    from deepera_graph.cli.opening.settings import settings_of
    from deepera_graph.cli.opening.sources import PassageSource
    from deepera_graph.cli.opening.stores import find_collection_folder, keep_with
    from deepera_graph.cli.shared.values import read_max_words
    from deepera_graph.settings import Settings

    check_options(hops, judge, kept, search.format, adaptive=search.adaptive, answer=search.answer)
    check_report(search, hops, literature)
    settings = Settings.of(
        settings_of(judge, kept, budget, answer=search.answer) | read_content(search)
    )
    conditions, source = read_conditions(search.where or []), source or []
    _check_question(question, source)
    check_literature(literature)
    check_one_place(question, source, store, literature)
    scope = find_scope(literature, conditions, adaptive=search.adaptive, multihop=hops.multihop)
    read = PassageSource(*source, reading=reading, verbose=output.verbose) if source else None
    if hops.multihop:
        raise typer.Exit(
            ask_in_steps(
                question,
                read,
                place=store,
                conditions=conditions,
                hops=hops,
                judge=judge,
                cache=cache,
                budget=budget,
                k=kept.top_n,
                make_adaptive=partial(
                    make_adaptive, place=store, search=search, conditions=conditions
                )
                if search.adaptive
                else None,
                as_json=output.as_json or search.format == "json",
                quiet=output.quiet,
            )
        )
    backend = (
        open_unasked(judge)
        if search.dry_run
        else open_judge(judge, keep_with(find_collection_folder(store), keep))
    )
    from deepera_graph.agents.run import share_limits  # takes a second, so after all checks
    from deepera_graph.cli.judging.report import open_writer, tell_estimate
    from deepera_graph.reranker import EvidenceReranker

    with judgements_of(backend, "off" if search.dry_run else cache.cache) as judgements:
        reranker = EvidenceReranker(backend, cache=judgements, **settings.to_dict())
        writer = open_writer(search, reranker, judge, judgements)
        found = None
        if scope is not None:
            found = search_literature(
                literature,
                question,
                k=search.retrieve,
                scope=scope,
                cache=cache.cache,
                quiet=output.quiet,
            )
            candidates = found.to_documents(max_words=read_max_words(reading.max_words))
        else:
            candidates = search_passages(
                question, read, store, search, conditions, quiet=output.quiet
            )
            _tell_if_none(candidates, conditions)
        if search.dry_run:
            tell_estimate(reranker, question, candidates, writer, output)
            raise typer.Exit(OK)
        candidates = mark_retracted(candidates, search.retractions)
        shared = share_limits(None, reranker.settings)  # one budget for judging and writing
        result = _rerank(reranker, question, candidates, shared, quiet=output.quiet)
        result = result if found is None else found.added_to(result)
        failed = _tell_failures(result)
        _show(result, search, writer, shared, output)
    if found is not None and found.incomplete:
        failed = failed or SOME_FAILED
    raise typer.Exit(failed or (OK if read is None else read.exit_code))


def _check_question(question: str, sources: Sequence[str]) -> None:
    """Raise `InputError` for a question that is none."""
    from deepera_graph.passages import check_length

    if not question.strip():
        raise InputError("the question is empty")
    check_length(question)
    if sources and Path(question).is_file() and not any(Path(one).exists() for one in sources):
        raise InputError(f"the QUESTION comes first, then the SOURCE: {question!r} is a file")


def _show(
    result: RerankResult,
    search: SearchOptions,
    writer: ReportWriter | None,
    config: RunnableConfig,
    output: options.ShowOptions,
) -> None:
    """Show what was found, or a report on it."""
    from deepera_graph.cli.judging.evidence import show_result
    from deepera_graph.cli.judging.report import show_report
    from deepera_graph.export.tables import export_result

    form = "json" if output.as_json else search.format
    if writer is not None:
        show_report(writer, result, form, config, quiet=output.quiet)
    elif form == "text":
        show_result(text_console(), result, verbose=output.verbose, quiet=output.quiet)
    else:
        studies = _find_studies(result) if form == "html" else ""
        write_text(export_result(result, form, whole=output.verbose, studies=studies))


def _find_studies(result: RerankResult) -> str:
    """Return map and table of the studies, as the page shows them."""
    from deepera_graph.evidence.table.writing import result_studies

    return result_studies(result)


def _tell_failures(result: RerankResult) -> int:
    """Say on stderr what could not be judged, if anything; return the exit code."""
    from deepera_graph.result import describe_failures

    if result.backend_failure is not None:
        raise BackendError(result.backend_failure)
    if failures := describe_failures(result):
        say(failures)
    nothing_judged = len(result.failed) == len(result.all_passages) > 0
    return SOME_FAILED if nothing_judged or result.outcome in ("degraded", "budget_stop") else OK


def _tell_if_none(found: Sequence[Document], conditions: Mapping[str, Any]) -> None:
    """Say why nothing was found; with conditions that was said before."""
    if not found and not conditions:
        say("no passage shares a word with the question")


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
