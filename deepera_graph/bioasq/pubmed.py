"""PubMed's baseline and update files as a stream of records and deletions.

A record is cut out of its file at its end tag and parsed alone: one that is ill-formed costs no
neighbour, memory does not grow with the file, and what a file declares (DTD, entities) is passed
over unread, so nothing is fetched or expanded.

Source:
    https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd and
    https://www.nlm.nih.gov/bsd/licensee/elements_descriptions.html
"""

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from gzip import GzipFile
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, get_args

from deepera_graph.errors import InputError
from deepera_graph.packages import import_extra

RecordFault = Literal["ill-formed", "no PMID", "PMID is no number", "no article", "stray text"]
FileFault = Literal["empty", "not PubMed", "cut off", "wrong MD5"]
Fault = RecordFault | FileFault
OF_FILES: tuple[FileFault, ...] = get_args(FileFault)
MOST_KEPT = 100  # broken records that are told one by one; all are counted
SUFFIXES = (".xml", ".xml.gz")
_OFFICIAL = re.compile(r"pubmed\d\dn\d+\.xml(?:\.gz)?")
_BLOCK = 1 << 18  # bytes read at once
_LONGEST = 1 << 25  # bytes of one record; the longest of PubMed has about 2 MB
_MAGIC = b"\x1f\x8b"
_SHOWN = 4096  # bytes of what stands between records
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
_ENCODING = re.compile(rb"<\?xml[^>]*?\bencoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
_HTML = re.compile(rb"\s*(?:<!DOCTYPE\s+html|<html|<head|<body)", re.IGNORECASE)
_MD5 = re.compile(r"\b[0-9a-fA-F]{32}\b")
_PMID = re.compile(rb"<PMID[^>]*>\s*(\d+)\s*</PMID>")
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
class Record:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A record or a file that could not be used, or not wholly."""

    file: str
    fault: Fault
    reason: str
    number: int | None = None  # of the record in its file, from 1; None for the file itself
    pmid: str | None = None  # if it can be read

    def __str__(self) -> str:
        """Return ``pubmed25n0003.xml.gz, record 17 (PMID 123): ill-formed: ...``."""
        place = "" if self.number is None else f", record {self.number}"
        known = f" (PMID {self.pmid})" if self.pmid else ""
        return f"{self.file}{place}{known}: {self.fault}: {self.reason}"


class Problems:
    """What could not be used: all counted by fault; files and the first records are kept."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first: list[Problem] = []

    def add(self, problem: Problem) -> None:
        """Count a problem, and keep it unless there are many."""
        self.counts[problem.fault] += 1
        if len(self.first) < MOST_KEPT or problem.fault in OF_FILES:
            self.first.append(problem)

    @property
    def has_bad_file(self) -> bool:
        """Whether a whole file is at fault."""
        return any(self.counts[fault] for fault in OF_FILES)


class _RecordError(Exception):
    """A record that cannot be used."""

    def __init__(self, fault: RecordFault, reason: str) -> None:
        super().__init__(reason)
        self.fault: RecordFault = fault


OnRead = Callable[[int], None]


def find_files(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """Return the files to read, in the order in which later ones win.

    A folder stands for its ``.xml`` and ``.xml.gz`` files, nested ones too, by name. Where all
    files are named as PubMed names them (``pubmed25n0001.xml.gz``), their names alone give the
    order, as they number baseline and update files through; else it is the order of *paths*.

    Raises:
        InputError: A path is missing, a file of another kind, a folder without such files, or two
            files have one name.
    """
    files: dict[Path, None] = {}
    given = [paths] if isinstance(paths, str | Path) else paths
    for path in map(Path, given):
        files |= dict.fromkeys(_find_below(path))
    found = [*files]
    if all(_OFFICIAL.fullmatch(one.name) for one in found):
        found.sort(key=lambda one: (one.name.partition(".")[0], one.name))
    twice = [name for name, n in Counter(one.name for one in found).items() if n > 1]
    if twice:
        raise InputError(f"two files are named {twice[0]}: give each of them once")
    return found


def _find_below(path: Path) -> list[Path]:
    if path.is_dir():
        below = [one for one in sorted(path.rglob("*")) if one.name.lower().endswith(SUFFIXES)]
        if not below:
            raise InputError(f"the folder {str(path)!r} holds no {' or '.join(SUFFIXES)} file")
        return [one for one in below if one.is_file()]
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}")
    if not path.name.lower().endswith(SUFFIXES):
        raise InputError(f"{path}: expected {' or '.join(SUFFIXES)}, as PubMed's files are named")
    return [path]


def read_pubmed(
    paths: str | Path | Iterable[str | Path],
    *,
    problems: Problems | None = None,
    on_read: OnRead | None = None,
) -> Iterator[Record | Deleted]:
    """Yield the records and deletions of files and folders, file after file, as they stand there.

    What a later file or a higher version replaces is not worked out here, see
    `deepera_graph.bioasq.corpus.write_corpus`. Memory holds one record.

    Args:
        paths: Files ``.xml`` or ``.xml.gz``, or folders; see `find_files` for their order.
        problems: Takes what cannot be used, which then costs itself alone; without it the first
            problem is an error. A file that is cut off is read up to there.
        on_read: Called with the bytes that were read of all files so far, as they are on disk.

    Raises:
        InputError: A path is missing or of another kind; or, without *problems*, a record or a
            file cannot be used.
        SettingsError: lxml is not installed (extra ``bioasq``).
    """
    n_before = 0
    for path in find_files(paths):
        yield from read_file(path, problems=problems, n_before=n_before, on_read=on_read)
        n_before += path.stat().st_size


def read_file(
    path: Path,
    *,
    problems: Problems | None = None,
    n_before: int = 0,
    on_read: OnRead | None = None,
) -> Iterator[Record | Deleted]:
    """Yield the records and deletions of one file; see `read_pubmed`."""
    reader = _FileReader(path, problems, n_before, on_read)
    try:
        with path.open("rb") as raw:
            yield from reader.read(raw)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


class _Hashed:
    """A file that is hashed and counted as it is read."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw, self.md5, self.n_read = raw, hashlib.md5(usedforsecurity=False), 0

    def read(self, n: int = -1) -> bytes:
        block = self._raw.read(n)
        self.md5.update(block)
        self.n_read += len(block)
        return block


class _FileReader:
    """Reads one file, and says what is wrong with it."""

    def __init__(
        self, path: Path, problems: Problems | None, n_before: int, on_read: OnRead | None
    ) -> None:
        self._path, self._problems = path, problems
        self._n_before, self._on_read = n_before, on_read
        self._n, self._broken_off = 0, ""
        self._head = b""
        self._encoding: str | None = None

    def read(self, raw: BinaryIO) -> Iterator[Record | Deleted]:
        """Yield what the file holds."""
        source = _Hashed(raw)
        cutter = _Cutter(self._blocks(source))
        first: bytes | None = None  # stray text, which may be that of a file of another kind
        for piece in cutter.pieces():
            if not piece.name:
                if self._n:
                    self._add_stray(piece.xml)
                first = first or piece.xml
                continue
            if not self._n and first is not None:
                self._add_stray(first)
            self._n += 1
            try:
                yield from _parse_piece(piece, cutter.set_tag, self._encoding)
            except _RecordError as error:
                found = _PMID.search(piece.xml) if error.fault == "ill-formed" else None
                self._add(error.fault, str(error), self._n, found[1].decode() if found else None)
        self._check_end(source, cutter)

    def _blocks(self, source: _Hashed) -> Iterator[bytes]:
        """Yield the file's bytes, decompressed if they are compressed, whatever its name says."""
        first = source.read(_BLOCK)
        is_gzip = first.startswith(_MAGIC)
        stream: Any = _Rest(first, source)
        if is_gzip:
            stream = GzipFile(fileobj=stream, mode="rb")
        try:
            # read1: of a file that is cut off, what was decompressed before is not lost
            while block := stream.read1(_BLOCK):
                if not self._head:
                    self._head = block[:_SHOWN]
                    self._encoding = _read_encoding(self._head)
                yield block
                if self._on_read is not None:
                    self._on_read(self._n_before + source.n_read)
        except (OSError, EOFError, zlib.error) as error:
            if not is_gzip:
                raise
            self._broken_off = str(error)

    def _check_end(self, source: _Hashed, cutter: "_Cutter") -> None:
        while source.read(_BLOCK):  # what decompression left
            pass
        if not source.n_read or (not self._head and not self._broken_off):
            self._add("empty", "there is nothing in it")
        elif self._broken_off or (cutter.is_pubmed and not cutter.is_closed):
            why = self._broken_off or "it has no </PubmedArticleSet>"
            self._add("cut off", f"{why}; {self._n} record{'s' * (self._n != 1)} before")
        elif not cutter.is_pubmed:
            self._add("not PubMed", self._describe_other())
        self._check_md5(source.md5.hexdigest())

    def _describe_other(self) -> str:
        if _HTML.match(self._head):
            return "it is an HTML page; was the download refused?"
        return f"it has no record of PubMed, it begins with {self._head[:40]!r}"

    def _check_md5(self, digest: str) -> None:
        beside = self._path.with_name(f"{self._path.name}.md5")
        if not beside.is_file():
            return
        found = _MD5.search(beside.read_text("utf-8", "replace"))
        if found is None:
            self._add("wrong MD5", f"{beside.name} holds no MD5")
        elif found[0].lower() != digest:
            self._add("wrong MD5", f"{beside.name} has {found[0]}, the file {digest}")

    def _add_stray(self, text: bytes) -> None:
        self._add("stray text", f"{text[:60].decode('utf-8', 'replace')!r}")

    def _add(
        self, fault: Fault, reason: str, number: int | None = None, pmid: str | None = None
    ) -> None:
        problem = Problem(
            file=self._path.name, fault=fault, reason=reason, number=number, pmid=pmid
        )
        if self._problems is None:
            raise InputError(str(problem))
        self._problems.add(problem)


def _read_encoding(head: bytes) -> str | None:
    found = _ENCODING.search(head)
    return found[1].decode() if found else None


class _Rest:
    """A stream whose first block was read already."""

    def __init__(self, first: bytes, source: _Hashed) -> None:
        self._first, self._source = first, source

    def read(self, n: int = -1) -> bytes:
        if self._first:
            block = self._first if n < 0 else self._first[:n]
            self._first = self._first[len(block) :]
            return block
        return self._source.read(n)

    read1 = read


class _Piece(NamedTuple):
    """An element of the file, or, without a name, what stands between them and is none."""

    name: bytes
    xml: bytes


class _Cutter:
    """Cuts a file into its elements.

    Attributes:
        set_tag: Start tag of the set if it has attributes (namespaces, say); else empty.
        is_pubmed: Whether there was the beginning of a set, or of an element of one.
        is_closed: Whether the end of the set was seen.
    """

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._held, self._at = b"", 0  # what is in memory, and how far it is used
        self._gap = b""
        self.set_tag = b""
        self.is_pubmed = self.is_closed = False

    def pieces(self) -> Iterator[_Piece]:
        """Yield the elements in order."""
        while True:
            found = self._find_top()
            if rest := self._read_gap():
                yield _Piece(b"", rest)
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
            self._gap = (self._gap + between)[:_SHOWN]

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

    def _cut_element(self, name: bytes) -> Iterator[_Piece]:
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
            yield _Piece(name, xml)
            return
        starts = [one for one in _TOP.finditer(xml) if one[1]]
        ends = [one.start() for one in starts[1:]] + [len(xml)]
        for one, stop in zip(starts, ends, strict=True):
            yield _Piece(one[1], xml[one.start() : stop])

    def _cut_open(self, name: bytes) -> Iterator[_Piece]:
        """Cut an element without an end at the next one, or where memory or the set ends.

        One that ends where the file is cut off is part of that.
        """
        found = next((one for one in _TOP.finditer(self._held, self._at + 1) if one[1]), None)
        end = found.start() if found else len(self._held)
        xml = self._held[self._at : end]
        self._at = end
        if found is None:
            self.is_closed |= _END_OF_SET in xml
        if found or self.is_closed or len(xml) > _LONGEST:
            yield _Piece(name, xml)


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


def _parse_piece(piece: _Piece, set_tag: bytes, encoding: str | None) -> Iterator[Record | Deleted]:
    xml = piece.xml if not set_tag else set_tag + piece.xml + b"</PubmedArticleSet>"
    try:
        root = _etree().fromstring(xml, _parser(encoding))
    except (_etree().XMLSyntaxError, LookupError) as error:
        raise _RecordError("ill-formed", str(getattr(error, "msg", error))) from error
    element = root[0] if set_tag else root
    if piece.name == b"PubmedArticle":
        yield _read_article(element)
    elif piece.name == b"PubmedBookArticle":
        yield _read_book(element)
    else:
        yield from [Deleted(_read_pmid(one)[0]) for one in element.iterfind("PMID")]


def _read_article(element: Any) -> Record:
    citation = _children(element.find("MedlineCitation"))
    pmid, version = _read_pmid(citation.get("PMID"))
    if "Article" not in citation:
        raise _RecordError("no article", f"PMID {pmid} has no Article")
    article = _children(citation["Article"])
    journal = _children(article.get("Journal"))
    abstract, parts = _read_abstract(article.get("Abstract"))
    types = _read_texts(article.get("PublicationTypeList"))
    return Record(
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


def _read_book(element: Any) -> Record:
    book = element.find("BookDocument")
    pmid, version = _read_pmid(None if book is None else book.find("PMID"))
    abstract, parts = _read_abstract(book.find("Abstract"))
    title = _flatten(book.find("ArticleTitle")) or _flatten(book.find("Book/BookTitle"))
    language = _flatten(book.find("Language"))
    return Record(
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
        raise _RecordError("no PMID", "there is no PMID")
    if not (text.isascii() and text.isdecimal()) or len(text) > _LONGEST_PMID:
        raise _RecordError("PMID is no number", f"got {text!r:.40}")
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
