"""A paper as a base holds it, its dates in one form, and lists for reference managers."""

import calendar
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import SequenceMatcher
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from deepera_graph.literature.citation import Citation
from deepera_graph.literature.notices import list_named, read_title
from deepera_graph.literature.paper_keys import (
    PaperStatus,
    family_key,
    gravest,
    main_title,
    title_key,
)
from deepera_graph.literature.reference_files import write_bibtex, write_ris
from deepera_graph.literature.same_study import MOST_YEARS, find_studies
from deepera_graph.text.plain import write_sheet

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from langchain_core.documents import Document

_DATE = re.compile(r"(\d{4})(?:[-/]?(\d{2}))?(?:[-/]?(\d{2}))?(?:[T ].*)?")
_FIRST_YEAR, _LAST_YEAR = 1000, 2999
_ARXIV_MONTH = re.compile(
    r"(?:[a-z-]+(?:\.[a-z]{2})?/)?(\d{2})(0[1-9]|1[0-2])(?:\.\d{4,5}|\d{3})", re.I
)
_FIRST_OF_ARXIV = 91
_TOLD = ("retracted", "concern", "corrected")  # of a preprint its venue or id tells
_NOTICES = "retraction retracted withdrawal notice expression of concern correction erratum"


def venue_key(venue: str) -> str:
    """Return what a venue is matched by."""
    return " ".join(venue.casefold().split())


def read_year(value: Any) -> int | None:
    """Return the year of a number or a date as sources write it: 2021, ``"2021-03"``, 20250204."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, float) and not isfinite(value):
        return None
    found = _DATE.fullmatch(str(int(value) if isinstance(value, float) else value).strip())
    year = int(found[1]) if found else 0
    return year if _FIRST_YEAR <= year <= _LAST_YEAR else None


def read_date(value: Any) -> str:
    """Return a date as ``2021``, ``2021-03`` or ``2021-03-15``; nothing if it is none."""
    found = _DATE.fullmatch(str(value if value is not None else "").strip())
    if not found or read_year(found[1]) is None:
        return ""
    year, month, day = found[1], found[2], found[3]
    if not month or not 1 <= int(month) <= 12:
        return year
    last = calendar.monthrange(int(year), int(month))[1]
    return f"{year}-{month}-{day}" if day and 1 <= int(day) <= last else f"{year}-{month}"


def century_of(year: int) -> int:
    """Return the century of a year of an arXiv id, which has two digits: arXiv began in 1991."""
    return 1900 if year >= _FIRST_OF_ARXIV else 2000


def month_of(arxiv: str) -> str:
    """Return the month that an arXiv id names, ``2024-04`` of ``2404.00001``; empty for others."""
    found = _ARXIV_MONTH.fullmatch(arxiv)
    return f"{century_of(int(found[1])) + int(found[1])}-{found[2]}" if found else ""


def days_of(date: str) -> tuple[int, int]:
    """Return the first and the last day a date may mean, as numbers: ``2021-02`` from 20210201."""
    year, month, day = (*(int(part) for part in date.split("-")), 0, 0)[:3]
    first = 10_000 * year + 100 * (month or 1) + (day or 1)
    last_month = month or 12
    last_day = day or calendar.monthrange(year, last_month)[1]
    return first, 10_000 * year + 100 * last_month + last_day


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper, without its citations: these are asked of the base, within a scope.

    Attributes:
        id: In the form of `normalize_id`; not empty.
        title: Not empty.
        abstract: Empty where there is none.
        authors: Names, in order.
        year: Of publication, or None if it is not known.
        date: ``2021``, ``2021-03``, ``2021-03-15``, or empty.
        venue: Journal or conference, or empty.
        categories: Subjects, as the source has them.
        doi: In lower case, or empty.
        arxiv: The arXiv id without version, or empty.
        url: Where it can be read, or empty.
        source: Where the record is from, or empty.
        paper_status: ``retracted``, ``concern`` or ``corrected``, as titles that were found with it
            tell, see `mark_papers`; None if nothing is known. A base does not keep it.
    """

    id: str
    title: str
    abstract: str = ""
    authors: tuple[str, ...] = ()
    year: int | None = None
    date: str = ""
    venue: str = ""
    categories: tuple[str, ...] = ()
    doi: str = ""
    arxiv: str = ""
    url: str = ""
    source: str = ""
    paper_status: PaperStatus | None = None

    @property
    def text(self) -> str:
        """Title and abstract as one text, as they are embedded."""
        return f"{self.title}. {self.abstract}" if self.abstract else self.title

    @property
    def days(self) -> tuple[int, int] | None:
        """The first and the last day it may be from, the later of year and date; None if unknown.

        A year that is later than the date, or the other way round, moves both to the later one, so
        that no date of asking lets through what may be newer. An arXiv id tells a month, too.
        """
        known = (self.date, str(self.year or ""), month_of(self.arxiv) or month_of(self.id))
        spans = [days_of(one) for one in known if one]
        if not spans:
            return None
        first, last = max(one[0] for one in spans), min(one[1] for one in spans)
        return first, last if first <= last else max(one[1] for one in spans)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it, all fields in this order; a status only if there is one."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.paper_status is None:
            del plain["paper_status"]
        return {**plain, "authors": list(self.authors), "categories": list(self.categories)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Paper":
        """Return the paper of `to_dict`."""
        lists = {name: tuple(plain.get(name) or ()) for name in ("authors", "categories")}
        return cls(**{**plain, **lists})


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRecord:
    """A paper as a file brings it: with what it cites, and its other ids."""

    paper: Paper
    references: tuple[str, ...] = ()  # ids of what it cites, in order, each once; of any paper
    aliases: tuple[str, ...] = ()  # other ids it is known by, e.g. of a preprint

    @property
    def ids(self) -> tuple[str, ...]:
        """All its ids, the main one first, each once."""
        own = (self.paper.id, self.paper.doi, self.paper.arxiv, *self.aliases)
        return tuple(dict.fromkeys(one for one in own if one))


def fill_paper(first: Paper, other: Paper) -> Paper:
    """Return a paper with what another record of it has more; the rest stays as it is."""
    missing: dict[str, Any] = {
        one.name: getattr(other, one.name)
        for one in fields(Paper)
        if getattr(first, one.name) in ("", (), None)
    }
    return replace(first, **missing)


_ALIKE = 0.8  # similarity of titles, below which an id in common is somebody's mistake


def have_like_titles(one: Paper, other: Paper) -> bool:
    """Tell whether an id in common is to be believed."""
    keys = title_key(one.title), title_key(other.title)
    mains = title_key(main_title(one.title)), title_key(main_title(other.title))
    if keys[0] == keys[1] or mains[0] == mains[1] or mains[0] == keys[1] or keys[0] == mains[1]:
        return True
    return SequenceMatcher(None, *keys, autojunk=False).ratio() >= _ALIKE


def may_be_same(one: Paper, other: Paper) -> bool:
    """Tell whether two records with one title may be of one paper: a preprint is a year older."""
    if title_key(one.title) != title_key(other.title):
        return False
    if one.year and other.year and abs(one.year - other.year) > MOST_YEARS:
        return False
    names = [{family_key([name]) for name in paper.authors} for paper in (one, other)]
    return not (names[0] and names[1]) or not names[0].isdisjoint(names[1])


ListFormat = Literal["csv", "bibtex", "ris"]
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
        status=paper.paper_status,
    )


