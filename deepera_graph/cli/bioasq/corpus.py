"""`deepera bioasq read` and `deepera bioasq index`: from PubMed's files to a collection."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deepera_graph.cli import options
from deepera_graph.cli.console import (
    MOST_TOLD,
    OK,
    SOME_FAILED,
    count,
    json_bytes,
    progress_bar,
    say,
    tell,
)
from deepera_graph.cli.options import opt
from deepera_graph.errors import SettingsError

if TYPE_CHECKING:
    from deepera_graph.bioasq.corpus import CorpusReport, Progress


@dataclass(frozen=True, kw_only=True)
class CorpusFileOptions:
    """Where the corpus goes."""

    out: Path = opt(
        "Where the corpus goes, as JSON lines; compressed if it ends in .gz.",
        "--out",
        "-o",
        metavar="OUT",
        needed=True,
    )
    report: Path | None = opt(
        "Write what became of all records, by cause, as JSON.", metavar="FILE"
    )
    resume: bool = opt("Add files to a corpus that was read before.", default=False)
    overwrite: bool = opt("Replace OUT, and forget what was read.", default=False)


@dataclass(frozen=True, kw_only=True)
class CorpusOutputOptions(options.OutputOptions):
    """What is told."""

    verbose: bool = opt(
        "Name every broken record, the first 1000 of each file.", "--verbose", "-v", default=False
    )


def read(
    pubmed: Annotated[
        list[Path],
        typer.Argument(metavar="PUBMED...", help="Files .xml or .xml.gz, or folders of them."),
    ],
    *,
    files: CorpusFileOptions,
    output: CorpusOutputOptions,
) -> None:
    """Read PubMed's files, and write the records that are left as a corpus."""
    if files.resume and files.overwrite:
        raise SettingsError("give --resume or --overwrite, not both")
    from deepera_graph.bioasq.corpus import write_corpus

    with progress_bar("reading", hidden=output.quiet) as bar:

        def watch(step: Progress) -> None:
            bar.move(to=step.n_bytes, total=step.n_bytes_in_all, count=step.n_records)

        report = write_corpus(
            pubmed,
            files.out,
            resume=files.resume,
            overwrite=files.overwrite,
            on_progress=watch,
        )
    if files.report is not None:
        files.report.write_bytes(json_bytes(report.to_dict()))
    _tell_problems(report, verbose=output.verbose)
    tell(output, report.to_dict(), lambda: _describe(report, files.out))
    raise typer.Exit(SOME_FAILED if report.problems else OK)


def _tell_problems(report: CorpusReport, *, verbose: bool) -> None:
    """Say on stderr what is wrong with files, and with the first records."""
    records = [one for one in report.problems if one.number is not None]
    told = records if verbose else records[:MOST_TOLD]
    for one in [*(one for one in report.problems if one.number is None), *told]:
        say(str(one))
    n_more = sum(report.broken.values()) - len(told)
    if n_more > 0:
        say(f"{count(n_more, 'more broken record')}; -v or --report names them")


def _describe(report: CorpusReport, out: Path) -> str:
    before = f", {report.files_before} of them before" if report.files_before else ""
    left_out = {
        "without abstract": report.without_abstract,
        "books": report.books,
        "deleted": report.deleted,
        "replaced by later ones": report.replaced,
        **{f"broken ({fault})": n for fault, n in report.broken.items()},
    }
    lines = [
        f"{count(report.kept, 'record')} in {out} ({report.retracted} of them retracted), "
        f"from {count(report.files, 'file')}{before}",
        *(f"  {n:>9} {what}" for what, n in left_out.items() if n),
    ]
    return "\n".join(lines)
