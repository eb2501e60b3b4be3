"""`deepera ask`: find the evidence for a question, or have a report of it written."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deepera_graph.cli.judging.candidates import Place
from deepera_graph.cli.judging.multihop import HopOptions, ask_in_steps, check_options
from deepera_graph.cli.opening.judges import judge_kind, open_reranker, settings_of
from deepera_graph.cli.opening.limits import note_limits
from deepera_graph.cli.opening.stores import find_collection_folder, keep_with
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import (
    OK,
    SOME_FAILED,
    from_thread,
    say,
    tell_cost,
    text_console,
    wrap_text,
    write_bytes,
    write_text,
)
from deepera_graph.cli.shared.declaring import arg
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.settings import Settings
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig

    from deepera_graph.evidence.report.writer import ReportWriter
    from deepera_graph.reranker import EvidenceReranker
    from deepera_graph.result import RankedPassage, RerankResult
    from deepera_graph.stores.judgements import JudgementCache

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
_REPORT_FORMS = ("text", "markdown", "html", "json")


def ask(
    question: Annotated[str, arg("QUESTION", "What is asked.")],
    source: Annotated[
        list[str] | None, arg("SOURCE", "Files or folders, instead of --library.")
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
    _check_report(search, hops, literature)
    output.check_form(search.format)
    chosen = settings_of(judge, answer=search.answer)
    if search.report:
        chosen["content"] = "passage"  # a report shows no summaries
    settings = Settings.of(chosen)
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

        writer = _open_writer(search, reranker, judge, judgements)
        found = place.find()
        if (note := note_limits(question, place.limits)) and not output.quiet:
            say(note)
        if search.dry_run or output.quiet or output.as_json or search.format != "text":
            for note in found.notes:
                say(note)
        if search.dry_run:
            _tell_estimate(reranker, place.question, found.documents, writer, output)
            raise typer.Exit(OK)
        shared = share_limits(None, reranker.settings)  # one budget for judging and writing
        n = len(found.documents)
        with progress_bar("judging", total=n or None, hidden=output.quiet) as bar:
            events = reranker.stream(place.question, found.documents, config=shared)
            result: RerankResult = found.add_to(bar.follow(events, "scored"))
        failed = _tell_failures(result)
        place.tell_shared(result)
        result = _count_apart(result) if search.per_passage else result
        _show(result, search, writer, shared, output)
    raise typer.Exit(failed or found.exit_code or place.exit_code)


def _count_apart(result: RerankResult) -> RerankResult:
    """Return a result in which every passage stands for a study of its own."""
    numbers = itertools.count(1)

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
        _show_report(writer, result, form, config, quiet=output.quiet)
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


def _check_report(
    search: places.SearchOptions, hops: HopOptions, literature: places.LiteratureOptions
) -> None:
    """Raise `SettingsError` for what does not go with a report, or a dry run."""
    wanted = {
        "report": search.report,
        "dry-run": search.dry_run,
        "per-passage": search.per_passage,
    }
    if hops.multihop and any(wanted.values()):
        name = next(one for one, is_wanted in wanted.items() if is_wanted)
        raise SettingsError(f"--{name} does not go with --multihop")
    for name in ("answer", "per_passage"):
        if search.report and getattr(search, name):
            option = name.replace("_", "-")
            raise SettingsError(f"give --report or --{option}, not both")
    if search.report and search.format not in _REPORT_FORMS:
        known = ", ".join(_REPORT_FORMS)
        raise SettingsError(f"--report has the forms {known}, got --format {search.format}")
    if search.dry_run and literature.sources is not None:
        raise SettingsError("--dry-run does not go with --source: services would be asked")


def _open_writer(
    search: places.SearchOptions,
    reranker: EvidenceReranker,
    judge: options.JudgeOptions,
    cache: JudgementCache | None,
) -> ReportWriter | None:
    """Return who writes, if a report is wanted: the chat model that judges, or nobody."""
    if not search.report:
        return None
    from deepera_graph.evidence.report.writer import ReportWriter

    model = reranker.backend if judge_kind(judge) == "llm" else None
    return ReportWriter(reranker, model=model, cache=cache)


def _show_report(
    writer: ReportWriter, judged: RerankResult, form: Any, config: RunnableConfig, *, quiet: bool
) -> None:
    """Write of what was judged, with a count of what is done, and show it."""
    from deepera_graph.evidence.report.report import export_report
    from deepera_graph.evidence.report.writer import ReportRun

    with progress_bar("writing", hidden=quiet) as bar:
        for n_done, event in enumerate(from_thread(ReportRun(writer, judged, config).stream())):
            bar.move(count=n_done)
            if event["event"] == "result":
                text = export_report(event["result"], form)
    if form == "json":
        write_bytes(text.encode())
    else:
        write_text(wrap_text(text) if form == "text" else text)


def _tell_estimate(
    reranker: EvidenceReranker,
    question: str,
    candidates: list[Document],
    writer: ReportWriter | None,
    output: options.OutputOptions,
) -> None:
    """Say what judging would cost at most, and how many calls a report would take besides."""
    estimate, words, more = reranker.estimate([(question, candidates)]), "", {}
    n = estimate.n_passages
    if writer is not None and writer.most_calls(1):
        n_most = min(reranker.settings.top_n, n)
        more = {"report_calls": writer.most_calls(n_most)}
        words = (
            f"; a report on {n_most} studies at most {more['report_calls']} more, as a rule a "
            "sixth of that"
        )
    tell_cost(
        output,
        estimate,
        reranker.settings,
        lambda calls, steps, price: (
            f"{count(n, 'passage')}: judging takes at most {calls} ({steps}){price}{words}"
        ),
        passages=n,
        **more,
    )
