"""`deepera ask --report` and `--dry-run`: several paragraphs, and what they would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepera_graph.cli.opening.judges import judge_kind
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.console import (
    from_thread,
    progress_bar,
    tell_cost,
    wrap_text,
    write_bytes,
    write_text,
)
from deepera_graph.errors import SettingsError
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig

    from deepera_graph.cli.judging.multihop import HopOptions
    from deepera_graph.evidence.report.writer import ReportWriter
    from deepera_graph.reranker import EvidenceReranker
    from deepera_graph.result import RerankResult
    from deepera_graph.stores.judgements import JudgementCache

FORMS = ("text", "markdown", "html", "json")


def check_report(
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
    if search.report and search.format not in FORMS:
        known = ", ".join(FORMS)
        raise SettingsError(f"--report has the forms {known}, got --format {search.format}")
    if search.dry_run and literature.sources is not None:
        raise SettingsError("--dry-run does not go with --source: services would be asked")


def read_content(search: places.SearchOptions) -> dict[str, str]:
    """Return the setting that saves the summaries, of which a report shows none."""
    return {"content": "passage"} if search.report else {}


def open_writer(
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


def show_report(
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


def tell_estimate(
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
