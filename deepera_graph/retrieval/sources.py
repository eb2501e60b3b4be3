"""Passages of files: records and documents, cut into parts of usual length."""

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

from langchain_core.documents import Document

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.paper_keys import RETRACTED
from deepera_graph.passages import (
    ID_FIELDS,
    TEXT_FIELDS,
    describe_no_text,
    field_key,
    has_value,
    join_sentences,
    take_field,
)
from deepera_graph.retrieval.documents import DOCX, FORMS, PDF, find_form, read_document
from deepera_graph.retrieval.documents.article import Article, to_utf8
from deepera_graph.retrieval.documents.pdf_pages import PdfReader, check_reader_name
from deepera_graph.retrieval.files import (
    MAX_WORDS,
    InFile,
    Skipped,
    cut_article,
    cut_text,
    describe_other_kinds,
    find_files,
    read_file_name,
)
from deepera_graph.text.jsonl import RawRecord, parse_object
from deepera_graph.text.plain import drop_markup
from deepera_graph.text.records import (
    MOST_BAD,
    REFERENCES,
    TABLES,
    describe_wrong_file,
    guess_kind,
    read_records,
)
from deepera_graph.text.references import NO_ABSTRACT

_logger = logging.getLogger(__name__)
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
_NO_ABSTRACT = "[No abstract available]"  # as Scopus writes it
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?")
_IS_QUESTIONS = "This looks like a file of questions: see deepera rerank"


class Record(NamedTuple):
    """One text of a file."""

    place: str  # file and line, for messages
    id: str  # its place when the file gives none
    text: str  # not blank
    title: str  # empty if not known
    metadata: dict[str, Any]  # everything else the file says about it
    has_own_id: bool  # whether the file gives an id that no other record may have
    article: Article | None = None  # tells the sections and pages


class _Bad(NamedTuple):
    """A record that cannot be used, and the fields it has."""

    skipped: Skipped
    fields: Mapping[str, Any] = MappingProxyType({})


class _NoTextError(InputError):
    """A record has no text."""


OnSkip = Callable[[Skipped], None]
OnRead = Callable[[int, int], None]
OnFile = Callable[[str], None]
OnRecord = Callable[[Mapping[str, Any]], None]


def read_passages(
    path: str | Path | Sequence[str | Path],
    *,
    max_words: int | None = MAX_WORDS,
    pdf_reader: PdfReader = "pypdf",
    on_skip: OnSkip | None = None,
    on_read: OnRead | None = None,
    on_file: OnFile | None = None,
    on_record: OnRecord | None = None,
) -> Iterator[Document]:
    """Read passages one by one, in order; a folder's files in order of their names, nested too.

    - ``.jsonl``, ``.ndjson``: one object a line; ``.json``: a list of them, or of references as CSL
      has them; ``.csv``, ``.tsv``: a header, then one row a passage; ``.ris``, ``.bib``: references
      of citation managers and publishers; ``.nbib``: records of PubMed.
    - Fields, in any case: `text` (or `page_content`, `contents`, `content`, `abstract`, `Abstract
      Note`, `passage`, `segment`, `body`), and if known `id` (or `_id`, `docid`; else `pmid`, `doi`
      or `key`), `title`, `metadata`; others become metadata, `Publication Year` as `year` and what
      the journal is called as `journal`.
    - ``.txt``: one file is one text.
    - ``.md``, ``.html``, ``.docx``, and ``.xml`` and ``.nxml`` in JATS, the form of PubMed Central:
      one file is one text, cut at its highest headings, which are the `section` of a passage.
    - ``.pdf`` (extra `documents`, or `pdfium`): one file is one text, cut at its usual headings;
      the metadata of a passage also has `page`, and if it ends on another `last_page` and
      `page_starts`, where in the passage each page begins.
    - Any of these with ``.gz`` behind it, or in a ``.zip``.

    A file is read as what its content says where that is sure, whatever its suffix. A text above
    *max_words* is cut between sentences into parts ``ID#1``, ``ID#2``, ... numbered in the metadata
    as `part`. Without an id it is ``FILE:LINE`` or the file. The metadata names the file as
    `source` unless it has one. Hidden files of a folder are passed over.

    Args:
        path: A file, a folder, an archive or a pattern such as ``papers/*.pdf``; or several.
        max_words: Most words in a passage, >= 1; the default is 350, and None cuts nothing.
        pdf_reader: ``"pypdf"``, or ``"pdfium"``, which is four times as fast.
        on_skip: Called with every record and file that cannot be used, so that it costs itself
            alone; without it the first one is an error, and files of other kinds are logged.
        on_read: Called with the bytes read so far, and those of all files.
        on_file: Called with the form, such as ``.pdf``, of every file that has a passage.
        on_record: Called with the fields of every record and document, those of papers without an
            abstract among them.

    Raises:
        InputError: The file is missing or of another kind; or while reading, unless *on_skip* is
            given: a file is empty, or a record, named by its line, is no JSON, no UTF-8, has no
            text, or repeats an id; or a document is broken, protected or scanned.
        SettingsError: *max_words* is out of range, there is no such *pdf_reader*, or its package is
            not installed and the file a PDF.
    """
    if max_words is not None and max_words < 1:
        raise SettingsError(f"max_words must be >= 1, got {max_words!r}")
    check_reader_name(pdf_reader)
    paths = [path] if isinstance(path, str | Path) else list(path)
    if "" in paths:  # `Path` would take it for the current folder
        raise InputError("a source must be a file, a folder or a pattern, got ''")
    files, others = find_files(list(map(Path, paths)), pdf_reader)
    if on_skip is not None:
        for one in others:
            on_skip(one)
    elif others:
        _logger.warning("%s", describe_other_kinds(others))
    return _Reader(
        files=files,
        max_words=max_words,
        pdf_reader=pdf_reader,
        on_skip=on_skip,
        on_read=on_read,
        on_file=on_file,
        on_record=on_record,
    ).read()


