"""Passages of files: records, text, Markdown and PDF, cut into parts of usual length."""

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

from langchain_core.documents import Document

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.passages import (
    ID_FIELDS,
    TEXT_FIELDS,
    describe_no_text,
    field_key,
    has_value,
    join_sentences,
    take_field,
)
from deepera_graph.retrieval.pdf import PDF, PdfText, check_pdf_reader, read_pdf
from deepera_graph.text.jsonl import BOM, parse_object
from deepera_graph.text.records import (
    GZIP,
    MOST_BAD,
    REFERENCES,
    SUFFIXES,
    TABLES,
    RawRecord,
    describe_wrong_file,
    guess_kind,
    open_records,
    read_records,
    suffix_of,
)
from deepera_graph.text.words import Sentence, split_sentences

MAX_WORDS = 350  # most abstracts stay whole
_logger = logging.getLogger(__name__)


def cut_text(text: str, *, max_words: int | None = MAX_WORDS) -> list[str]:
    """Cut a text into the fewest parts of about equal length; a short one stays as it is.

    Parts are verbatim and hold every sentence once; words are told by white space, and a sentence
    of more than *max_words* is a part. None cuts nothing.
    """
    n_words = len(text.split())
    if max_words is None or n_words <= max_words:
        return [text.strip()] if n_words else []
    goal = n_words / ceil(n_words / max_words)
    groups = _group_sentences(split_sentences(text), goal, max_words)
    return [text[group[0].start : group[-1].end] for group in groups]


def _group_sentences(
    sentences: list[Sentence], goal: float, limit: int
) -> Iterator[list[Sentence]]:
    group: list[Sentence] = []
    n_words = 0
    for sentence in sentences:
        length = len(sentence.text.split())
        if group and (n_words >= goal or n_words + length > limit):
            yield group
            group, n_words = [], 0
        group.append(sentence)
        n_words += length
    if group:
        yield group


