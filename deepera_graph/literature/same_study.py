"""Which passages are of one study: a PDF, a preprint and the records of one paper.

One study is what has a DOI, a PMID or an arXiv id in common, or is cut from one document; else
what has one title, one first author and about one year; or what is a copy of one text. The order
does not matter. What became of one, a file of notices says, such as that of Retraction Watch.
"""

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from deepera_graph.errors import InputError
from deepera_graph.literature import paper_keys
from deepera_graph.literature.citation import Citation, find_arxiv
from deepera_graph.literature.copies import Copied, join_copies, text_key
from deepera_graph.literature.notices import list_named, read_title
from deepera_graph.literature.paper_keys import PaperStatus
from deepera_graph.passages import field_key

if TYPE_CHECKING:
    from langchain_core.documents import Document

MOST_YEARS = 2  # from a preprint to its article
_VERSION = re.compile(r"(10\.(?:1101|64898)/[\d.]+)v\d.*")  # of a preprint on bioRxiv
_PUBMED = re.compile(r"https?://(?:pubmed\.ncbi\.nlm\.nih\.gov|[\w.]+/pubmed)/(\d+)/?")


class StudyOf(NamedTuple):
    """The study of a passage, numbered from 1 as studies first come, and what became of it."""

    study: int
    status: PaperStatus | None


def find_studies(
    passages: Iterable[tuple[str, Mapping[str, Any]]], texts: Sequence[str] = ()
) -> list[StudyOf]:
    """Return the study of each passage, given as its id and its metadata, and maybe its text."""
    # A retraction, correction or concern of one record holds for all that is of its study.
    given = list(passages)
    sources = [Citation.of(metadata, id) for id, metadata in given]
    if len(sources) == 1:
        return [StudyOf(1, sources[0].status)]
    sources = settle_notices(sources)
    documents = [find_document(id, metadata) for id, metadata in given]
    numbers = _group(sources, documents)
    if texts:
        copied = zip(texts, sources, documents, given, strict=True)
        numbers = join_copies(
            numbers,
            [
                Copied(
                    text_key(text),
                    _list_facts(source),
                    metadata.get("part", metadata.get("page")) if document else None,
                )
                for text, source, document, (_, metadata) in copied
            ],
        )
    graver: dict[int, list[PaperStatus | None]] = defaultdict(list)
    for number, one in zip(numbers, sources, strict=True):
        if one.status != "preprint":  # what else is said of one holds for all
            graver[number].append(one.status)
    return [
        StudyOf(number, paper_keys.gravest((one.status, *graver[number])))
        for number, one in zip(numbers, sources, strict=True)
    ]


def _list_facts(source: Citation) -> tuple[tuple[str, str], ...]:
    """Return what tells a source from others with the same text."""
    plain = (
        ("title", paper_keys.title_key(source.title)),
        ("author", paper_keys.family_key(source.authors)),
        ("year", source.year),
    )
    return (*(one for one in plain if one[1]), *list_ids(source))


def is_same_study(one: Citation, other: Citation) -> bool:
    """Tell whether two sources are of one study."""
    return len({*group_sources([one, other])}) == 1


def group_sources(sources: Sequence[Citation]) -> list[int]:
    """Return the number of the study of each source, from 1, as studies first come."""
    return _group(settle_notices(sources), ())


def _group(sources: Sequence[Citation], documents: Sequence[str]) -> list[int]:
    """Return the numbers of studies as `group_sources` does, of sources whose notices are told."""
    # What names no author or no year goes with the one study that it fits; where it fits several,
    # it stays apart.
    groups = _Groups(len(sources))
    for place, one in enumerate(sources):
        document = documents[place] if documents else ""
        for id in (*list_ids(one), *([("document", document)] if document else [])):
            groups.name(id, place)
    by_title: dict[str, set[int]] = defaultdict(set)
    for place, one in enumerate(sources):
        by_title[paper_keys.title_key(read_title(one.title).title)].add(place)
    links = [
        pair
        for title, places in by_title.items()
        if len(places) > 1 and paper_keys.may_name_paper(title)
        for pair in _link_title([_About.of(sources, ones) for ones in groups.parts(places)])
    ]
    for here, there in links:
        groups.join(here, there)
    return groups.number()


def find_document(id: str, metadata: Mapping[str, Any]) -> str:
    """Return the document or record that a passage is cut from; empty if it is none."""
    if metadata.get("part") is not None and id.endswith(f"#{metadata['part']}"):
        return id.removesuffix(f"#{metadata['part']}")
    is_page = metadata.get("page") is not None or metadata.get("page_label") is not None
    return str(metadata.get("source") or "") if is_page else ""


