"""`deepera rerank`: judge the passages of every question of a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from deepera_graph.cli.judging.rerank_report import (
    describe_failures,
    describe_report,
    tell_estimate,
)
from deepera_graph.cli.opening.judges import (
    check_engine,
    open_engine,
    open_reranker,
    open_unasked,
    settings_of,
)
from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import (
    INTERRUPTED,
    MOST_TOLD,
    OK,
    SOME_FAILED,
    check_file,
    go_on_command,
    json_bytes,
    say,
    write_bytes,
)
from deepera_graph.cli.shared.declaring import arg, opt
from deepera_graph.errors import BackendError, InputError, SettingsError
from deepera_graph.settings import Settings
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.jobs.files import ResumableOutput
    from deepera_graph.jobs.report import JobReport
    from deepera_graph.schema import Backend

DAILY = {
    "rerank": (
        "out", "overwrite", "resume", "limit", "dry_run", "preset", "backend", "model", "base_url",
        "max_calls", "threshold", "top_n", "as_json", "quiet",
    ),
}  # fmt: skip
STANDARD = "-"
_OTHER_FORMS = (".gz", ".zip", ".csv", ".tsv", ".html", ".md", ".xlsx")
_file = partial(opt, panel="Files")


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Where rankings and the report go, and what becomes of files that are there."""

    out: str = opt("Rankings; - is stdout.", "--out", "-o", metavar="OUT", default=STANDARD)
    report: Path | None = _file(
        "Where the report goes.", metavar="PATH", shown="beside OUT; none for stdout"
    )
    overwrite: bool = _file("Replace OUT and its report.", default=False)
    resume: bool = _file(
        "Continue OUT where an earlier run of this command stopped.", default=False
    )
    limit: int | None = _file("Only the first N lines.", metavar="N", least=1, shown="all")
    queries: Path | None = _file(
        "With a TREC run as IN: its queries, a table or JSON lines of qid and query.",
        metavar="FILE",
    )
    corpus: Path | None = _file(
        "With a TREC run as IN: its documents, a file or folder as `deepera index` reads it.",
        metavar="PATH",
    )
    trec: Path | None = _file(
        "Also write the rankings as a TREC run, when all lines are done; needs --out.",
        metavar="RUN",
    )
    dry_run: bool = opt("Only estimate calls and tokens: no call, no key, no OUT.", default=False)


def rerank(
    source: Annotated[str, arg("IN", "Questions, a JSON object a line; - is stdin.")],
    *,
    files: FileOptions,
    judge: options.JudgingOptions,
    engine: options.EngineOptions,
    output: options.OutputOptions,
) -> None:
    """Rerank the passages of every question of a file."""
    from deepera_graph.jobs.report import JobReport

    settings = Settings.of(settings_of(judge))
    check_engine(engine)
    job = _Job(source, files, JobReport(), hidden=output.quiet)
    job.check_resume()
    job.check_source()
    try:
        if files.dry_run:
            backend = _estimate(job, judge, settings)
            tell_estimate(job.report, backend, settings, as_json=output.as_json)
        else:
            job.check_outputs()
            _run(job, judge, settings, engine=engine, output=output)
            job.write_trec()
    except InputError as error:
        say(f"{source!r}: {error}")
        raise typer.Exit(SOME_FAILED) from error
    raise typer.Exit(SOME_FAILED if _lacks_some(job.report) else OK)


def _lacks_some(report: JobReport) -> bool:
    """Tell whether a line was bad, a budget left something, or every question is degraded."""
    all_degraded = 0 < report.n_written == report.outcomes["degraded"]
    return bool(report.n_bad or report.outcomes["budget_stop"] or all_degraded)


