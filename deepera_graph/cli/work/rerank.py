"""What `deepera rerank` does."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO

import typer

from deepera_graph.cli.exits import INTERRUPTED, OK, SOME_FAILED, say
from deepera_graph.cli.work.backend import Judge
from deepera_graph.cli.work.engine import EngineChoice
from deepera_graph.cli.work.files import Files
from deepera_graph.cli.work.judgements import judgements_of
from deepera_graph.cli.work.terminal import json_bytes, progress_bar, write_bytes
from deepera_graph.cli.work.threshold import with_threshold
from deepera_graph.errors import BackendError
from deepera_graph.jobs.files import identity_of
from deepera_graph.jobs.lines import BadLine, DoneLine, QuestionLine
from deepera_graph.jobs.ray import Engine
from deepera_graph.jobs.report import JobReport
from deepera_graph.jobs.rerank import (
    Judged,
    JudgingWork,
    Line,
    Watch,
    count_calls,
    count_lines,
    rerank_lines,
)
from deepera_graph.judges.llm.roles import CHARS_PER_TOKEN, REPLY_TOKENS
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.settings import Settings

__all__ = ["EngineChoice", "Files", "Judge", "run", "with_threshold"]
_FREE = ("local", "encoder")


def run(
    files: Files,
    judge: Judge,
    settings: dict[str, Any],
    *,
    cache: str | None,
    engine: EngineChoice,
    limit: int | None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Rerank a file, or say what that would cost.

    Raises:
        SettingsError: An option is out of range, or a file cannot be used.
        StoreError: The cache that was asked for cannot be used.
        BackendError: The backend is unreachable; finished lines are written.
    """
    checked = Settings.of(settings)
    engine.check()
    files.check_resume(dry_run=dry_run)
    files.check_source()
    if dry_run:
        report = _count(files, judge, checked, limit=limit, quiet=quiet)
        _tell_cost(report, judge.kind, as_json=as_json, all_asked=checked.enough is None)
    else:
        files.check_outputs()
        backend, report = judge.build(), JobReport()
        try:
            with judgements_of(backend, cache) as judgements:
                reranker = EvidenceReranker(backend, cache=judgements, **checked.to_dict())
                work = None if engine.is_local else JudgingWork.of(reranker, judgements)
                used = None if work is None else engine.engine(work)
                _rerank(reranker, files, report, used, limit=limit, quiet=quiet)
        except KeyboardInterrupt as error:
            say(f"interrupted; {_written(files, report)}")
            raise typer.Exit(INTERRUPTED) from error
        except BackendError as error:
            raise BackendError(f"{error}; {_written(files, report)}") from error
        finally:
            _close(files, report, as_json=as_json, quiet=quiet)
    if not report.n_written and not report.n_bad:
        say(f"{files.source!r} holds no line")
    raise typer.Exit(SOME_FAILED if report.n_bad else OK)


def _rerank(
    reranker: EvidenceReranker,
    files: Files,
    report: JobReport,
    engine: Engine[QuestionLine, Judged] | None,
    *,
    limit: int | None,
    quiet: bool,
) -> None:
    with (
        files.open_out(identity_of(reranker)) as out,
        _watched(files, "reranking", report, hidden=quiet) as (source, watch),
    ):
        rerank_lines(reranker, source, out, report=report, limit=limit, watch=watch, engine=engine)


def _count(
    files: Files, judge: Judge, settings: Settings, *, limit: int | None, quiet: bool
) -> JobReport:
    report = JobReport()
    with _watched(files, "counting", report, hidden=quiet) as (source, watch):
        if judge.kind in _FREE:
            count_lines(source, report=report, limit=limit, watch=watch)
        else:
            count_calls(
                _freed(settings),
                source,
                report=report,
                domain=judge.domain,
                calls=judge.calls,
                cascade=judge.cascade,
                limit=limit,
                watch=watch,
            )
    return report


def _freed(settings: Settings) -> Settings:
    """Take the limits off, so that all there may be is counted."""
    return replace(settings.asking_all(), budget=None, threshold=0.0)