@dataclass(kw_only=True)
class _Reader:
    """Reads files one after the other; remembers the ids."""

    files: list[InFile]
    max_words: int | None
    pdf_reader: PdfReader
    on_skip: OnSkip | None
    on_read: OnRead | None
    on_file: OnFile | None
    on_record: OnRecord | None
    _seen: dict[str, tuple[int, bool]] = field(default_factory=dict)  # hash of text, is retracted

    def read(self) -> Iterator[Document]:
        n_before, n_in_all = 0, sum(file.size for file in self.files)
        for file in self.files:
            try:
                with file.open() as (source, raw):
                    for record in self._read_file(file, source):
                        self._tell(n_before + raw.tell(), n_in_all)
                        yield from _cut_record(record, file.path, self.max_words)
            except InputError as error:
                if self.on_skip is None:
                    raise
                reason = str(error).removeprefix(str(file.path)).lstrip(": ")
                self.on_skip(Skipped(file.path.as_posix(), reason))
            n_before += file.size
            self._tell(n_before, n_in_all)

    def _tell(self, n_read: int, n_in_all: int) -> None:
        if self.on_read is not None:
            self.on_read(n_read, n_in_all)

    def _read_file(self, file: InFile, source: BinaryIO) -> Iterator[Record]:
        """Yield the records that can be used; give up a file that begins with bad ones alone."""
        form = find_form(file.path, source)
        records = self._tell_of_parts(
            read_file(file.path, source, form=form, pdf_reader=self.pdf_reader)
        )
        held: list[_Bad] = []
        is_right_kind = False
        for found in records:
            one = self._note_record(self._check_id(found) if isinstance(found, Record) else found)
            if isinstance(one, Record):
                if not is_right_kind and self.on_file is not None:
                    self.on_file(form)
                is_right_kind = True
                yield one
            else:
                is_right_kind |= form in REFERENCES and bool(one.fields)
                held.append(one)
            if is_right_kind or self.on_skip is None:
                self._skip_all(held)
            self._check_kind(file.path, held)
        if held:
            raise _wrong_file(file.path, held, whole=True)
        if not is_right_kind:
            raise InputError(f"{file.path}: {_describe_empty(file, form)}")

    def _note_record(self, one: Record | _Bad) -> Record | _Bad:
        """Tell of a record that can be used, or is a paper without an abstract."""
        if self.on_record is not None:
            if isinstance(one, Record):
                self.on_record(_describe_record(one))
            elif one.skipped.without_text:
                self.on_record(one.fields)
        return one

    def _check_kind(self, file: Path, held: list[_Bad]) -> None:
        n_wrong = sum(not one.skipped.without_text for one in held)
        if n_wrong == MOST_BAD or len(held) == _MOST_WITHOUT_TEXT:
            raise _wrong_file(file, held, whole=False)

    def _tell_of_parts(self, found: Iterable[Record | _Bad | Skipped]) -> Iterator[Record | _Bad]:
        """Tell of parts of texts that were left out; the rest can be used, so this is no error."""
        for one in found:
            if not isinstance(one, Skipped):
                yield one
            elif self.on_skip is not None:
                self.on_skip(one)
            else:
                _logger.warning("%s", one)

    def _skip_all(self, held: list[_Bad]) -> None:
        for skipped, _ in held:
            if self.on_skip is None:
                raise InputError(str(skipped))
            self.on_skip(skipped)
        held.clear()

    def _check_id(self, record: Record) -> Record | _Bad:
        """Refuse an id that was used; a paper may have several texts, named by their place.

        So is a record that, unlike the one before, says that its paper was retracted, or the other
        way round: neither is passed over.
        """
        status = Citation.of({**record.metadata, "title": record.title}, record.id).status
        about = hash(record.text), status == RETRACTED
        known = self._seen.get(record.id, about)
        if known != about and (not record.has_own_id or known[1] != about[1]):
            record = record._replace(id=record.place)
        if record.id in self._seen:
            return _Bad(Skipped(record.place, f"id {record.id!r} is used twice"))
        self._seen[record.id] = about
        return record