# Ids of papers, which stay in the metadata; used where a record has no id of its own.
PAPER_ID_FIELDS = ("pmid", "doi", "key")
# Names under which all files have what `--where` is most used for; others stay as they are.
_COMMON = {
    "year": ("year", "publication_year"),
    "journal": ("journal", "publication_title", "source_title", "journal_book"),
    "doi": ("doi",),
    "pmid": ("pmid",),
    "key": ("key",),
}
_TITLE_FIELDS = ("title", "article_title")
_TEXTUAL = set(map(field_key, (*TEXT_FIELDS, *ID_FIELDS, *PAPER_ID_FIELDS, *_TITLE_FIELDS)))
_MOST_WITHOUT_TEXT = 1000  # records at the beginning of a file, before it is given up
_MOST_PLACES = 5  # named of those that are left out for one reason
_LINE = re.compile(r":\d+$")
_VALUE = re.compile(r"'.*'|\".*\"|\d+")
_NO_ABSTRACT = "[No abstract available]"  # as Scopus writes it
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?")
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*?)[ \t#]*$", re.MULTILINE)
_TEXTS = (".txt", ".md")
KNOWN_SUFFIXES = (*SUFFIXES, *_TEXTS, PDF)
_INSTEAD = {
    **dict.fromkeys((".doc", ".docx", ".odt"), "save it as PDF"),
    **dict.fromkeys((".bib", ".enw"), "export the library as RIS"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save the sheet as CSV"),
}
_ZOTERO_NAME = re.compile(r".+ - ((?:19|20)\d\d) - (.+)")
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_LEAST_WORDS = 3  # of a file's name that is a title; "1-s2.0-S0003-main" is none
_OTHER_KIND = "cannot read this kind of file"
_IS_QUESTIONS = "This looks like a file of questions: see deepera rerank"


class Record(NamedTuple):
    """One text of a file."""

    place: str  # file and line, for messages
    id: str  # its place when the file gives none
    text: str  # not blank
    title: str  # empty if not known
    metadata: dict[str, Any]  # everything else the file says about it
    has_own_id: bool  # whether the file gives an id that no other record may have
    pdf: PdfText | None = None  # tells the pages


class Skipped(NamedTuple):
    """A record or a file that was left out."""

    place: str  # the file, and the line
    reason: str
    other_kind: str = ""  # the suffix, if it is a file of a kind that is never read
    without_text: bool = False  # whether it is a paper, or a row, that merely has no abstract

    def __str__(self) -> str:
        """Return the place and the reason."""
        return f"{self.place}: {self.reason}"


class _Bad(NamedTuple):
    """A record that cannot be used, and the fields it has."""

    skipped: Skipped
    fields: Mapping[str, Any] = MappingProxyType({})


class _NoTextError(InputError):
    """A record has no text."""


OnSkip = Callable[[Skipped], None]
OnRead = Callable[[int, int], None]


def read_passages(
    path: str | Path,
    *,
    max_words: int | None = MAX_WORDS,
    on_skip: OnSkip | None = None,
    on_read: OnRead | None = None,
) -> Iterator[Document]:
    """Read passages one by one, in order; a folder's files in order of their names, nested too.

    - ``.jsonl``, ``.ndjson``: one object a line; ``.json``: a list of them; ``.csv``, ``.tsv``: a
      header, then one row a passage; ``.ris``: references of citation managers and publishers;
      ``.nbib``: records of PubMed.
    - Fields, in any case: `text` (or `page_content`, `contents`, `content`, `abstract`, `Abstract
      Note`, `passage`, `segment`, `body`), and if known `id` (or `_id`, `docid`; else `pmid`, `doi`
      or `key`), `title`, `metadata`; others become metadata, `Publication Year` as `year` and what
      the journal is called as `journal`.
    - ``.txt``, ``.md``: one file is one text; a Markdown file's first heading is its title.
    - ``.pdf`` (extra `documents`): one file is one text, cut at its headings, too; the metadata
      of a passage has `section`, `page`, and `last_page` if it ends on another.
    - Any of these with ``.gz`` behind it.

    A text above *max_words* is cut between sentences into parts ``ID#1``, ``ID#2``, ... numbered
    in the metadata as `part`. Without an id it is ``FILE:LINE`` or the file. The metadata names
    the file as `source` unless it has one. Hidden files of a folder are passed over.

    Args:
        path: A file, or a folder.
        max_words: Most words in a passage, >= 1; the default is 350, and None cuts nothing.
        on_skip: Called with every record and file that cannot be used, so that it costs itself
            alone; without it the first one is an error, and files of other kinds are logged.
        on_read: Called with the bytes read so far, and those of all files.

    Raises:
        InputError: The file is missing or of another kind; or while reading, unless *on_skip* is
            given: a file is empty, or a record, named by its line, is no JSON, no UTF-8, has no
            text, or repeats an id; or a PDF is broken, protected or scanned.
        SettingsError: *max_words* is out of range, or pypdf is not installed and the file a PDF.
    """
    if max_words is not None and max_words < 1:
        raise SettingsError(f"max_words must be >= 1, got {max_words!r}")
    files, others = _find_files(Path(path))
    if on_skip is not None:
        for one in others:
            on_skip(one)
    elif others:
        _logger.warning("%s", describe_other_kinds(others))
    return _Reader(files, max_words, on_skip, on_read).read()


def describe_other_kinds(skipped: Iterable[Skipped], most: int = 5) -> str:
    """Return ``skipped 2 files (1 .bib, 1 .png): lib.bib, plot.png``, and what would read them."""
    files = list(skipped)
    kinds = sorted(Counter(one.other_kind for one in files).items())
    counts = ", ".join(f"{n} {kind}" for kind, n in kinds)
    names = ", ".join(one.place for one in files[:most])
    more = f" and {len(files) - most} more" if len(files) > most else ""
    hints = "".join(f"; {one}" for one in dict.fromkeys(one.reason for one in files))
    hints = hints.replace(f"; {_OTHER_KIND}", "")
    return f"skipped {len(files)} file{'s' * (len(files) > 1)} ({counts}): {names}{more}{hints}"


class SkippedKind:
    """What was left out for one reason: how many, and the first of them."""

    def __init__(self) -> None:
        self.n = 0
        self.first: list[Skipped] = []

    def add(self, one: Skipped) -> None:
        """Count one."""
        self.n += 1
        if len(self.first) < _MOST_PLACES:
            self.first.append(one)

    def __str__(self) -> str:
        """Return ``6 records without text: lib.csv:3, 4, 6, 7, 9 and 1 more``."""
        one = self.first[0]
        if self.n == 1 and not one.without_text:
            return str(one)
        what = "record" if _LINE.search(one.place) else "file"
        example = "e.g. " if len({each.reason for each in self.first}) > 1 else ""
        why = " without text" if one.without_text else f" ({example}{_shorten(one.reason)})"
        more = f" and {self.n - len(self.first)} more" if self.n > len(self.first) else ""
        return f"{self.n} {what}{'s' * (self.n > 1)}{why}: {self._places()}{more}"

    def _places(self) -> str:
        """Name the file once for all its lines."""
        named, before = list[str](), None
        for place in (one.place for one in self.first):
            file, _, number = place.rpartition(":") if _LINE.search(place) else (place, "", "")
            named.append(number if file == before else place)
            before = file
        return ", ".join(named)


def kind_of(one: Skipped) -> str:
    """Return what records that are left out for the same reason have in common."""
    return f"{bool(_LINE.search(one.place))} {_VALUE.sub('', _shorten(one.reason))}"


def _shorten(reason: str) -> str:
    return reason.partition(";")[0]


def _find_files(path: Path) -> tuple[list[Path], list[Skipped]]:
    if path.is_dir():
        return _find_files_below(path)
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}")
    if suffix_of(path) not in KNOWN_SUFFIXES:
        instead = f"; {_INSTEAD[suffix_of(path)]}" if suffix_of(path) in _INSTEAD else ""
        raise InputError(
            f"{path}: cannot read this kind of file; known are {', '.join(KNOWN_SUFFIXES)}, "
            f"with {GZIP} or without{instead}"
        )
    if suffix_of(path) == PDF:
        check_pdf_reader(path)
    return [path], []


def _find_files_below(folder: Path) -> tuple[list[Path], list[Skipped]]:
    visible = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    ]
    unread = dict.fromkeys(
        {suffix_of(file) for file in visible}.difference(KNOWN_SUFFIXES), _OTHER_KIND
    )
    try:
        check_pdf_reader()
    except SettingsError as error:
        unread[PDF] = str(error)
    files = [file for file in visible if suffix_of(file) not in unread]
    others = [
        Skipped(file.as_posix(), unread[suffix_of(file)], suffix_of(file) or "without suffix")
        for file in visible
        if suffix_of(file) in unread
    ]
    if not files:
        found = f"; {describe_other_kinds(others)}" if others else ""
        raise InputError(
            f"the folder {str(folder)!r} holds no {', '.join(KNOWN_SUFFIXES)} file{found}"
        )
    return files, others