def list_ids(source: Citation) -> list[tuple[str, str]]:
    """Return the DOI, PMID and arXiv id of a source, each with its kind, in one form."""
    ids = []
    for text in filter(None, (source.doi, source.url, source.arxiv)):
        id = paper_keys.normalize_id(text)
        if id.startswith("10."):
            ids.append(("doi", _VERSION.sub(r"\1", id)))
        elif arxiv := find_arxiv(text):
            ids.append(("arxiv", arxiv))
    page = _PUBMED.match(source.url)
    if pmid := source.pmid or (page[1] if page else ""):
        ids.append(("pmid", pmid.lstrip("0")))
    return ids


def settle_notices(sources: Sequence[Citation]) -> list[Citation]:
    """Give notices the titles of the papers that they name, where there are papers of these."""
    told = [read_title(one.title) for one in sources]
    titles = {paper_keys.title_key(one.title): one.title for one in told if not one.is_notice}
    return [_settle_one(one, titles) for one in sources]


def _settle_one(source: Citation, titles: Mapping[str, str]) -> Citation:
    for named in list_named(source.title):
        if title := titles.get(paper_keys.title_key(named.title)):
            status = paper_keys.gravest((source.status, named.status))
            return replace(source, title=title, status=status, is_notice=True)
    return source


class _About(NamedTuple):
    place: int  # of one of them
    names: frozenset[str]  # of first authors
    years: frozenset[int]
    has_doi: bool
    is_preprint: bool

    @classmethod
    def of(cls, sources: Sequence[Citation], places: Iterable[int]) -> "_About":
        """Read some records; a notice has a year, and maybe authors, of its own."""
        ones = [sources[place] for place in places]
        papers = [one for one in ones if not one.is_notice]
        return cls(
            place=min(places),
            names=frozenset(filter(None, (paper_keys.family_key(one.authors) for one in papers))),
            years=frozenset(int(one.year) for one in papers if one.year),
            has_doi=any(one.doi for one in papers),
            is_preprint=any(one.status == "preprint" for one in papers),
        )

    @classmethod
    def join(cls, ones: "Sequence[_About]") -> "_About":
        """Return what several are together."""
        return cls(
            place=min(one.place for one in ones),
            names=frozenset().union(*(one.names for one in ones)),
            years=frozenset().union(*(one.years for one in ones)),
            has_doi=any(one.has_doi for one in ones),
            is_preprint=any(one.is_preprint for one in ones),
        )


def _link_title(parts: Sequence[_About]) -> Iterable[tuple[int, int]]:
    """Yield pairs of places of one study, of parts that have one title."""
    names = sorted({name for one in parts for name in one.names})
    known = {name: [one for one in parts if name in one.names] for name in names}
    apart = [one for one in parts if not one.names]
    fitting = {
        one: [name for name in names if any(_fit(one, other) for other in known[name])]
        for one in apart
    }
    for name in names:
        yield from _link_years([*known[name], *(one for one in apart if fitting[one] == [name])])
    yield from _link_years([one for one in apart if len(fitting[one]) != 1])


def _link_years(parts: Sequence[_About]) -> Iterable[tuple[int, int]]:
    """Yield pairs of places of one study, of parts of one title and first author."""
    alike = _group_years([one for one in parts if one.years])
    for ones in alike:
        yield from pairwise(one.place for one in ones)
    known = {one.place: one for one in map(_About.join, alike)}
    near = _Groups(1 + max(known, default=0))
    for one, other in combinations(known.values(), 2):
        if _fit(one, other):
            near.join(one.place, other.place)
    linked = near.parts(known)
    of_one = [places for places in linked if _are_one([known[place] for place in places])]
    for places in of_one:
        yield from pairwise(places)
    undated = [one.place for one in parts if not one.years]
    yield from pairwise(undated)
    if undated and len(linked) == len(of_one) == 1:
        yield undated[0], linked[0][0]


def _group_years(parts: Sequence[_About]) -> list[list[_About]]:
    """Return parts in groups that have a year in common."""
    known = {one.place: one for one in parts}
    groups = _Groups(1 + max(known, default=0))
    first: dict[int, int] = {}
    for one in parts:
        for year in one.years:
            groups.join(first.setdefault(year, one.place), one.place)
    return [[known[place] for place in places] for places in groups.parts(known)]


def _are_one(parts: Sequence[_About]) -> bool:
    """Tell whether all fit all; three years without a preprint are reports of every year."""
    is_series = len(parts) > 2 and not any(one.is_preprint for one in parts)
    return not is_series and all(_fit(one, other) for one, other in combinations(parts, 2))