@contextmanager
def _watched(
    files: Files, what: str, report: JobReport, *, hidden: bool
) -> Iterator[tuple[BinaryIO, Watch]]:
    """Open the questions under a progress bar; bad lines are told as they come."""
    with (
        files.open_source() as (source, size),
        progress_bar(what, total=size, hidden=hidden) as bar,
    ):

        def watch(line: Line | DoneLine) -> None:
            if isinstance(line, BadLine):
                say(f"line {line.number}: {line.error}")
            bar.move(to=line.end, count=report.n_written)

        yield source, watch


def _written(files: Files, report: JobReport) -> str:
    if not report.n_written:
        return "no line was finished"
    where = "stdout" if files.to_stdout else files.out
    return f"finished lines kept in {where}: {report.n_written}"


def _close(files: Files, report: JobReport, *, as_json: bool, quiet: bool) -> None:
    """Hand out the report, if there is something to report on."""
    if report.end == "running" or (report.end != "complete" and not report.n_written):
        return
    data = json_bytes(report.to_dict())
    if files.report_path is not None:
        files.report_path.write_bytes(data)
    if as_json and files.to_stdout:
        typer.echo(data.decode("utf-8", "replace"), err=True, nl=False)
    elif as_json:
        write_bytes(data)
    elif not quiet:
        say(closing_words(files, report))


def closing_words(files: Files, report: JobReport) -> str:
    """Return the report in a line."""
    words = [
        f"{report.n_written} lines written{_earlier(report)}, {report.n_bad} bad",
        f"{report.n_passages} passages, {report.n_kept} kept, {report.n_failed} failed"
        f"{_not_needed(report)}",
        _questions(report),
        _calls(report),
        f"{report.to_dict()['seconds']['wall']:.1f} s",
    ]
    tail = f"; report in {files.report_path}" if files.report_path else ""
    return "; ".join(words) + tail


def _earlier(report: JobReport) -> str:
    return f" ({report.n_earlier} of them earlier)" if report.n_earlier else ""


def _not_needed(report: JobReport) -> str:
    n = report.statuses["not_needed"]
    return f", {n} not needed" if n else ""


def _questions(report: JobReport) -> str:
    if not report.n_written:
        return "no question done"
    n_others = report.n_written - report.outcomes["ok"]
    return f"{n_others} questions not ok ({_counts(report)})" if n_others else "all questions ok"


def _calls(report: JobReport) -> str:
    used = report.total_usage
    beside = {
        "of them from the cache": used.cached_calls,
        "more failed": used.failed_calls,
    }
    return ", ".join([f"{used.calls} calls", *(f"{n} {what}" for what, n in beside.items() if n)])


def _counts(report: JobReport) -> str:
    others = {name: n for name, n in sorted(report.outcomes.items()) if name != "ok"}
    return ", ".join(f"{n} {name}" for name, n in others.items())


def _tell_cost(report: JobReport, kind: str, *, as_json: bool, all_asked: bool) -> None:
    """Write the estimate to stdout."""
    total = report.total_usage
    estimate = (
        f"at most so many: a prompt token is taken for {CHARS_PER_TOKEN} characters, a verdict "
        f"or a summary in a reply for {REPLY_TOKENS} tokens, and all that may be kept for kept"
    )
    if not all_asked:
        estimate += "; with --enough fewer passages may be asked about"
    if kind in _FREE:
        estimate = f"the {kind} backend makes no calls"
    if as_json:
        plain = report.to_dict()
        keys = ("lines", "usage", "errors")
        write_bytes(json_bytes({"estimate": estimate, **{key: plain[key] for key in keys}}))
        return
    typer.echo(f"{report.n_written} questions, {report.n_passages} passages")
    for stage, used in report.usage.items():
        typer.echo(
            f"{stage:>10}: {used.calls} calls, about {used.input_tokens} tokens in and "
            f"{used.output_tokens} out"
        )
    typer.echo(
        f"{'total':>10}: {total.calls} calls, about {total.input_tokens} tokens in and "
        f"{total.output_tokens} out"
    )
    typer.echo(f"An estimate: {estimate}.")
