"""Records in files: what one line, row or text file says, checked, with its place."""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from deepera_graph.errors import InputError

TEXT_FIELDS = ("text", "page_content", "contents", "abstract")
ID_FIELDS = ("id", "_id")
_TEXTUAL = (*TEXT_FIELDS, *ID_FIELDS, "title")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?")
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*?)[ \t#]*$", re.MULTILINE)
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Record:
    """One text of a file.

    Attributes:
        place: File and line, for messages.
        id: Its id; its place when the file gives none.
        text: Not blank.
        title: Empty if not known.
        metadata: Everything else the file says about it.
    """

    place: str
    id: str
    text: str
    title: str
    metadata: dict[str, Any]


def read_json_lines(file: Path) -> Iterator[Record]:
    """Read one object a line; blank lines are passed over.

    Raises:
        InputError: A line is no JSON object, no UTF-8, or has no text.
    """
    for number, line in _lines(file):
        if line.strip():
            place = f"{file.as_posix()}:{number}"
            yield _record(place, _object(place, line))


def read_csv(file: Path) -> Iterator[Record]:
    """Read one row a text, under a header; cells that are numbers become numbers in the metadata.

    Raises:
        InputError: A row does not fit the header, is no UTF-8, or has no text.
    """
    rows = csv.DictReader((line for _, line in _lines(file)), strict=True)
    start = 1
    try:
        start = _start_of_next(rows)
        for row in rows:
            place = f"{file.as_posix()}:{start}"
            start = _start_of_next(rows)
            if None in row or None in row.values():
                raise InputError(f"{place}: the row has more or fewer cells than the header")
            yield _record(place, {name: _cell(place, name, row[name]) for name in row if row[name]})
    except csv.Error as error:
        raise InputError(f"{file.as_posix()}:{start}: not CSV: {error}") from error


def read_text(file: Path) -> Iterator[Record]:
    """Read a file as one text; a blank one gives none.

    Raises:
        InputError: The file is no UTF-8.
    """
    text = "".join(line for _, line in _lines(file))
    if text.strip():
        heading = _HEADING.search(text) if file.suffix.lower() == ".md" else None
        name = file.as_posix()
        yield Record(name, name, text, heading.group(1) if heading else "", {})


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Read by bytes, so that only line feeds end lines and a bad byte has a line number."""
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield number, (line.removeprefix(_BOM) if number == 1 else line).decode()
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{file.as_posix()}:{number}: not UTF-8: {error.reason}"
                ) from error


def _start_of_next(rows: "csv.DictReader[str]") -> int:
    return rows.line_num + 1 if rows.fieldnames else 1


def _cell(place: str, name: str, cell: str) -> object:
    if name == "metadata":
        return _object(place, cell)
    if name in _TEXTUAL or not _NUMBER.fullmatch(cell):
        return cell
    return float(cell) if "." in cell else int(cell)


def _object(place: str, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise InputError(f"{place}: not JSON: {error.msg} at column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{place}: must be a JSON object, got {line.strip()!r:.80}")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _record(place: str, values: Mapping[str, object]) -> Record:
    fields = dict(values)
    text = _text(place, fields)
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


def _text(place: str, fields: dict[str, object]) -> str:
    names = ", ".join(fields) or "nothing"
    text = _take(fields, TEXT_FIELDS)
    if isinstance(text, list) and all(isinstance(sentence, str) for sentence in text):
        text = " ".join(text)
    if not isinstance(text, str) or not text.strip():
        known = ", ".join(TEXT_FIELDS)
        raise InputError(f"{place}: has no text; it is one of {known}, found {names:.80}")
    return text


def _take(fields: dict[str, object], names: tuple[str, ...]) -> object:
    """Take out the first of the fields that has a value."""
    found = next((name for name in names if fields.get(name) is not None), None)
    return None if found is None else fields.pop(found)
