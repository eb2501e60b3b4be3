"""Passages of files: JSON lines, CSV, text and Markdown, cut into parts of usual length."""

import csv
import re
from collections.abc import Iterator, Mapping
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.documents import Document

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.text.jsonl import BOM, parse_object, read_raw_lines
from deepera_graph.text.words import Sentence, split_sentences

MAX_WORDS = 200


def cut_text(text: str, *, max_words: int = MAX_WORDS) -> list[str]:
    """Cut a text into the fewest parts of about equal length; a short one stays as it is.

    Parts are verbatim and hold every sentence once; words are told by white space, and a sentence
    of more than *max_words* is a part.
    """
    n_words = len(text.split())
    if n_words <= max_words:
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


TEXT_FIELDS = ("text", "page_content", "contents", "abstract")
ID_FIELDS = ("id", "_id")
_TEXTUAL = (*TEXT_FIELDS, *ID_FIELDS, "title")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?")
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*?)[ \t#]*$", re.MULTILINE)


class Record(NamedTuple):
    """One text of a file."""

    place: str  # file and line, for messages
    id: str  # its place when the file gives none
    text: str  # not blank
    title: str  # empty if not known
    metadata: dict[str, Any]  # everything else the file says about it


def read_json_lines(file: Path) -> Iterator[Record]:
    """Read one object a line; blank lines are passed over."""
    with file.open("rb") as lines:
        for line in read_raw_lines(lines):
            place = f"{file.as_posix()}:{line.number}"
            yield _to_record(place, _parse(place, line.text))


def read_csv(file: Path) -> Iterator[Record]:
    """Read one row a text, under a header; cells that are numbers are numbers in the metadata."""
    rows = csv.DictReader((line for _, line in _decode_lines(file)), strict=True)
    start = 1
    try:
        start = _next_line_number(rows)
        for row in rows:
            place = f"{file.as_posix()}:{start}"
            start = _next_line_number(rows)
            if None in row or None in row.values():
                raise InputError(f"{place}: the row has more or fewer cells than the header")
            yield _to_record(
                place, {name: _parse_cell(place, name, row[name]) for name in row if row[name]}
            )
    except csv.Error as error:
        raise InputError(f"{file.as_posix()}:{start}: not CSV: {error}") from error


def read_text(file: Path) -> Iterator[Record]:
    """Read a file as one text; a blank one gives none."""
    text = "".join(line for _, line in _decode_lines(file))
    if text.strip():
        heading = _HEADING.search(text) if file.suffix.lower() == ".md" else None
        name = file.as_posix()
        yield Record(name, name, text, heading.group(1) if heading else "", {})


def _decode_lines(file: Path) -> Iterator[tuple[int, str]]:
    """Read by bytes, so that only line feeds end lines and a bad byte has a line number."""
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield number, (line.removeprefix(BOM) if number == 1 else line).decode()
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{file.as_posix()}:{number}: not UTF-8: {error.reason}"
                ) from error


def _next_line_number(rows: "csv.DictReader[str]") -> int:
    return rows.line_num + 1 if rows.fieldnames else 1


def _parse_cell(place: str, name: str, cell: str) -> object:
    if name == "metadata":
        return _parse(place, cell)
    if name in _TEXTUAL or not _NUMBER.fullmatch(cell):
        return cell
    return float(cell) if "." in cell else int(cell)


def _parse(place: str, line: bytes | str) -> dict[str, Any]:
    try:
        return parse_object(line)
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


def _to_record(place: str, values: Mapping[str, object]) -> Record:
    fields = dict(values)
    text = _take_text(place, fields)
    name = _take(fields, ID_FIELDS)
    if isinstance(name, bool) or not isinstance(name, str | int | None):
        raise InputError(f"{place}: id must be a string, got {name!r:.80}")
    title = fields.pop("title", None)
    if not isinstance(title, str | None):
        raise InputError(f"{place}: title must be a string, got {title!r:.80}")
    metadata = fields.pop("metadata", None)
    if not isinstance(metadata, Mapping | None):
        raise InputError(f"{place}: metadata must be an object, got {metadata!r:.80}")
    return Record(
        place=place,
        id=place if name in (None, "") else str(name),
        text=text,
        title=(title or "").strip(),
        metadata={**fields, **(metadata or {})},
    )