class _Reader:
    """Reads files one after the other; remembers the ids."""

    def __init__(
        self,
        files: list[Path],
        max_words: int | None,
        on_skip: OnSkip | None,
        on_read: OnRead | None,
    ) -> None:
        self._files, self._max_words, self._on_skip = files, max_words, on_skip
        self._on_read = on_read
        self._seen: dict[str, int] = {}  # id, and the hash of its text

    def read(self) -> Iterator[Document]:
        """Yield the passages of all files."""
        sizes = [file.stat().st_size for file in self._files]
        n_before, n_in_all = 0, sum(sizes)
        for file, size in zip(self._files, sizes, strict=True):
            try:
                with open_records(file) as (source, raw):
                    found = self._tell_of_parts(read_file(file, source))
                    for record in self._read_file(file, found):
                        self._tell(n_before + raw.tell(), n_in_all)
                        yield from _cut_record(record, file, self._max_words)
            except InputError as error:
                if self._on_skip is None:
                    raise
                self._on_skip(
                    Skipped(file.as_posix(), str(error).removeprefix(str(file)).lstrip(": "))
                )
            n_before += size
            self._tell(n_before, n_in_all)

    def _tell(self, n_read: int, n_in_all: int) -> None:
        if self._on_read is not None:
            self._on_read(n_read, n_in_all)

    def _read_file(self, file: Path, records: Iterable[Record | _Bad]) -> Iterator[Record]:
        """Yield the records that can be used; give up a file that begins with bad ones alone."""
        held: list[_Bad] = []
        is_right_kind = False
        for found in records:
            one = self._check_id(found) if isinstance(found, Record) else found
            if isinstance(one, Record):
                is_right_kind = True
                yield one
            else:
                is_right_kind |= suffix_of(file) in REFERENCES and bool(one.fields)
                held.append(one)
            if is_right_kind or self._on_skip is None:
                self._skip_all(held)
            n_wrong = sum(not one.skipped.without_text for one in held)
            if n_wrong == MOST_BAD or len(held) == _MOST_WITHOUT_TEXT:
                raise _wrong_file(file, held, whole=False)
        if held:
            raise _wrong_file(file, held, whole=True)
        if not is_right_kind:
            raise InputError(f"{file}: {_describe_empty(file)}")

    def _tell_of_parts(self, found: Iterable[Record | _Bad | Skipped]) -> Iterator[Record | _Bad]:
        """Tell of parts of texts that were left out; the rest can be used, so this is no error."""
        for one in found:
            if not isinstance(one, Skipped):
                yield one
            elif self._on_skip is not None:
                self._on_skip(one)
            else:
                _logger.warning("%s", one)

    def _skip_all(self, held: list[_Bad]) -> None:
        for skipped, _ in held:
            if self._on_skip is None:
                raise InputError(str(skipped))
            self._on_skip(skipped)
        held.clear()

    def _check_id(self, record: Record) -> Record | _Bad:
        """Refuse an id that was used; a paper may have several texts, named by their place."""
        digest = hash(record.text)
        if record.id in self._seen and not record.has_own_id and self._seen[record.id] != digest:
            record = record._replace(id=record.place)
        if record.id in self._seen:
            return _Bad(Skipped(record.place, f"id {record.id!r} is used twice"))
        self._seen[record.id] = digest
        return record


