"""`deepera table`: a row a study that answers a question, each cell with its words."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.cli.judging.candidates import Place
from deepera_graph.cli.opening.judges import open_reranker, settings_of
from deepera_graph.cli.opening.limits import note_limits
from deepera_graph.cli.opening.stores import find_collection_folder, keep_with, open_journal
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import OK, check_file, say, tell_cost, write_text
from deepera_graph.cli.shared.declaring import arg, opt, split_names
from deepera_graph.cli.shared.values import form_of
from deepera_graph.errors import SettingsError
from deepera_graph.packages import check_extra
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.documents import Document

    from deepera_graph.evidence.table.table import EvidenceTable, EvidenceTabulator

DAILY = {
    "table": (
        "columns", "out", "resume", "overwrite", "format", "dry_run", "sources", "library",
        "retrieve", "where", "backend", "model", "base_url", "threshold", "as_json", "quiet",
    ),
}  # fmt: skip
_OF_SUFFIX = {
    ".md": "markdown", ".txt": "markdown", ".html": "html", ".htm": "html", ".csv": "csv",
    ".json": "json", ".xlsx": "xlsx", ".svg": "svg",
}  # fmt: skip
_JOURNAL = ".table.jsonl"
_table = partial(opt, panel="The table")


@dataclass(frozen=True, kw_only=True)
class FillOptions:
    """What is tabulated, and where it goes."""

    columns: str | None = _table(
        "Names with commas between them: [b]n[/b], [b]design[/b], [b]effect[/b], [b]unit[/b], "
        "[b]measure[/b], [b]interval[/b], [b]p[/b], [b]direction[/b], which rules can fill; or "
        "with --model any phrase, such as population.",
        brief="n, design, effect, ..., or with --model any phrase.",
        metavar="NAME,NAME",
        shown="n,design,effect,interval,p,direction",
    )
    retrieve: int = _table(
        "Candidates retrieved.", "--retrieve", "-k", metavar="K", default=100, least=1
    )
    where: list[str] | None = _table(
        "Only passages with this metadata: FIELD=VALUE, or 'year>=2015'. May be repeated.",
        metavar="FIELD=VALUE",
    )
    out: Path | None = opt(
        "File of the table, whose suffix says the form: .xlsx (extra tables), .csv, .html, .json, "
        ".svg (the map alone), or else Markdown.",
        "--out",
        "-o",
        brief="File of the table: .xlsx, .csv, .html, .md, .json or .svg.",
        metavar="FILE",
        shown="stdout",
    )
    resume: bool = opt(
        "With --out: go on with a table that was cut short; what was judged and filled is kept "
        f"beside it, in FILE{_JOURNAL}.",
        brief="Go on with a table that was cut short.",
        default=False,
    )
    overwrite: bool = opt("Replace the file.", default=False)
    format: Literal["markdown", "html", "csv", "json", "svg", "xlsx"] | None = opt(
        "Form of the table; [b]xlsx[/b] goes with --out, [b]svg[/b] is the map alone.",
        metavar="FORM",
        shown="by the suffix of --out, else markdown",
    )
    dry_run: bool = opt(
        "Say what judging and filling would cost at most; nothing is judged. Candidates are looked "
        "for, of a service, too.",
        brief="Only say what it would cost.",
        default=False,
    )


def table(
    question: Annotated[str, arg("QUESTION", "What is asked.")],
    source: Annotated[
        list[str] | None, arg("SOURCE", "Files or folders, instead of --library.")
    ] = None,
    *,
    chosen: FillOptions,
    literature: places.LiteratureOptions,
    store: places.StoreOptions,
    keep: places.KeepOptions,
    reading: places.ReadOptions,
    judge: options.JudgingOptions,
    output: options.OutputOptions,
) -> None:
    """Fill a table of the studies that answer a question."""
    form = _form_of(chosen, output)
    place = Place(
        question,
        source or [],
        store=store,
        literature=literature,
        reading=reading,
        search=places.SearchOptions(retrieve=chosen.retrieve, where=chosen.where),
        cache=judge,
        output=output,
    )
    settings = {"content": "passage", "top_n": chosen.retrieve, **settings_of(judge)}
    columns = None if chosen.columns is None else split_names("--columns", chosen.columns)
    keeping = keep_with(find_collection_folder(store), keep)
    with ExitStack() as open_:
        reranker, _ = open_.enter_context(
            open_reranker(judge, settings, keep=keeping, dry_run=chosen.dry_run)
        )
        from deepera_graph.evidence.table.rows import chat_of
        from deepera_graph.evidence.table.table import COLUMNS, EvidenceTabulator

        columns = columns or COLUMNS
        journal = None
        if chosen.out is not None and not chosen.dry_run:
            about = {"judge": reranker.backend.name, "settings": reranker.settings.to_dict()}
            ran = {"command": "table", "question": question, "columns": columns, **about}
            kept = open_journal(chosen.out, _JOURNAL, ran, resume=chosen.resume)
            journal = open_.enter_context(kept)
        tabulator = EvidenceTabulator(
            reranker, columns=columns, extractor=chat_of(reranker.backend), journal=journal
        )
        candidates = place.find()
        if (remark := note_limits(question, place.limits)) and not output.quiet:
            say(remark)
        found, question = candidates.documents, place.question
        for note in candidates.notes:
            say(note)
        if chosen.dry_run:
            _tell_estimate(tabulator, question, found, output)
            raise typer.Exit(OK)
        with progress_bar("reading studies", hidden=output.quiet):
            made = tabulator.tabulate(question, found)
        if form in ("csv", "xlsx") and not output.quiet:  # which have no place for notes
            for note in made.notes:
                say(note)
        made = replace(made, notes=(*candidates.notes, *made.notes))
    _write(made, form, chosen, output)
    raise typer.Exit(place.exit_code)


def _tell_estimate(
    tabulator: EvidenceTabulator,
    question: str,
    found: Sequence[Document],
    output: options.OutputOptions,
) -> None:
    """Say what judging would cost at most, and how many calls may fill cells."""
    n, judged = len(found) if tabulator.fills_by_model else 0, count(len(found), "passage")
    more = f", and {count(n, 'more call')} to fill cells, one a study" if n else ""
    tell_cost(
        output,
        tabulator.reranker.estimate([(question, found)]),
        tabulator.reranker.settings,
        lambda calls, _, price: f"At most {judged} judged in {calls}{price}{more}",
        passages=len(found),
        fill_calls=n,
    )


def _form_of(chosen: FillOptions, output: options.OutputOptions) -> str:
    """Return the form of the table; raise `SettingsError` if it cannot be written so."""
    output.check_form(chosen.format)
    form = chosen.format or ("json" if output.as_json else form_of(chosen.out, _OF_SUFFIX))
    if form == "xlsx":
        if chosen.out is None:
            raise SettingsError("--format xlsx goes with --out")
        check_extra("openpyxl", extra="tables", what="writing .xlsx")
    if chosen.resume and (chosen.out is None or chosen.overwrite):
        raise SettingsError("--resume goes with --out, and without --overwrite")
    if chosen.out is not None:
        check_file(chosen.out, overwrite=chosen.overwrite, resume=chosen.resume)
    return form


def _write(
    made: EvidenceTable, form: Any, chosen: FillOptions, output: options.OutputOptions
) -> None:
    from deepera_graph.evidence.table.writing import export_table, write_xlsx

    if chosen.out is None:
        write_text(export_table(made, form))
        return
    data = write_xlsx(made) if form == "xlsx" else export_table(made, form).encode()
    chosen.out.write_bytes(data)
    if not output.quiet:
        say(f"{count(len(made.rows), 'study')} in {chosen.out}")