def _take_text(place: str, fields: dict[str, object]) -> str:
    names = ", ".join(fields) or "nothing"
    text = _take(fields, TEXT_FIELDS)
    if isinstance(text, list) and all(isinstance(sentence, str) for sentence in text):
        text = " ".join(text)
    if not isinstance(text, str) or not text.strip():
        known = ", ".join(TEXT_FIELDS)
        raise InputError(
            f"{place}: has no text; expected one of the fields {known}, found {names:.80}"
        )
    return text


def _take(fields: dict[str, object], names: tuple[str, ...]) -> object:
    """Take out the first of the fields that has a value."""
    found = next((name for name in names if fields.get(name) is not None), None)
    return None if found is None else fields.pop(found)


_READERS = {".jsonl": read_json_lines, ".csv": read_csv, ".txt": read_text, ".md": read_text}


def read_passages(path: str | Path, *, max_words: int = MAX_WORDS) -> Iterator[Document]:
    """Read passages one by one, in order; a folder's files in order of their names, nested too.

    - ``.jsonl``: one object a line; ``.csv``: a header, then one row a passage. Fields: `text` (or
      `page_content`, `contents`, `abstract`), and if known `id` (or `_id`), `title`, `metadata`;
      others become metadata.
    - ``.txt``, ``.md``: one file is one text; a Markdown file's first heading is its title.

    A text above *max_words* is cut between sentences into parts ``ID#1``, ``ID#2``, ... numbered
    in the metadata as `part`. Without an id it is ``FILE:LINE`` or the file. The metadata names
    the file as `source` unless it has one. In a folder, hidden files and other suffixes are
    passed over.

    Args:
        path: A file, or a folder.
        max_words: Most words in a passage, >= 1; the default is 200.

    Raises:
        InputError: The file is missing, empty or of another kind; or while reading: a line, named
            by its number, is no JSON, no UTF-8, has no text, or repeats an id.
        SettingsError: *max_words* is out of range.
    """
    if max_words < 1:
        raise SettingsError(f"max_words must be >= 1, got {max_words!r}")
    path = Path(path)
    return _read_files(_find_files(path), max_words)


def _find_files(path: Path) -> list[Path]:
    if path.is_dir():
        return _find_files_below(path)
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}")
    if path.suffix.lower() not in _READERS:
        raise InputError(f"{path}: cannot read this kind of file; known are {', '.join(_READERS)}")
    return [path]


def _find_files_below(folder: Path) -> list[Path]:
    files = [
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in _READERS
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        and file.is_file()
    ]
    if not files:
        raise InputError(f"the folder {str(folder)!r} holds no {', '.join(_READERS)} file")
    return sorted(files)


def _read_files(files: list[Path], max_words: int) -> Iterator[Document]:
    seen: set[str] = set()
    for file in files:
        n_before = len(seen)
        try:
            for record in _READERS[file.suffix.lower()](file):
                if record.id in seen:
                    raise InputError(f"{record.place}: id {record.id!r} is used twice")
                seen.add(record.id)
                yield from _cut_record(record, file, max_words)
        except OSError as error:
            raise InputError(f"{file}: cannot be read: {error.strerror}") from error
        if len(seen) == n_before:
            raise InputError(f"{file}: the file is empty")


def _cut_record(record: Record, file: Path, max_words: int) -> Iterator[Document]:
    metadata = {"source": file.as_posix(), **record.metadata}
    if record.title:
        metadata["title"] = record.title
    parts = cut_text(record.text, max_words=max_words)
    if len(parts) == 1:
        yield Document(id=record.id, page_content=parts[0], metadata=metadata)
        return
    for number, part in enumerate(parts, start=1):
        yield Document(
            id=f"{record.id}#{number}", page_content=part, metadata={**metadata, "part": number}
        )