def _run(
    job: _Job,
    judge: options.CachedJudgeOptions,
    settings: Settings,
    *,
    engine: options.EngineOptions,
    output: options.OutputOptions,
) -> None:
    from deepera_graph.jobs.files import describe_run
    from deepera_graph.jobs.rerank import rerank_lines

    report = job.report
    try:
        with open_reranker(judge, settings.to_dict()) as (reranker, judgements):
            used = open_engine(engine, reranker, judgements)
            with (
                job.open_out(describe_run(reranker)) as out,
                job.watch("reranking") as (questions, watch),
            ):
                rerank_lines(
                    reranker, questions, out, report=report, limit=job.files.limit,
                    watch=watch, engine=used,
                )  # fmt: skip
    except KeyboardInterrupt as error:
        say(f"interrupted; {job.describe_kept()}")
        job.tell_how_to_go_on()
        raise typer.Exit(INTERRUPTED) from error
    except (BackendError, OSError) as error:  # such as a full disk
        if isinstance(error, OSError):
            say(job.describe_kept())
        if report.n_written:
            job.tell_how_to_go_on()
        if isinstance(error, OSError):
            raise
        raise BackendError(f"{error}; {job.describe_kept()}") from error
    finally:
        _close(job, output)


def _estimate(job: _Job, judge: options.JudgeOptions, settings: Settings) -> Backend:
    from deepera_graph.jobs.rerank import count_calls, count_lines

    backend = open_unasked(judge)
    with job.watch("counting") as (questions, watch):
        if not backend.asks_model:
            count_lines(questions, report=job.report, limit=job.files.limit, watch=watch)
            return backend
        count_calls(
            backend,
            # all there may be
            replace(
                settings.without_early_stopping(),
                budget=None,
                threshold=0.0,
                require_evidence=False,
            ),
            questions,
            report=job.report,
            limit=job.files.limit,
            watch=watch,
        )
    return backend


