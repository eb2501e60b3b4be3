"""The elements of PubMed's files: cut out, and parsed alone into a record or deletions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

from deepera_graph.packages import import_extra

SHOWN = 4096  # bytes of what stands between records
_LONGEST = 1 << 25  # bytes of one record; the longest of PubMed has about 2 MB
_TAIL = 32  # bytes that may be the beginning of a tag
_CUT_TAG = re.compile(rb"<[^<>]*\Z")  # at the end of a file that is cut off
_TOP = re.compile(
    rb"<(PubmedArticle|PubmedBookArticle|DeleteCitation)(?=[\s/>])|(<!--)|(<!DOCTYPE)"
)
_STARTS = (b"<PubmedArticle", b"<PubmedBookArticle", b"<DeleteCitation")
_DOCTYPE = re.compile(rb"<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL)
_SET = re.compile(rb"<PubmedArticleSet\b[^>]*>")
_FRAME = re.compile(rb"<\?.*?\?>|</?PubmedArticleSet\b[^>]*>|\xef\xbb\xbf", re.DOTALL)
_END_OF_SET = b"</PubmedArticleSet"


class PubmedElement(NamedTuple):
    """An element of the file, or, without a name, what stands between them and is none."""

    name: bytes
    xml: bytes


class Cutter:
    """Cuts a file into its elements."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._held, self._at = b"", 0  # what is in memory, and how far it is used
        self._gap = b""
        self.set_tag = b""  # start tag of the set, if it has attributes (namespaces, say)
        self.is_pubmed = False  # whether there was the beginning of a set, or of an element of one
        self.is_closed = False  # whether the end of the set was seen

    def pieces(self) -> Iterator[PubmedElement]:
        """Yield the elements in order."""
        while True:
            found = self._find_top()
            if rest := self._read_gap():
                yield PubmedElement(b"", rest)
            if found is None:
                return
            if found[1]:
                self.is_pubmed = True
                yield from self._cut_element(found[1])
            else:
                self._skip(found)

    def _fill(self) -> bool:
        """Get a further block; drop what was used."""
        block = next(self._blocks, b"")
        self._held, self._at = self._held[self._at :] + block, 0
        return bool(block)

    def _find_top(self) -> re.Match[bytes] | None:
        """Find the next element; what stands before it goes into the gap."""
        while True:
            found = _TOP.search(self._held, self._at)
            end = found.start() if found else max(self._at, len(self._held) - _TAIL)
            self._see(self._held[self._at : end])
            self._at = end
            if found:
                return found
            if not self._fill():
                self._see(_CUT_TAG.sub(b"", self._held))
                self._held = b""
                return None

    def _see(self, between: bytes) -> None:
        if between and not between.isspace():
            self.is_closed |= _END_OF_SET in self._gap[-_TAIL:] + between
            self._gap = (self._gap + between)[:SHOWN]

    def _read_gap(self) -> bytes:
        """Return what does not belong between two records."""
        gap, self._gap = self._gap, b""
        if not gap:
            return b""
        if found := _SET.search(gap):
            self.is_pubmed = True
            self.set_tag = found[0] if b"=" in found[0] else b""
        return _FRAME.sub(b"", gap).strip()

    def _skip(self, found: re.Match[bytes]) -> None:
        """Pass over a comment or a document type; a tag in it is none."""
        pattern = re.compile(rb"<!--.*?-->", re.DOTALL) if found[2] else _DOCTYPE
        while (whole := pattern.match(self._held, self._at)) is None:
            if len(self._held) - self._at > _LONGEST or not self._fill():
                self._at += len(found[0])
                return
        self._at = whole.end()

    def _cut_element(self, name: bytes) -> Iterator[PubmedElement]:
        """Yield the element that begins here, and those that began before it ended."""
        end_tag, seen = b"</" + name + b">", 0
        while (end := self._held.find(end_tag, self._at + seen)) < 0:
            seen = max(0, len(self._held) - self._at - len(end_tag))
            if seen > _LONGEST or not self._fill():
                yield from self._cut_open(name)
                return
        end += len(end_tag)
        xml = self._held[self._at : end]
        self._at = end
        if all(xml.find(one, 1) < 0 for one in _STARTS):  # faster than a pattern
            yield PubmedElement(name, xml)
            return
        starts = [one for one in _TOP.finditer(xml) if one[1]]
        ends = [one.start() for one in starts[1:]] + [len(xml)]
        for one, stop in zip(starts, ends, strict=True):
            yield PubmedElement(one[1], xml[one.start() : stop])

    def _cut_open(self, name: bytes) -> Iterator[PubmedElement]:
        """Cut an element without an end at the next one, or where memory or the set ends."""
        # One that ends where the file is cut off is part of that.
        found = next((one for one in _TOP.finditer(self._held, self._at + 1) if one[1]), None)
        end = found.start() if found else len(self._held)
        xml = self._held[self._at : end]
        self._at = end
        if found is None:
            self.is_closed |= _END_OF_SET in xml
        if found or self.is_closed or len(xml) > _LONGEST:
            yield PubmedElement(name, xml)


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
    """A citation of PubMed."""

    pmid: str  # its number, digits alone
    version: int = 1  # version of the citation, >= 1
    title: str = ""  # tags and formulas flattened; empty if there is none
    # the parts joined by a blank, a labelled one as ``LABEL: text``; empty if there is none. Line
    # breaks of the file are blanks; other characters are as they stand.
    abstract: str = ""
    parts: tuple[Part, ...] = ()  # where the parts are in the abstract, in order
    year: int | None = None  # year of the issue, else of the article; None if not known
    journal: str = ""
    mesh: tuple[str, ...] = ()  # descriptors of MeSH
    publication_types: tuple[str, ...] = ()  # e.g. ``Journal Article``
    language: str = ""  # of the article, three letters
    retracted: bool = False  # whether it was retracted later; a notice of a retraction is not
    is_book: bool = False  # whether it is a chapter of a book


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
    """Yield the record of an element, or the deletions; *set_tag* is that of its set."""
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
        raise RecordError("no PMID", "it has no PMID")
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
