"""`deepera check`: whether what a manuscript cites says what it is cited for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.cli.opening.judges import open_reranker, settings_of
from deepera_graph.cli.opening.sources import PassageSource, check_literature, open_literature
from deepera_graph.cli.opening.stores import (
    find_collection_folder,
    keep_with,
    open_collection,
    open_journal,
)
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import (
    OK,
    SOME_FAILED,
    check_file,
    from_thread,
    say,
    tell_cost,
    write_bytes,
    write_text,
)
from deepera_graph.cli.shared.declaring import arg, opt
from deepera_graph.cli.shared.values import form_of
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from deepera_graph.evidence.check.graph import ManuscriptCheck
    from deepera_graph.evidence.check.library import WorkLibrary
    from deepera_graph.evidence.check.report import CheckReport

DAILY = {
    "check": (
        "sources", "library", "bib", "retractions", "out", "resume", "overwrite", "format",
        "dry_run", "backend", "model", "base_url", "as_json", "quiet",
    ),
}  # fmt: skip
_OF_SUFFIX = {
    ".txt": "text", ".md": "markdown", ".html": "html", ".htm": "html", ".csv": "csv",
    ".json": "json",
}  # fmt: skip
_JOURNAL = ".check.jsonl"
_check = partial(opt, panel="What is checked")


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """What is checked, and where the report goes."""

    bib: Path | None = _check(
        "File of references (BibTeX, RIS, CSL-JSON, nbib), in place of the one that the manuscript "
        "names or prints. Abstracts in it are read where the library has none.",
        brief="File of references: BibTeX, RIS, CSL-JSON.",
        metavar="FILE",
    )
    retractions: Path | None = _check(
        "CSV of notices, with the columns of Retraction Watch; works that it names are marked.",
        brief="CSV of retracted papers, as of Retraction Watch.",
        metavar="FILE",
    )
    out: Path | None = opt(
        "File of the report, whose suffix says the form: .md, .html, .csv, .json, or else text. "
        f"Verdicts are saved in FILE{_JOURNAL}, for --resume.",
        "--out",
        "-o",
        brief="File of the report: .html, .md, .csv, .json or .txt.",
        metavar="FILE",
        shown="stdout",
    )
    resume: bool = opt(
        "With --out: go on with a check that was cut short; existing verdicts are kept.",
        brief="Go on with a check that was cut short.",
        default=False,
    )
    overwrite: bool = opt("Replace the report.", default=False)
    format: Literal["text", "markdown", "html", "csv", "json"] | None = opt(
        "Form of the report.",
        metavar="FORM",
        shown="by the suffix of --out, else text",
    )
    dry_run: bool = opt(
        "Say what is cited, what of it can be read, and what judging would cost at most; nothing "
        "is judged, and no service is asked.",
        brief="Only say what would be judged, and the cost.",
        default=False,
    )


def check(
    manuscript: Annotated[str, arg("MANUSCRIPT", "A .docx, .tex, .md or .pdf file, or a .csv.")],
    source: Annotated[list[str] | None, arg("SOURCE", "Files or folders of what is cited.")] = None,
    *,
    chosen: CheckOptions,
    literature: places.LiteratureOptions,
    store: places.StoreOptions,
    keep: places.KeepOptions,
    reading: places.ReadOptions,
    judge: options.PaidJudgeOptions,
    output: options.OutputOptions,
) -> None:
    """Check whether what a manuscript cites says what it is cited for."""
    _check_options(chosen, source or [], store, output)
    check_literature(literature)
    if chosen.bib is None and (listed := _find_references(manuscript, source or [])):
        chosen = replace(chosen, bib=listed)
        if not output.quiet:
            say(f"the references are those of {listed}, as with --bib {listed}")
    settings = settings_of(judge, content="passage")
    keeping = keep_with(find_collection_folder(store), keep)
    with ExitStack() as open_:
        reranker, _ = open_.enter_context(
            open_reranker(judge, settings, keep=keeping, dry_run=chosen.dry_run)
        )
        from deepera_graph.evidence.check.graph import ManuscriptCheck

        library = open_.enter_context(_open_library(source or [], store, reading, chosen, output))
        services = None
        if literature.sources is not None and not chosen.dry_run:
            services = open_.enter_context(open_literature(literature, judge.cache))
        journal = None
        if chosen.out is not None and not chosen.dry_run:
            ran = {"command": "check", "judge": reranker.backend.name}
            kept = open_journal(chosen.out, _JOURNAL, ran, resume=chosen.resume)
            journal = open_.enter_context(kept)
        checker = ManuscriptCheck(
            reranker,
            library=library,
            literature=services,
            journal=journal,
            pdf_reader=reading.pdf_reader,
        )
        if chosen.dry_run:
            _tell_estimate(checker, manuscript, chosen, library, output)
            raise typer.Exit(OK)
        report = _follow(checker, manuscript, chosen, output)
    _write(report, chosen, output)
    if any(one.verdict == "not_judged" for one in report.pairs):
        say(f"{count(report.counts['not_judged'], 'pair')} could not be judged")
    raise typer.Exit(SOME_FAILED if report.has_errors else OK)


def _find_references(manuscript: str, sources: list[str]) -> Path | None:
    """Return the first source that lists references which the manuscript cites, and lacks."""
    from deepera_graph.evidence.check.manuscript import read_manuscript
    from deepera_graph.evidence.check.references import BIBLIOGRAPHIES, read_bibliography
    from deepera_graph.text.jsonl import suffix_of

    paths = [Path(one) for one in sources]
    listed = [one for one in paths if suffix_of(one) in BIBLIOGRAPHIES and one.is_file()]
    if listed:
        try:
            found = read_manuscript(manuscript)
        except InputError:
            read_manuscript(manuscript, bibliography=listed[0])  # or it has another fault
            return listed[0]
        known = {one.key for one in found.references}
        lacking = {key for one in found.claims for key in one.keys} - known
        for one in listed:
            if lacking & {reference.key for reference in read_bibliography(one)}:
                return one
    return None


def _follow(
    checker: ManuscriptCheck, manuscript: str, chosen: CheckOptions, output: options.OutputOptions
) -> CheckReport:
    """Check, with a count of the pairs that are done."""
    from deepera_graph.evidence.check.graph import CheckRun
    from deepera_graph.evidence.check.manuscript import MANY

    n_pairs = n_done = 0
    with progress_bar("checking", hidden=output.quiet) as bar:
        for event in from_thread(CheckRun(checker, manuscript, chosen.bib).stream()):
            if event["event"] == "read":
                n_pairs = event["n_pairs"]
                if n_pairs >= MANY and not output.quiet:
                    say(f"{n_pairs} pairs are judged one by one, which takes a while")
            elif event["event"] == "pair":
                n_done += 1
                bar.move(to=n_done, count=n_done, total=n_pairs)
            else:
                report: CheckReport = event["result"]
    return report


def _check_options(
    chosen: CheckOptions,
    sources: list[str],
    store: places.StoreOptions,
    output: options.OutputOptions,
) -> None:
    """Raise `SettingsError` for options that do not go together, and files that would be lost."""
    if sources and store.library is not None:
        raise SettingsError("give a SOURCE or --library, not both")
    if chosen.resume and chosen.out is None:
        raise SettingsError("--resume goes with --out")
    if chosen.resume and chosen.overwrite:
        raise SettingsError("give --resume or --overwrite, not both")
    output.check_form(chosen.format)
    _form_of(chosen, output)
    if chosen.out is not None:
        check_file(chosen.out, overwrite=chosen.overwrite, resume=chosen.resume)


def _form_of(chosen: CheckOptions, output: options.OutputOptions) -> str:
    return chosen.format or ("json" if output.as_json else form_of(chosen.out, _OF_SUFFIX))


@contextmanager
def _open_library(
    sources: list[str],
    store: places.StoreOptions,
    reading: places.ReadOptions,
    chosen: CheckOptions,
    output: options.OutputOptions,
) -> Iterator[WorkLibrary]:
    """Give the works of files or of a library; without either there are none."""
    from deepera_graph.evidence.check.library import WorkLibrary
    from deepera_graph.literature.same_study import read_retractions

    notices = None if chosen.retractions is None else read_retractions(chosen.retractions)
    passages: list[Document] = []
    if store.library is not None:
        with open_collection(store, must_exist=True) as opened:
            passages = [one.passage for one in opened.scan()]
            yield WorkLibrary(passages, search=opened, retractions=notices)
        return
    if sources:
        read = PassageSource(*sources, reading=reading, verbose=False)
        read.check()
        passages = list(read.passages)
        if not output.quiet:
            read.tell()
    yield WorkLibrary(passages, retractions=notices)


def _tell_estimate(
    checker: ManuscriptCheck,
    manuscript: str,
    chosen: CheckOptions,
    library: WorkLibrary,
    output: options.OutputOptions,
) -> None:
    from deepera_graph.evidence.check.manuscript import read_manuscript

    found = read_manuscript(manuscript, bibliography=chosen.bib, works=library.references())
    estimate = checker.estimate(manuscript, chosen.bib)
    n_there = sum(library.find(one) is not None for one in found.references)
    what = (
        f"{count(len(found.claims), 'claim')} and {count(found.n_pairs, 'pair')} of claim and "
        f"reference; {n_there} of {count(len(found.references), 'reference')} can be read. At most "
        f"{count(estimate.n_passages, 'passage')} judged in"
    )
    tell_cost(
        output,
        estimate,
        checker.reranker.settings,
        lambda calls, _, price: f"{what} {calls}{price}",
        claims=len(found.claims),
        pairs=found.n_pairs,
        references=len(found.references),
        readable=n_there,
        passages=estimate.n_passages,
    )


def _write(report: CheckReport, chosen: CheckOptions, output: options.OutputOptions) -> None:
    """Write the report to its file or to stdout; of a file the counts are told."""
    from deepera_graph.evidence.check.report import describe_report, export_check

    form: Any = _form_of(chosen, output)
    text = export_check(report, form)
    if chosen.out is None:
        write_bytes(text.encode()) if form == "json" else write_text(text)
        return
    chosen.out.write_text(text, encoding="utf-8", errors="backslashreplace")
    if not output.quiet:
        for line in describe_report(report):
            say(line)
