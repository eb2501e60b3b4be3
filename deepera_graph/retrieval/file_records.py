"""The records of one file: what each says, under common names, and why one cannot be used."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

from deepera_graph.errors import InputError
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.copies import text_key
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
from deepera_graph.retrieval.documents.pdf_pages import PdfReader
from deepera_graph.retrieval.files import Skipped, read_file_name
from deepera_graph.text.jsonl import RawRecord, parse_object
from deepera_graph.text.plain import drop_markup, read_number
from deepera_graph.text.records import read_records
from deepera_graph.text.references import NO_ABSTRACT

# Ids of papers, which stay in the metadata; used where a record has no id of its own.
PAPER_ID_FIELDS = ("pmid", "doi", "key")
# Names under which all files have what `--where` is most used for; others stay as they are.
_COMMON = {
    "authors": ("authors", "author"),
    "year": ("year", "publication_year"),
    "journal": ("journal", "publication_title", "source_title", "journal_book"),
    "doi": ("doi",),
    "pmid": ("pmid",),
    "key": ("key",),
}
_TITLE_FIELDS = ("title", "article_title")
_TEXTUAL = set(map(field_key, (*TEXT_FIELDS, *ID_FIELDS, *PAPER_ID_FIELDS, *_TITLE_FIELDS)))
_NO_ABSTRACT = "[No abstract available]"  # as Scopus writes it


class Record(NamedTuple):
    """One text of a file."""

    place: str  # file and line, for messages
    id: str  # its place when the file gives none
    text: str  # not blank
    title: str  # empty if not known
    metadata: dict[str, Any]  # everything else the file says about it
    has_own_id: bool  # whether the file gives an id that no other record may have
    article: Article | None = None  # tells the sections and pages


class BadRecord(NamedTuple):
    """A record that cannot be used, and the fields it has."""

    skipped: Skipped
    fields: Mapping[str, Any] = MappingProxyType({})
    is_repeated: bool = False  # whether it has the id of another


class _NoTextError(InputError):
    """A record has no text."""


def read_file(
    file: Path, source: BinaryIO, *, form: str = "", pdf_reader: PdfReader = "pypdf"
) -> Iterator[Record | BadRecord | Skipped]:
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
            yield BadRecord(Skipped(place, str(error), without_text=blank), raw.fields)


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
    is_title = not first.name and text_key(first.text) == text_key(title)
    return article._replace(sections=tuple(rest)) if rest and is_title else article


def _parse_cell(name: str, cell: str) -> object:
    number = None if field_key(name) in _TEXTUAL else read_number(cell)
    return cell if number is None else number


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
    if "year" not in named and (year := Citation.of(named, "").year):  # of a date
        named["year"] = int(year)
    return named