def _fit(one: _About, other: _About) -> bool:
    """Tell whether years do not speak against one study.

    Two DOIs in different years are two articles, such as reports of every year, but for a preprint.
    """
    if not one.years or not other.years or one.years & other.years:
        return True
    if one.has_doi and other.has_doi and not (one.is_preprint or other.is_preprint):
        return False
    return min(abs(a - b) for a in one.years for b in other.years) <= MOST_YEARS


class _Groups:
    """Places that belong together, whoever said so first."""

    def __init__(self, n: int) -> None:
        self._next = list(range(n))
        self._named: dict[tuple[str, str], int] = {}

    def find(self, place: int) -> int:
        while self._next[place] != place:
            self._next[place] = self._next[self._next[place]]
            place = self._next[place]
        return place

    def join(self, one: int, other: int) -> None:
        first, last = sorted((self.find(one), self.find(other)))
        self._next[last] = first

    def name(self, id: tuple[str, str], place: int) -> None:
        self.join(self._named.setdefault(id, place), place)

    def parts(self, places: Iterable[int]) -> list[list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for place in places:
            found[self.find(place)].append(place)
        return list(found.values())

    def number(self) -> list[int]:
        numbers: dict[int, int] = {}
        return [
            numbers.setdefault(self.find(place), len(numbers) + 1)
            for place in range(len(self._next))
        ]


# Columns by the names of Retraction Watch, in lower case and without spaces; then plain ones.
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "doi": ("originalpaperdoi", "doi"),
    "pmid": ("originalpaperpubmedid", "pmid"),
    "nature": ("retractionnature", "nature", "paperstatus", "status"),
}
_REINSTATED = "reinstatement"
_NO_PMID = "0"  # as Retraction Watch writes a missing one


@dataclass(frozen=True, slots=True)
class Retractions:
    """What a file of notices says of papers.

    Attributes:
        statuses: By kind of id, ``doi``, ``pmid`` or ``arxiv``, and the id.
    """

    statuses: Mapping[tuple[str, str], PaperStatus] = field(default_factory=dict)

    def find(self, source: Citation) -> PaperStatus | None:
        """Return what became of a paper; None if no notice names it."""
        return paper_keys.gravest(map(self.statuses.get, list_ids(source)))

    def mark(self, passages: "Iterable[Document]") -> "list[Document]":
        """Return copies of passages; those that a notice names have it as `paper_status`.

        What their own metadata say of the paper stays where it is graver.
        """
        marked = []
        for one in passages:
            source = Citation.of(one.metadata, one.id or "")
            status = paper_keys.gravest((self.find(source), source.status))
            more = {"paper_status": status} if status else {}
            marked.append(one.model_copy(update={"metadata": {**one.metadata, **more}}))
        return marked


def read_retractions(path: str | Path) -> Retractions:
    """Read a CSV file of notices, a row each, with the columns of Retraction Watch.

    These are `OriginalPaperDOI`, `OriginalPaperPubMedID` (or `doi`, `pmid`) and
    `RetractionNature`, without which a row is a retraction: ``Retraction``, ``Correction``,
    ``Expression of concern``, or ``Reinstatement``, which takes the others back. Rows of any other
    nature are passed over.

    Raises:
        InputError: The file cannot be read, or has no column of DOIs and none of PMIDs.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    rows = csv.DictReader(text.splitlines(keepends=True))
    names = {field_key(name): name for name in rows.fieldnames or ()}
    columns = {
        what: next((names[one] for one in known if one in names), None)
        for what, known in _COLUMNS.items()
    }
    if not columns["doi"] and not columns["pmid"]:
        given = ", ".join(rows.fieldnames or ()) or "nothing"
        raise InputError(
            f"{path}: needs a column OriginalPaperDOI or OriginalPaperPubMedID, has {given:.200}"
        )
    found: dict[tuple[str, str], PaperStatus] = {}
    reinstated: set[tuple[str, str]] = set()
    for row in rows:
        cells = {what: (row.get(name) or "").strip() for what, name in columns.items() if name}
        pmid = "" if cells.get("pmid") == _NO_PMID else cells.get("pmid", "")
        ids = list_ids(Citation.of({"doi": cells.get("doi"), "pmid": pmid}, ""))
        nature = cells.get("nature") or "retraction"
        if nature.lower() == _REINSTATED:
            reinstated.update(ids)
        for id in ids:
            if status := paper_keys.gravest((found.get(id), paper_keys.read_word(nature))):
                found[id] = status
    return Retractions({id: found[id] for id in found if id not in reinstated})
