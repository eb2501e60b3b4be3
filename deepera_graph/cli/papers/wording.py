"""Papers and bases of papers in the words of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepera_graph.cli.shared.console import count, text_console

if TYPE_CHECKING:
    from pathlib import Path

    from deepera_graph.papers import Paper
    from deepera_graph.papers.library.building import BuildReport

_AROUND = 12  # columns of a rank, blanks and brackets around what a line says of a paper
_SHORTEST = 20  # of a title


def describe_line(paper: Paper) -> str:
    """Return a paper in one line: its id, title, venue and year; as wide as the terminal is."""
    room = max(text_console().width - _AROUND - len(paper.id), _SHORTEST + 8)
    year = str(paper.year or "")
    venue = _cut(paper.venue, room - _SHORTEST - len(year))
    about = ", ".join(filter(None, [venue, year]))
    return f"{paper.id}  {_cut(paper.title, room - len(about))}" + (f" ({about})" if about else "")


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
    lines = [f"{paper.id}  {paper.title}"]
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
    done = ", ".join(f"{n} {what}" for what, n in counts.items() if n) or "nothing new"
    lines = [f"{count(report.papers, 'paper')} in {base}: {done}"]
    lines += [f"  {n:>9} {kind.replace('_', ' ')}" for kind, n in report.problems.items()]
    return "\n".join(lines)