def _describe_empty(file: Path) -> str:
    if suffix_of(file) in TABLES:
        with open_records(file) as (source, _):
            if source.read().strip():
                return "the table has a header and no records"
    return "the file is empty"


def _wrong_file(file: Path, bad: list[_Bad], *, whole: bool) -> InputError:
    hint = _IS_QUESTIONS if guess_kind(bad[0].fields) == "questions" else ""
    errors = [(int(one.place.rpartition(":")[2]), one.reason) for one, _ in bad]
    return InputError(f"{file}: {describe_wrong_file(errors, whole=whole, hint=hint)}")


def read_file(file: Path, source: BinaryIO) -> Iterator[Record | _Bad | Skipped]:
    """Read the records of one open file."""
    if suffix_of(file) in _TEXTS:
        yield from _read_text(file, source)
        return
    if suffix_of(file) == PDF:
        yield from _read_pdf(file, source)
        return
    for raw in read_records(source, suffix_of(file), to_value=_parse_cell):
        place = f"{file.as_posix()}:{raw.number}"
        try:
            yield _to_record(place, raw)
        except InputError as error:
            blank = isinstance(error, _NoTextError) and _is_paper(raw.fields)
            yield _Bad(Skipped(place, str(error), without_text=blank), raw.fields)


def _is_paper(fields: Mapping[str, Any]) -> bool:
    """Tell whether a record has a title, or a blank text: it is what it was taken for."""
    keys = set(map(field_key, fields))
    return not keys.isdisjoint(map(field_key, (*_TITLE_FIELDS, *TEXT_FIELDS)))


def _read_text(file: Path, source: BinaryIO) -> Iterator[Record]:
    """Read a file as one text; a blank one gives none."""
    raw = source.read().removeprefix(BOM)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        number = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{file}: not UTF-8: {error.reason} in line {number}") from error
    if text.strip():
        heading = _HEADING.search(text) if suffix_of(file) == ".md" else None
        name = file.as_posix()
        yield Record(name, name, text, heading.group(1) if heading else "", {}, True)