def mark_papers(papers: Sequence[Paper], notices: Sequence[Paper] = ()) -> list[Paper]:
    """Return papers with what became of them, as titles of all of them and of *notices* tell."""
    every = [*papers, *notices]
    if not any(read_title(one.title).status or list_named(one.title) for one in every):
        return list(papers)
    studies = find_studies((one.id, to_passage(one).metadata) for one in every)
    told = (one.status if one.status in _TOLD else None for one in studies)
    return [
        replace(one, paper_status=gravest((one.paper_status, status)))
        for one, status in zip(papers, told, strict=False)
    ]


def ask_notices(papers: Sequence[Paper]) -> str:
    """Return a query by words that finds notices of the retraction or correction of papers."""
    return " ".join([_NOTICES, *(one.title for one in papers)])


def write_list(listed: Sequence[Listed], format: ListFormat) -> str:
    """Return papers as ``csv``, ``bibtex`` or ``ris``."""
    if format == "csv":
        return _to_csv(listed)
    if format == "bibtex":
        return write_bibtex((cite_paper(one.paper), one.note) for one in listed)
    return write_ris((cite_paper(one.paper), one.note, one.paper.abstract) for one in listed)


def _to_csv(listed: Sequence[Listed]) -> str:
    first, last = (listed[0].before, listed[0].after) if listed else ({}, {})
    rows: list[Sequence[Any]] = [(*first, *_COLUMNS, *last)]
    for one in listed:
        source = cite_paper(one.paper)
        fields = {"authors": "; ".join(source.authors), "url": source.link}
        cells = (fields.get(name, getattr(source, name, None)) for name in _COLUMNS)
        rows.append((*one.before.values(), *cells, *one.after.values()))
    return write_sheet(rows)


def to_passage(paper: Paper, **more: Any) -> "Document":
    """Return a paper as a passage: its abstract, or its title where it has none."""
    from langchain_core.documents import Document  # noqa: PLC0415 - slow, and only here

    names = ("title", "year", "venue", "doi", "arxiv", "url")
    metadata = {name: value for name in names if (value := getattr(paper, name))}
    authors = {"authors": list(paper.authors)} if paper.authors else {}
    text = paper.abstract or paper.title
    return Document(id=paper.id, page_content=text, metadata={**metadata, **authors, **more})


def list_set_fields(limits: "DataclassInstance") -> dict[str, Any]:
    """Return what of a dataclass is not as by default, with lists for tuples, as JSON has them."""
    plain: dict[str, Any] = {}
    for one in fields(limits):
        value = getattr(limits, one.name)
        if value != one.default:
            plain[one.name] = list(value) if isinstance(value, tuple) else value
    return plain
