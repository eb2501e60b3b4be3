"""Passages of files: records and documents, cut into parts of usual length."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from langchain_core.documents import Document

from deepera_graph.errors import InputError
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.paper_keys import RETRACTED
from deepera_graph.retrieval.documents import find_form
from deepera_graph.retrieval.documents.pdf_pages import PdfReader, check_reader_name
from deepera_graph.retrieval.file_records import BadRecord, Record, read_file
from deepera_graph.retrieval.files import (
    MAX_WORDS,
    InFile,
    Skipped,
    cut_article,
    cut_text,
    describe_left_out,
    find_files,
)
from deepera_graph.settings.ranges import check_at_least
from deepera_graph.text.records import MOST_BAD, REFERENCES, TABLES, describe_wrong_file, guess_kind

_logger = logging.getLogger(__name__)
_MOST_WITHOUT_TEXT = 1000  # records at the beginning of a file, before it is given up
_IS_QUESTIONS = "This looks like a file of questions: see deepera rerank"


OnSkip = Callable[[Skipped], None]
OnRead = Callable[[int, int], None]
OnFile = Callable[[str], None]
OnRecord = Callable[[Mapping[str, Any]], None]
OnPath = Callable[[Path], None]


def read_passages(
    path: str | Path | Sequence[str | Path],
    *,
    max_words: int | None = MAX_WORDS,
    pdf_reader: PdfReader = "pypdf",
    on_skip: OnSkip | None = None,
    on_read: OnRead | None = None,
    on_file: OnFile | None = None,
    on_record: OnRecord | None = None,
    on_begin: OnPath | None = None,
    on_end: OnPath | None = None,
) -> Iterator[Document]:
    """Read passages one by one, in order; a folder's files in order of their names, nested too.

    - ``.jsonl``, ``.ndjson``: one object a line; ``.json``: a list of them, or of references as CSL
      has them; ``.csv``, ``.tsv``: a header, then one row a passage; ``.ris``, ``.bib``: references
      of citation managers and publishers; ``.nbib``: records of PubMed.
    - Fields, in any case: `text` (or `page_content`, `contents`, `content`, `abstract`, `Abstract
      Note`, `passage`, `segment`, `body`), and if known `id` (or `_id`, `docid`; else `pmid`, `doi`
      or `key`), `title`, `metadata`; others become metadata, `Publication Year` as `year` and what
      the journal is called as `journal`.
    - ``.txt``: one file is one text, unless it begins with the header of a table.
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
        on_begin: Called with the path of every file before it is read.
        on_end: Called with the path of a file that was read to its end, no record of it failing.

    Raises:
        InputError: The file is missing or of another kind; or while reading, unless *on_skip* is
            given: a file is empty, or a record, named by its line, is no JSON, no UTF-8, has no
            text, or repeats an id; or a document is broken, protected or scanned.
        SettingsError: *max_words* is out of range, there is no such *pdf_reader*, or its package is
            not installed and the file a PDF.
    """
    if max_words is not None:
        check_at_least("max_words", max_words, 1)
    check_reader_name(pdf_reader)
    paths = [path] if isinstance(path, str | Path) else list(path)
    if "" in paths:  # `Path` would take it for the current folder
        raise InputError("a source must be a file, a folder or a pattern, got ''")
    files, others = find_files(list(map(Path, paths)), pdf_reader)
    if on_skip is not None:
        for one in others:
            on_skip(one)
    elif others:
        for line in describe_left_out(others):
            _logger.warning("%s", line)
    return _Reader(
        files=files,
        max_words=max_words,
        pdf_reader=pdf_reader,
        on_skip=on_skip,
        on_read=on_read,
        on_file=on_file,
        on_record=on_record,
        on_begin=on_begin,
        on_end=on_end,
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
    on_begin: OnPath | None
    on_end: OnPath | None
    _n_lost: int = 0  # records
    _seen: dict[str, tuple[int, bool]] = field(default_factory=dict)  # hash of text, is retracted
    _here: set[str] = field(default_factory=set)  # ids of the file that is read

    def read(self) -> Iterator[Document]:
        n_before, n_in_all = 0, sum(file.size for file in self.files)
        for file in self.files:
            n_lost = self._n_lost
            if self.on_begin is not None:
                self.on_begin(file.path)
            try:
                with file.open() as (source, raw):
                    for record in self._read_file(file, source):
                        self._tell(n_before + raw.tell(), n_in_all)
                        yield from _cut_record(record, file.path, self.max_words)
                if self.on_end is not None and self._n_lost == n_lost:
                    self.on_end(file.path)
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
        held: list[BadRecord] = []
        is_right_kind = False
        self._here.clear()
        for found in records:
            one = self._note_record(self._check_id(found) if isinstance(found, Record) else found)
            if isinstance(one, Record):
                if not is_right_kind and self.on_file is not None:
                    self.on_file(form)
                is_right_kind = True
                yield one
            else:
                # One that was read before is of the right kind, too.
                is_right_kind |= bool(one.fields) and (form in REFERENCES or one.is_repeated)
                held.append(one)
            if is_right_kind or self.on_skip is None:
                self._skip_all(held)
            self._check_kind(file.path, held)
        if held:
            raise _wrong_file(file.path, held, whole=True)
        if not is_right_kind:
            raise InputError(f"{file.path}: {_describe_empty(file, form)}")

    def _note_record(self, one: Record | BadRecord) -> Record | BadRecord:
        """Tell of a record that can be used, or is a paper without an abstract."""
        if self.on_record is not None:
            if isinstance(one, Record):
                self.on_record(_describe_record(one))
            elif one.skipped.without_text or one.skipped.is_known:
                self.on_record(one.fields)
        return one

    def _check_kind(self, file: Path, held: list[BadRecord]) -> None:
        n_wrong = sum(not one.skipped.without_text for one in held)
        if n_wrong == MOST_BAD or len(held) == _MOST_WITHOUT_TEXT:
            raise _wrong_file(file, held, whole=False)

    def _tell_of_parts(
        self, found: Iterable[Record | BadRecord | Skipped]
    ) -> Iterator[Record | BadRecord]:
        """Tell of parts of texts that were left out; the rest can be used, so this is no error."""
        for one in found:
            if not isinstance(one, Skipped):
                yield one
            elif self.on_skip is not None:
                self.on_skip(one)
            else:
                _logger.warning("%s", one)

    def _skip_all(self, held: list[BadRecord]) -> None:
        for skipped, *_ in held:
            if self.on_skip is None:
                raise InputError(str(skipped))
            self._n_lost += skipped.is_lost
            self.on_skip(skipped)
        held.clear()

    def _check_id(self, record: Record) -> Record | BadRecord:
        """Refuse an id that was used; a paper may have several texts, named by their place."""
        # So is a record that, unlike the one before, says that its paper was retracted, or the
        # other way round: neither is passed over.
        status = Citation.of({**record.metadata, "title": record.title}, record.id).status
        about = hash(record.text), status == RETRACTED
        known = self._seen.get(record.id, about)
        is_number = _is_row_number(record) and record.id not in self._here
        if known != about and (not record.has_own_id or known[1] != about[1] or is_number):
            record = record._replace(id=record.place)
        if record.id in self._seen:
            is_known = self._seen[record.id] == about
            same = ", with the same text" if is_known else ""
            reason = f"id {record.id!r} is used twice{same}"
            skipped = Skipped(record.place, reason, is_known=is_known)
            return BadRecord(skipped, _describe_record(record), is_repeated=True)
        self._seen[record.id] = about
        self._here.add(record.id)
        return record


def _is_row_number(record: Record) -> bool:
    """Tell whether an id is merely the number of its row, from 0 or 1, as other files have it."""
    line = record.place.rpartition(":")[2]  # that of a table counts its header
    return record.id.isdecimal() and line.isdecimal() and 0 <= int(line) - int(record.id) <= 2


def _describe_empty(file: InFile, form: str) -> str:
    with file.open() as (source, _):
        if not source.read().strip():
            return "the file is empty"
    return "the table has a header and no records" if form in TABLES else "holds no records"


def _wrong_file(file: Path, bad: list[BadRecord], *, whole: bool) -> InputError:
    hint = _IS_QUESTIONS if guess_kind(bad[0].fields) == "questions" else ""
    errors = [(int(one.place.rpartition(":")[2]), one.reason) for one, *_ in bad]
    return InputError(f"{file}: {describe_wrong_file(errors, whole=whole, hint=hint)}")


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
