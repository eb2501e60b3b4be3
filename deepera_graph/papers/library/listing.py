"""Lists of papers in the forms that reference managers and spreadsheets read."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from deepera_graph.literature.citation import Citation, write_bibtex, write_ris
from deepera_graph.papers.paper import Paper
from deepera_graph.papers.results import ListFormat
from deepera_graph.text.plain import write_sheet

_COLUMNS = ("id", "title", "authors", "year", "venue", "doi", "url")


class Listed(NamedTuple):
    """A paper of a list; `note` goes into BibTeX and RIS, the rest around it into CSV."""

    paper: Paper
    note: str = ""
    before: Mapping[str, Any] = {}
    after: Mapping[str, Any] = {}


def cite_paper(paper: Paper) -> Citation:
    """Return how a paper is cited."""
    return Citation(
        id=paper.id,
        title=paper.title,
        authors=paper.authors,
        year=str(paper.year or ""),
        venue=paper.venue,
        doi=paper.doi,
        url=paper.url or (f"https://arxiv.org/abs/{paper.arxiv}" if paper.arxiv else ""),
    )


def write_list(listed: Sequence[Listed], format: ListFormat) -> str:
    """Return papers as ``csv``, ``bibtex`` or ``ris``."""
    return _FORMS[format](listed)


def _to_bibtex(listed: Sequence[Listed]) -> str:
    return write_bibtex((cite_paper(one.paper), one.note) for one in listed)


def _to_csv(listed: Sequence[Listed]) -> str:
    first, last = (listed[0].before, listed[0].after) if listed else ({}, {})
    rows: list[Sequence[Any]] = [(*first, *_COLUMNS, *last)]
    for one in listed:
        source = cite_paper(one.paper)
        fields = {"authors": "; ".join(source.authors), "url": source.link}
        cells = (fields.get(name, getattr(source, name, None)) for name in _COLUMNS)
        rows.append((*one.before.values(), *cells, *one.after.values()))
    return write_sheet(rows)


def _to_ris(listed: Sequence[Listed]) -> str:
    return write_ris((cite_paper(one.paper), one.note, one.paper.abstract) for one in listed)


_FORMS: Mapping[str, Callable[[Sequence[Listed]], str]] = {
    "csv": _to_csv,
    "bibtex": _to_bibtex,
    "ris": _to_ris,
}