def _read_pdf(file: Path, source: BinaryIO) -> Iterator[Record | Skipped]:
    name, pdf = file.as_posix(), read_pdf(file, source)
    titled = _read_file_name(file)
    metadata = {"year": titled["year"]} if "year" in titled else {}
    title = pdf.title or titled["title"]
    yield Record(name, name, pdf.whole.text, title, {**metadata, **pdf.metadata}, True, pdf)
    if pdf.unread:
        yield Skipped(name, pdf.unread)


def _read_file_name(file: Path) -> dict[str, Any]:
    """Return `title`, which may be empty, and maybe `year`, as in Zotero's ``A - 2019 - B.pdf``."""
    stem = re.sub(r"(?i)\.pdf(?:\.gz)?$", "", file.name).replace("_", " ")
    if found := _ZOTERO_NAME.fullmatch(stem):
        return {"title": found[2], "year": int(found[1])}
    stem = stem if " " in stem else stem.replace("-", " ")
    return {"title": stem if len(_LONG_WORD.findall(stem)) >= _LEAST_WORDS else ""}


def _parse_cell(name: str, cell: str) -> object:
    if field_key(name) in _TEXTUAL or not _NUMBER.fullmatch(cell):
        return cell
    return float(cell) if "." in cell else int(cell)


def _to_record(place: str, raw: RawRecord) -> Record:
    if raw.error:
        raise InputError(raw.error)
    fields = dict(raw.fields)
    text = _take_text(fields)
    name = take_field(fields, ID_FIELDS)
    if name is not None and not _is_name(name):
        raise InputError(f"id must be a string, got {name!r:.80}")
    title = take_field(fields, _TITLE_FIELDS)
    if not isinstance(title, str | None):
        raise InputError(f"title must be a string, got {title!r:.80}")
    metadata = fields.pop("metadata", None)
    if isinstance(metadata, str):  # a cell of a table
        metadata = parse_object(metadata)
    if not isinstance(metadata, Mapping | None):
        raise InputError(f"metadata must be an object, got {metadata!r:.80}")
    metadata = _name_commonly({**fields, **(metadata or {})})
    _check_encodable(name, title, text, metadata)
    paper = next(filter(_is_name, map(metadata.get, PAPER_ID_FIELDS)), None)
    return Record(
        place=place,
        id=str(next(filter(_is_name, (name, paper)), place)),
        text=text,
        title=(title or "").strip(),
        metadata=metadata,
        has_own_id=name is not None or paper is None,
    )


def _check_encodable(*parts: object) -> None:
    try:
        json.dumps(parts, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InputError("has half a character (a lone surrogate), as UTF-8 cannot") from error


def _is_name(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and has_value(value)


def _take_text(fields: dict[str, Any]) -> str:
    message = describe_no_text(fields)
    text = join_sentences(take_field(fields, TEXT_FIELDS))
    if not isinstance(text, str) or not text.strip() or text.strip() == _NO_ABSTRACT:
        raise _NoTextError(message)
    return text


def _name_commonly(fields: dict[str, Any]) -> dict[str, Any]:
    """Give the fields of papers their common names, unless a field has that name already."""
    named = dict(fields)
    for name, names in _COMMON.items():
        if name not in named and (value := take_field(named, names)) is not None:
            named[name] = value
    return named


def _cut_record(record: Record, file: Path, max_words: int | None) -> Iterator[Document]:
    metadata = {"source": file.as_posix(), **record.metadata}
    if record.title:
        metadata["title"] = record.title
    if record.pdf is None:
        parts = [(part, dict[str, Any]()) for part in cut_text(record.text, max_words=max_words)]
    else:
        parts = list(_cut_pdf(record.pdf, max_words))
    if len(parts) == 1:
        [(text, place)] = parts
        yield Document(id=record.id, page_content=text, metadata={**metadata, **place})
        return
    for number, (part, place) in enumerate(parts, start=1):
        yield Document(
            id=f"{record.id}#{number}",
            page_content=part,
            metadata={**metadata, "part": number, **place},
        )


def _cut_pdf(pdf: PdfText, max_words: int | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Cut the sections of a PDF, and say where each part stands."""
    for section in [pdf.whole] if max_words is None else pdf.sections:
        end = 0
        for part in cut_text(section.text, max_words=max_words):
            start = section.text.index(part, end)
            end = start + len(part)
            yield part, section.find_place(start, end)
