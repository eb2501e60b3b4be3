"""`deepera papers build`, `search`, `show`, `cite` and `serve`: a base of papers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.cli.opening.limits import note_search, to_scope
from deepera_graph.cli.opening.stores import (
    BaseOptions,
    SearchedOptions,
    find_embeddings,
    find_papers,
    name_library,
    open_base,
    open_searched,
)
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import (
    OK,
    SOME_FAILED,
    say,
    say_some,
    tell,
    tell_done,
    text_console,
    write_json,
    write_text,
)
from deepera_graph.cli.shared.declaring import arg, opt
from deepera_graph.errors import SettingsError
from deepera_graph.literature.paper_keys import name_status
from deepera_graph.papers.paper import ListFormat
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.papers import Paper, PaperBase, Scope
    from deepera_graph.papers.library.building import BuildReport

    Rows = Sequence[tuple[Paper, str, dict[str, Any], dict[str, Any]]]

_AROUND = 12  # columns of a rank, blanks and brackets around what a line says of a paper
_SHORTEST = 20  # of a title


@dataclass(frozen=True, kw_only=True)
class PaperPageOptions:
    """How much is shown."""

    k: int = opt("Most papers shown.", "-k", metavar="N", default=20, least=1)
    offset: int = opt(
        "How many of the first to leave out, for the next page.", metavar="N", default=0, least=0
    )


@dataclass(frozen=True, kw_only=True)
class FormOptions:
    """How papers are written."""

    format: Literal["text", "json", ListFormat] = opt(
        "How it is written; [b]bibtex[/b] and [b]ris[/b] are for reference managers.",
        default="text",
    )


@dataclass(frozen=True, kw_only=True)
class BuildBaseOptions(places.PlaceOptions, places.LibraryOption):
    """How a base is built."""

    form: str | None = opt(
        "Form of the files: [b]jsonl[/b], [b]s2[/b] (Semantic Scholar, S2ORC), [b]openalex[/b], "
        "[b]arxiv[/b], [b]acl[/b] (XML) or [b]bibtex[/b].",
        metavar="NAME",
        shown="what they look like",
    )
    embeddings: str | None = opt(
        "Search by meaning, too: [b]local[/b] for those of the local judge, about 25 papers a "
        "second and core; others as for `deepera index`.",
        metavar="NAME",
        shown="those the base has; a new one is searched by words",
    )
    vectors: Path | None = opt(
        "A .npy file of vectors that --embeddings made before, row i of record i of the one file; "
        "int8 will do.",
        metavar="FILE",
    )
    vectors_url: str | None = opt(
        "A Qdrant server that keeps the vectors, for bases too large for a file beside them; its "
        "key is in QDRANT_API_KEY. The base knows it from then on.",
        metavar="URL",
        shown="a file beside the base",
    )
    merge: Literal["ids", "titles", "none"] = opt(
        "When two records are one paper: they share an id ([b]ids[/b]), or also a title with "
        "nothing against it ([b]titles[/b]), or never ([b]none[/b]).",
        metavar="HOW",
        default="ids",
    )
    overwrite: bool = opt("Replace an existing base.", default=False)


def build(
    files: Annotated[list[Path], arg("FILES", "Files of papers; .gz is read, too.")],
    *,
    how: BuildBaseOptions,
    output: options.OutputOptions,
) -> None:
    """Make a base of files of papers, or add them to one."""
    from deepera_graph.papers import PaperBase

    embeddings = find_embeddings(how.embeddings)
    base = Path(find_papers(how, name_library(how)))
    base.parent.mkdir(parents=True, exist_ok=True)
    with progress_bar("reading", hidden=output.quiet) as bar:

        def watch(_: str, done: int, of: int | None) -> None:
            bar.move(to=done if of else None, total=of, count=done)

        with PaperBase.build(
            base,
            list(files),
            form=how.form,  # type: ignore[arg-type]  # checked there
            embeddings=embeddings,
            vectors=how.vectors,
            vectors_url=how.vectors_url,
            merge=how.merge,
            overwrite=how.overwrite,
            on_progress=watch,
        ) as made:
            report = made.report
    say_some(report.told, "{} more; --json has the first of each kind")
    tell_done(
        output,
        {"base": str(base), **report.to_dict()},
        lambda: describe_build(report, base),
    )
    raise typer.Exit(SOME_FAILED if report.problems else OK)


def search(
    query: Annotated[str, arg("QUERY", "Any text, in quotes.")],
    *,
    where: SearchedOptions,
    cache: options.CacheOptions,
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="[b]sparse[/b]: by words. [b]dense[/b]: by meaning. [b]hybrid[/b]: both.",
            show_default="hybrid if the base has vectors, else sparse",
        ),
    ] = None,
    page: PaperPageOptions,
    limits: places.WhereOptions,
    form: FormOptions,
    output: options.OutputOptions,
) -> None:
    """Find papers, best first."""
    output.check_form(form.format)
    with open_searched(where, cache.cache) as (base, failures):
        scope = to_scope(limits)
        hits = base.search(
            query,
            mode=mode,  # type: ignore[arg-type]  # checked there
            k=page.k,
            scope=scope,
            offset=page.offset,
        )
        hits = hits.with_papers(base.mark(hits.papers, scope=scope))
    if not limits.where and not output.quiet and (note := note_search(query)):
        say(f"note: {note}")
    if hits.status == "no_words" and not output.quiet:
        say("the query has no word to search for")
    lines = [f"{one.rank:>4}  {describe_line(one.paper)}" for one in hits] or ["nothing found"]
    listed: Rows = [
        (
            one.paper,
            _name(one.paper),
            {"rank": one.rank},
            {"score": one.score, "by": " ".join(one.by)},
        )
        for one in hits
    ]
    _write(form, output, hits.to_dict(), lambda: "\n".join(lines), listed)
    raise typer.Exit(SOME_FAILED if failures else OK)


def show(
    paper: Annotated[
        str | None, arg("[PAPER]", "An id of any kind, or a title; all if left out.")
    ] = None,
    *,
    where: BaseOptions,
    limits: places.WhereOptions,
    form: FormOptions,
    output: options.OutputOptions,
) -> None:
    """Show a paper, or what the base holds."""
    output.check_form(form.format)
    if paper is None and form.format not in ("text", "json"):
        raise SettingsError(f"--format {form.format} is for a paper; name one")
    with open_base(where) as base:
        if paper is None:
            about = base.describe()
            _write(form, output, about, lambda: describe_base(about), [])
            return
        [found] = base.mark([_find(base, paper, to_scope(limits))])
    listed: Rows = [(found, _name(found), {}, {})]
    _write(form, output, found.to_dict(), lambda: describe_paper(found), listed)


def cite(
    paper: Annotated[str, arg("PAPER", "An id of any kind, or a title.")],
    *,
    where: BaseOptions,
    page: PaperPageOptions,
    limits: places.WhereOptions,
    form: FormOptions,
    output: options.OutputOptions,
) -> None:
    """List what a paper cites, and what cites it."""
    output.check_form(form.format)
    scope = to_scope(limits)
    with open_base(where) as base:
        [found] = base.mark([_find(base, paper, scope)], scope=scope)
        asked: Any = {"k": page.k, "scope": scope, "offset": page.offset}
        ways = {
            "references": base.references(found.id, **asked),
            "citations": base.citations(found.id, **asked),
        }
        for way, near in ways.items():
            ways[way] = near.with_papers(base.mark(near.papers, scope=scope))
    lines = [describe_line(found)]
    for way, what in (("references", "cites"), ("citations", "is cited by")):
        outside = f" and {ways[way].outside} outside the base" if ways[way].outside else ""
        lines.append(f"\n{what} {count(ways[way].total, 'paper')}{outside}")
        lines += [f"  {describe_line(one)}" for one in ways[way]]
    plain = {"paper": found.to_dict(), **{way: one.to_dict() for way, one in ways.items()}}
    said = {"references": f"cited by {found.id}", "citations": f"cites {found.id}"}
    listed: Rows = [
        (one, "; ".join(filter(None, (_name(one), said[way]))), {}, {"relation": said[way]})
        for way, near in ways.items()
        for one in near
    ]
    _write(form, output, plain, lambda: "\n".join(lines), listed)


def serve(
    *,
    where: BaseOptions,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Address to listen at; 0.0.0.0 for all.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", help="Port to listen at; 0 is any that is free.", min=0)
    ] = 8080,
) -> None:
    """Answer for a base over HTTP, until interrupted."""
    from deepera_graph.papers.rest import serve as answer

    with open_base(where) as base:

        def tell(address: str) -> None:
            say(f"answering for {base.place} at {address}, described at /docs")

        answer(base, host=host, port=port, on_start=tell)


def _write(
    form: FormOptions,
    output: options.OutputOptions,
    plain: Any,
    words: Callable[[], str],
    listed: Rows,
) -> None:
    """Write papers in the form that is wanted; *listed* is as `Listed` has them."""
    if output.as_json or form.format == "text":
        tell(output, plain, words)
    elif form.format == "json":
        write_json(plain)
    else:
        from deepera_graph.papers.paper import Listed, write_list

        text = write_list([Listed(*one) for one in listed], form.format)
        write_text(text)


def _find(base: PaperBase, given: str, scope: Scope) -> Paper:
    """Return the paper with an id, or else with a title."""
    found = base.get(given, scope=scope) or base.title(given, scope=scope).paper
    if found is None:
        raise SettingsError(f"no paper in {base.place} has the id or the title {given!r:.80}")
    return found


def describe_line(paper: Paper) -> str:
    """Return a paper in one line: its id, title, venue and year; as wide as the terminal is."""
    head = f"{paper.id}  {_mark(paper)}"
    room = max(text_console().width - _AROUND - len(head) + 2, _SHORTEST + 8)
    year = str(paper.year or "")
    venue = _cut(paper.venue, room - _SHORTEST - len(year))
    about = ", ".join(filter(None, [venue, year]))
    return f"{head}{_cut(paper.title, room - len(about))}" + (f" ({about})" if about else "")


def _name(paper: Paper) -> str:
    return name_status(paper.paper_status)


def _mark(paper: Paper) -> str:
    status = _name(paper)
    return f"{status}: " if status and not paper.title.upper().startswith(status) else ""


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1].rstrip()}…"


def describe_paper(paper: Paper) -> str:
    """Return all that is known of a paper."""
    fields = {
        "authors": "; ".join(paper.authors),
        "date": paper.date or str(paper.year or ""),
        "venue": paper.venue,
        "doi": paper.doi,
        "arXiv": paper.arxiv,
        "url": paper.url,
    }
    lines = [f"{paper.id}  {_mark(paper)}{paper.title}"]
    lines += [f"{name}: {value}" for name, value in fields.items() if value]
    return "\n".join([*lines, *(["", paper.abstract] if paper.abstract else [])])


def describe_base(about: dict[str, Any]) -> str:
    """Return how much a base holds, and from where."""
    first, last = about["years"]
    lines = [
        f"{count(about['papers'], 'paper')}, {about['with_abstract']} with abstract, "
        f"{about['vectors']} with vector",
        f"years {first} to {last}, {about['without_year']} without; "
        f"{count(about['venues'], 'venue')}",
        f"{count(about['references'], 'reference')}, {about['references_outside']} of them to "
        "papers outside",
    ]
    if about["embeddings"]:
        url = about["vectors_url"]
        where = f"on {url}" if url else "in a file beside the papers"
        lines.append(f"vectors of {about['embeddings']} {where}")
    lines += [f"from {name}" for name in about["sources"]]
    lines += [f"not read to its end: {name}; build again" for name in about["unfinished"]]
    return "\n".join(lines)


def describe_build(report: BuildReport, base: Path) -> str:
    """Return what a build did to a base."""
    counts = {
        "added": report.added,
        "updated": report.updated,
        "merged with others": report.merged,
        "there before": report.unchanged,
        "embedded": report.embedded,
    }
    none = "nothing new" if report.read else "nothing new, as no record was found"
    done = ", ".join(f"{n} {what}" for what, n in counts.items() if n) or none
    lines = [f"{count(report.papers, 'paper')} in {base}: {done}"]
    lines += [f"  {n:>9} {kind.replace('_', ' ')}" for kind, n in report.problems.items()]
    return "\n".join(lines)
