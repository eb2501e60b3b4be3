"""What an element of PubMed's files says: a record, parsed alone, or deletions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

from deepera_graph.bioasq.pubmed.cutting import PubmedElement
from deepera_graph.packages import import_extra

RecordFault = Literal["ill-formed", "no PMID", "PMID is no number", "no article", "stray text"]
_MATH = "{http://www.w3.org/1998/Math/MathML}math"
_LAYOUT = re.compile(r" *[\t\r\n][ \t\r\n]*")
_BLANKS = " \t\r\n"  # of XML
_YEAR = re.compile(r"\d{4}")
_LONGEST_PMID = 12  # digits; PubMed has 8
_RETRACTED = "Retracted Publication"


class Part(NamedTuple):
    """A part of an abstract: ``abstract[start:end]`` is its text, without the label before it."""

    label: str  # empty if it has none
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PubmedRecord:
    """A citation of PubMed.

    Attributes:
        pmid: Its number, digits alone.
        version: Version of the citation, >= 1.
        title: Tags and formulas flattened; empty if there is none.
        abstract: The parts joined by a blank, a labelled one as ``LABEL: text``; empty if there is
            none. Line breaks of the file are blanks; other characters are as they stand.
        parts: Where the parts are in the abstract, in order.
        year: Year of the issue, else of the article; None if not known.
        journal: Its title.
        mesh: Descriptors of MeSH.
        publication_types: E.g. ``Journal Article``.
        language: Of the article, three letters.
        retracted: Whether it was retracted later; a notice of a retraction is not.
        is_book: Whether it is a chapter of a book.
    """

    pmid: str
    version: int = 1
    title: str = ""
    abstract: str = ""
    parts: tuple[Part, ...] = ()
    year: int | None = None
    journal: str = ""
    mesh: tuple[str, ...] = ()
    publication_types: tuple[str, ...] = ()
    language: str = ""
    retracted: bool = False
    is_book: bool = False


@dataclass(frozen=True, slots=True)
class Deleted:
    """A citation that an update file deletes, in all its versions."""

    pmid: str


class RecordError(Exception):
    """A record that cannot be used."""

    def __init__(self, fault: RecordFault, reason: str) -> None:
        super().__init__(reason)
        self.fault: RecordFault = fault


@cache
def _etree() -> Any:
    return import_extra("lxml.etree", extra="bioasq", what="reading PubMed")


@cache
def _parser(encoding: str | None) -> Any:
    """Return a parser that fetches nothing, expands nothing, and refuses what is ill-formed."""
    return _etree().XMLParser(
        encoding=encoding,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        collect_ids=False,
    )


def parse_piece(
    piece: PubmedElement, set_tag: bytes, encoding: str | None
) -> Iterator[PubmedRecord | Deleted]:
    """Yield the record of an element, or the deletions.

    Args:
        piece: An element with a name.
        set_tag: Start tag of the set that it stands in, if that has attributes.
        encoding: Of the file; None for that of XML.

    Raises:
        RecordError: It cannot be used.
        SettingsError: lxml is not installed (extra ``bioasq``).
    """
    xml = piece.xml if not set_tag else set_tag + piece.xml + b"</PubmedArticleSet>"
    try:
        root = _etree().fromstring(xml, _parser(encoding))
    except (_etree().XMLSyntaxError, LookupError) as error:
        raise RecordError("ill-formed", str(getattr(error, "msg", error))) from error
    element = root[0] if set_tag else root
    if piece.name == b"PubmedArticle":
        yield _read_article(element)
    elif piece.name == b"PubmedBookArticle":
        yield _read_book(element)
    else:
        yield from [Deleted(_read_pmid(one)[0]) for one in element.iterfind("PMID")]


def _read_article(element: Any) -> PubmedRecord:
    citation = _children(element.find("MedlineCitation"))
    pmid, version = _read_pmid(citation.get("PMID"))
    if "Article" not in citation:
        raise RecordError("no article", f"PMID {pmid} has no Article")
    article = _children(citation["Article"])
    journal = _children(article.get("Journal"))
    abstract, parts = _read_abstract(article.get("Abstract"))
    types = _read_texts(article.get("PublicationTypeList"))
    return PubmedRecord(
        pmid=pmid,
        version=version,
        title=_flatten(article.get("ArticleTitle")),
        abstract=abstract,
        parts=parts,
        year=_read_year(journal.get("JournalIssue"), article.get("ArticleDate")),
        journal=_flatten(journal.get("Title")),
        mesh=_read_mesh(citation.get("MeshHeadingList")),
        publication_types=types,
        language=_flatten(article.get("Language")),
        retracted=_RETRACTED in types or _is_retracted(citation.get("CommentsCorrectionsList")),
    )


def _children(element: Any) -> dict[Any, Any]:
    """Return the first child of each name; none if there is no element."""
    return {} if element is None else {one.tag: one for one in element.iterchildren(reversed=True)}


def _read_book(element: Any) -> PubmedRecord:
    book = element.find("BookDocument")
    pmid, version = _read_pmid(None if book is None else book.find("PMID"))
    abstract, parts = _read_abstract(book.find("Abstract"))
    title = _flatten(book.find("ArticleTitle")) or _flatten(book.find("Book/BookTitle"))
    language = _flatten(book.find("Language"))
    return PubmedRecord(
        pmid=pmid,
        version=version,
        title=title,
        abstract=abstract,
        parts=parts,
        language=language,
        is_book=True,
    )


def _read_pmid(element: Any) -> tuple[str, int]:
    text = "" if element is None else (element.text or "").strip()
    if not text:
        raise RecordError("no PMID", "there is no PMID")
    if not (text.isascii() and text.isdecimal()) or len(text) > _LONGEST_PMID:
        raise RecordError("PMID is no number", f"got {text!r:.40}")
    version = element.get("Version") or ""
    return str(int(text)), int(version) if version.isascii() and version.isdecimal() else 1


def _read_abstract(element: Any) -> tuple[str, tuple[Part, ...]]:
    """Return the abstract as text, and where its parts are."""
    if element is None:
        return "", ()
    texts: list[str] = []
    parts: list[Part] = []
    at = 0
    for one in element.iterfind("AbstractText"):
        text = _flatten(one)
        if not text.strip():
            continue
        label = _tidy(one.get("Label") or "")
        before = f"{label}: " if label else ""
        start = at + len(before)
        texts.append(before + text)
        parts.append(Part(label, start, start + len(text)))
        at = start + len(text) + 1
    return " ".join(texts), tuple(parts)


def _read_year(issue: Any, date: Any) -> int | None:
    printed = None if issue is None else issue.find("PubDate")
    dates = [one.findtext("Year") for one in (printed, date) if one is not None]
    if printed is not None:
        dates.insert(1, printed.findtext("MedlineDate"))
    years = (_YEAR.search(one) for one in dates if one)
    return next((int(one[0]) for one in years if one), None)


def _read_mesh(element: Any) -> tuple[str, ...]:
    found = () if element is None else element.iterfind("MeshHeading/DescriptorName")
    return tuple(text for one in found if (text := _flatten(one)))


def _read_texts(element: Any) -> tuple[str, ...]:
    return tuple(text for one in (() if element is None else element) if (text := _flatten(one)))


def _is_retracted(element: Any) -> bool:
    found = () if element is None else element.iterfind("CommentsCorrections")
    return any(one.get("RefType") == "RetractionIn" for one in found)


def _flatten(element: Any) -> str:
    """Return the text of an element and all within it."""
    if element is None:
        return ""
    return _tidy((element.text or "") if not len(element) else "".join(_texts_of(element)))


def _texts_of(element: Any) -> Iterator[str]:
    if element.text:
        yield element.text
    for child in element:
        if child.tag == _MATH:  # blanks between its elements, and around its tokens, mean nothing
            yield "".join(text.strip(_BLANKS) for text in child.itertext())
        else:
            yield from _texts_of(child)
        if child.tail:
            yield child.tail


def _tidy(text: str) -> str:
    """Make the line breaks and tabs of a file blanks; leave other blanks of Unicode alone."""
    text = text.strip(_BLANKS)
    return _LAYOUT.sub(" ", text) if "\n" in text or "\t" in text or "\r" in text else text