def _describe_empty(file: InFile, form: str) -> str:
    with file.open() as (source, _):
        if not source.read().strip():
            return "the file is empty"
    return "the table has a header and no records" if form in TABLES else "holds no records"


def _wrong_file(file: Path, bad: list[_Bad], *, whole: bool) -> InputError:
    hint = _IS_QUESTIONS if guess_kind(bad[0].fields) == "questions" else ""
    errors = [(int(one.place.rpartition(":")[2]), one.reason) for one, _ in bad]
    return InputError(f"{file}: {describe_wrong_file(errors, whole=whole, hint=hint)}")


def read_file(
    file: Path, source: BinaryIO, *, form: str = "", pdf_reader: PdfReader = "pypdf"
) -> Iterator[Record | _Bad | Skipped]:
    """Read the records of one open file; its *form* is what its content and its name say."""
    form = form or find_form(file, source)
    if form in FORMS:
        yield from _read_articles(file, source, form, pdf_reader)
        return
    for raw in read_records(to_utf8(source, file), form, to_value=_parse_cell):
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


def _read_articles(
    file: Path, source: BinaryIO, form: str, pdf_reader: PdfReader
) -> Iterator[Record | Skipped]:
    """Read the articles of a document; of several each has the name of the file and its place."""
    named = read_file_name(file) if form in {PDF, DOCX} else {}
    articles = read_document(file, source, form, pdf_reader=pdf_reader)
    name, about = file.as_posix(), {"year": named["year"]} if "year" in named else {}
    for number, one in enumerate(articles, start=1):
        id = name if number == 1 else f"{name}:{number}"
        title = one.title or named.get("title", "")
        rest = _drop_title(one, title)
        yield Record(id, id, rest.whole.text, title, {**about, **one.metadata}, True, rest)
        if one.unread:
            yield Skipped(name, one.unread)


def _drop_title(article: Article, title: str) -> Article:
    """Leave out a first section that is the title alone, which every passage has as metadata."""
    first, *rest = article.sections
    is_title = not first.name and _fold(first.text) == _fold(title)
    return article._replace(sections=tuple(rest)) if rest and is_title else article


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


def _parse_cell(name: str, cell: str) -> object:
    if field_key(name) in _TEXTUAL or not _NUMBER.fullmatch(cell):
        return cell
    return float(cell) if "." in cell else int(cell)


def _to_record(place: str, raw: RawRecord) -> Record:
    if raw.error:
        raise (_NoTextError if raw.error == NO_ABSTRACT else InputError)(raw.error)
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
        text=drop_markup(text) or text,
        title=drop_markup(title or "").strip(),
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


def _describe_record(one: Record) -> dict[str, Any]:
    """Return what a record says of its paper: of a document the abstract, or how it begins."""
    text, own = one.text, {"id": one.id} if one.has_own_id else {}
    if one.article is not None:
        named = {section.name.casefold(): section.text for section in one.article.sections}
        text = cut_text(named.get("abstract", named.get("summary", text)))[0]
    return {**one.metadata, **own, "title": one.title, "text": text}


def _cut_record(record: Record, file: Path, max_words: int | None) -> Iterator[Document]:
    metadata = {"source": file.as_posix(), **record.metadata}
    if record.title:
        metadata["title"] = record.title
    if record.article is None:
        parts = [(part, dict[str, Any]()) for part in cut_text(record.text, max_words=max_words)]
    else:
        parts = list(cut_article(record.article, max_words))
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