@dataclass(frozen=True)
class _Job:
    """The files of a run: opened late, never overwritten by accident; ``-`` is stdin or stdout."""

    source: str
    files: FileOptions
    report: JobReport
    hidden: bool

    @property
    def to_stdout(self) -> bool:
        return self.files.out == STANDARD

    @property
    def report_path(self) -> Path | None:
        """Where the report goes: as asked, or beside a regular file of rankings, or nowhere."""
        return self.files.report or self._beside(".report.json")

    @property
    def manifest_path(self) -> Path | None:
        return self._beside(".manifest")

    def check_resume(self) -> None:
        """Raise `SettingsError` if a resume is asked for that cannot be."""
        if not self.files.resume:
            return
        if self.files.overwrite or self.files.dry_run:
            other = "--overwrite" if self.files.overwrite else "--dry-run"
            raise SettingsError(f"give --resume or {other}, not both")
        if self.source == STANDARD:
            raise SettingsError("--resume needs a file for IN; stdin cannot be read again")
        if self.manifest_path is None:
            raise SettingsError(f"--resume needs a file for --out, got {self.files.out!r}")

    def check_source(self) -> None:
        """Raise `SettingsError` unless the questions can be read."""
        source = Path(self.source)
        if (self.files.queries is None) != (self.files.corpus is None):
            raise SettingsError("--queries and --corpus go together, with a TREC run as IN")
        if self.files.queries is not None and self.source == STANDARD:
            raise SettingsError("a TREC run needs a file for IN")
        if self.source == STANDARD:
            return
        if not source.exists():
            raise SettingsError(f"no such file: {self.source!r}")
        if source.is_dir() or not os.access(source, os.R_OK):
            raise SettingsError(f"{self.source!r} is a folder or cannot be read")

    def check_outputs(self) -> None:
        """Raise `SettingsError` if a file would be lost, or cannot be written."""
        out = None if self.to_stdout else Path(self.files.out)
        if self.files.trec is not None and self.manifest_path is None:
            raise SettingsError(f"--trec needs a file for --out, got {self.files.out!r}")
        if out is not None and out.suffix.lower() in _OTHER_FORMS:
            raise SettingsError(
                "rankings are JSON lines, neither compressed nor a table: name --out as such, "
                f"e.g. {out.name.split('.')[0]}.jsonl, got {str(out)!r}"
            )
        outputs = [
            path
            for path in (out, self.report_path, self.manifest_path, self.files.trec)
            if path is not None
        ]
        for path in outputs:
            self._check_output(path)
        for one, other in combinations(outputs, 2):
            if _is_same(one, other):
                raise SettingsError(
                    f"{str(one)!r} cannot be two of rankings, report, manifest and run"
                )

    def _check_output(self, path: Path) -> None:
        if self.source != STANDARD and _is_same(path, Path(self.source)):
            raise SettingsError(f"{str(path)!r} is the input; write somewhere else")
        device = not path.is_file()  # such as /dev/null, which loses nothing
        check_file(path, overwrite=self.files.overwrite or device, resume=self.files.resume)

    @contextmanager
    def watch(self, what: str) -> Iterator[tuple[BinaryIO, Callable[[Any], None]]]:
        """Open the questions under a progress bar; the first bad lines are told as they come."""
        from deepera_graph.jobs.lines import BadLine

        limit = self.files.limit
        n_bad = 0
        with (
            self._open_source() as (source, size),
            progress_bar(what, total=limit or size, hidden=self.hidden) as bar,
        ):

            def watch(line: Any) -> None:
                nonlocal n_bad
                n_bad += isinstance(line, BadLine)
                if isinstance(line, BadLine) and n_bad <= MOST_TOLD:
                    say(f"line {line.number}: {line.error}")
                n_done = self.report.n_written + self.report.n_bad
                bar.move(to=line.end if limit is None else n_done, count=n_done)

            yield source, watch
        if n_bad > MOST_TOLD:
            say(f"and {count(n_bad - MOST_TOLD, 'more bad line')}")

    @contextmanager
    def _open_source(self) -> Iterator[tuple[BinaryIO, int | None]]:
        """Open the questions; also return their size in bytes, if it is known."""
        if self.source == STANDARD:
            yield sys.stdin.buffer, None
            return
        path, files = Path(self.source), self.files
        if files.queries is None or files.corpus is None:
            from deepera_graph.jobs.lines import open_questions

            with open_questions(path) as opened:
                yield opened
        else:
            from deepera_graph.jobs.forms import RunSource, open_run

            run = RunSource(path, queries=files.queries, corpus=files.corpus)
            with open_run(run, tell=say) as opened:
                yield opened

    @contextmanager
    def open_out(self, ran: Mapping[str, Any]) -> Iterator[ResumableOutput | BinaryIO]:
        """Open the rankings; *ran* is what `describe_run` says of this run."""
        from deepera_graph.jobs.files import ResumableOutput
        from deepera_graph.text.jsonl import naming_full_file

        out, files = Path(self.files.out), self.files
        with naming_full_file("stdout" if self.to_stdout else out):
            if self.to_stdout:
                sys.stdout.flush()
                yield sys.stdout.buffer
            elif self.manifest_path is None:
                with out.open("wb") as device:
                    yield device
            else:
                with ResumableOutput(
                    out, self.manifest_path, ran, resume=files.resume, overwrite=files.overwrite
                ) as progress:
                    yield progress

    def write_trec(self) -> None:
        """Write the rankings as a TREC run, if that was asked for."""
        if self.files.trec is not None:
            from deepera_graph.jobs.forms import write_run

            write_run(Path(self.files.out), self.files.trec)

    def describe_kept(self) -> str:
        """Say what there is of a run that broke off."""
        if not self.report.n_written:
            return "no line was finished"
        where = "stdout" if self.to_stdout else self.files.out
        return f"finished lines kept in {where}: {self.report.n_written}"

    def tell_how_to_go_on(self) -> None:
        """Say which command continues this run, if it can be continued."""
        if self.source != STANDARD and self.manifest_path is not None:
            again = go_on_command("--resume", without=["--overwrite"])
            say(f"go on with: {again}")

    def _beside(self, suffix: str) -> Path | None:
        out = Path(self.files.out)
        if self.to_stdout or (out.exists() and not out.is_file()):
            return None
        return out.with_name(out.name.removesuffix(".jsonl") + suffix)


def _is_same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.absolute() == other.absolute()


def _close(job: _Job, output: options.OutputOptions) -> None:
    """Hand out the report, if there is something to report on."""
    report = job.report
    if report.end == "running" or (report.end != "complete" and not report.n_written):
        return
    data = json_bytes(report.to_dict())
    if job.report_path is not None:
        job.report_path.write_bytes(data)
    if report.n_failed:
        say(describe_failures(report))
    if output.as_json and job.to_stdout:
        typer.echo(data.decode("utf-8", "replace"), err=True, nl=False)
    elif output.as_json:
        write_bytes(data)
    elif not output.quiet:
        tail = f"; report in {job.report_path}" if job.report_path else ""
        say(describe_report(report) + tail)
