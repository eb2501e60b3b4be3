"""Files of records: JSON lines, JSON, CSV, TSV, RIS and PubMed's, compressed by gzip or not."""

import csv
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from gzip import GzipFile
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from deepera_graph.errors import InputError
from deepera_graph.passages import ID_FIELDS, TEXT_FIELDS, field_key
from deepera_graph.text.jsonl import BOM, parse_object, parse_value, read_raw_lines

GZIP = ".gz"
LINES = (".jsonl", ".ndjson")
TABLES = {".csv": ",", ".tsv": "\t"}
NBIB, RIS = ".nbib", ".ris"
REFERENCES = (NBIB, RIS)
SUFFIXES = (*LINES, ".json", *TABLES, *REFERENCES)
QUESTION_FIELDS = ("question", "query")
CANDIDATE_FIELDS = ("passages", "contexts", "documents", "candidates", "hits")
MOST_BAD = 20  # so many bad ones at the beginning, and no good one, are the wrong file
_SHOWN = 3
_DELIMITERS = (",", ";", "\t")
_WITHOUT_HEADER = ("id", "text")
_NBIB_LINE = re.compile(r"(?=.{4}- )([A-Z]{2,4}) *- (.*)")
_NBIB_DOI = re.compile(r"(\S+) \[doi\]")
_RIS_LINE = re.compile(r"([A-Z][A-Z0-9])  - ?(.*)")
_RIS_PREAMBLE = re.compile(r"(?:Provider|Database|Content) ?:")  # as some publishers begin a file
_RIS_FIELDS = {
    "key": ("ID",),
    "title": ("TI", "T1", "BT", "CT"),
    "journal": ("JF", "T2", "JO", "JA", "J2"),
    "url": ("UR",),
    "type": ("TY",),
}
_RIS_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi: *)?(10\.\d{4,9}/\S+)", re.IGNORECASE)
_YEAR = re.compile(r"\d{4}")
_KNOWN = {field_key(one) for one in (*ID_FIELDS, *TEXT_FIELDS, *QUESTION_FIELDS, "title", "qid")}


class RawRecord(NamedTuple):
    """One record of a file: its fields, or what is wrong with it; of a reference maybe both."""

    number: int  # of the line it begins in, or its place in a JSON list; from 1
    fields: dict[str, Any]
    error: str = ""


def suffix_of(path: Path) -> str:
    """Return the suffix that tells the kind of a file, in lower case, without ``.gz``."""
    name = path.name.lower()
    return Path(name.removesuffix(GZIP)).suffix


class _Gzip(GzipFile):
    """Says which file is damaged."""

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer."""
        try:
            return super().readinto(buffer)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{self.name} cannot be read: {error}") from error


@contextmanager
def open_records(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a file, decompressed if it ends in ``.gz``; also give the file as it is on the disk.

    Raises:
        InputError: The file cannot be opened; or while reading: it is damaged.
    """
    try:
        raw = path.open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    with raw:
        if path.name.lower().endswith(GZIP):
            yield cast("BinaryIO", io.BufferedReader(_Gzip(fileobj=raw))), raw
        else:
            yield raw, raw


def read_records(
    source: BinaryIO, suffix: str, *, to_value: Callable[[str, str], Any] = lambda name, cell: cell
) -> Iterator[RawRecord]:
    """Read the records of a file, a bad one as such; a cell of a table is what *to_value* returns.

    A ``.json`` file is a list of objects, an object that holds one such list, one object, or JSON
    lines under another name. A ``.nbib`` file is what PubMed calls its own format, or exports for
    citation managers; a ``.ris`` file is what citation managers and publishers export. A table has
    a header; its cells are separated by commas, or by semicolons or tabs if the header is. A
    ``.tsv`` file of two columns without a known name is read as `id` and `text`, without a header.
    Empty cells are left out.
    """
    if suffix in TABLES:
        return _read_table(source, TABLES[suffix], to_value)
    if suffix in REFERENCES:
        return _read_nbib(source) if suffix == NBIB else _read_ris(source)
    return _read_json(source) if suffix == ".json" else _read_json_lines(source)


def _read_json_lines(source: BinaryIO) -> Iterator[RawRecord]:
    for line in read_raw_lines(source):
        try:
            yield RawRecord(line.number, parse_object(line.text))
        except InputError as error:
            yield RawRecord(line.number, {}, str(error))


def _read_json(source: BinaryIO) -> Iterator[RawRecord]:
    text = source.read().removeprefix(BOM)
    if not text.strip():
        return
    try:
        value = parse_value(text)
    except InputError as error:
        if _has_json_lines(text):
            yield from _read_json_lines(io.BytesIO(text))
        else:
            yield RawRecord(1, {}, str(error))
        return
    for number, item in enumerate(_find_items(value), start=1):
        if isinstance(item, dict):
            yield RawRecord(number, item)
        else:
            yield RawRecord(number, {}, f"must be a JSON object, got {item!r:.80}")


def _has_json_lines(text: bytes) -> bool:
    try:
        return isinstance(parse_value(text.lstrip().partition(b"\n")[0]), dict)
    except InputError:
        return False


def _find_items(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if not isinstance(value, dict) or _KNOWN.intersection(map(field_key, value)):
        return [value]
    lists = [one for one in value.values() if isinstance(one, list) and one]
    return lists[0] if len(lists) == 1 and isinstance(lists[0][0], dict) else [value]


def _read_nbib(source: BinaryIO) -> Iterator[RawRecord]:
    """Read records of PubMed, each begun by its ``PMID``; a long value goes on in indented lines.

    Source:
        https://www.nlm.nih.gov/bsd/mms/medlineelements.html
    """
    for number, lines in _group_records(_decode_lines(source), "PMID"):
        values, strange = _read_tags(lines, _NBIB_LINE, "      ")
        error = f"not a record of PubMed: {strange!r:.80}" if strange else ""
        yield _to_reference(number, lines, error or _name_nbib_fields(values))


def _read_ris(source: BinaryIO) -> Iterator[RawRecord]:
    """Read references, each from ``TY`` to ``ER``; a line without a tag goes on with a value.

    Which tag holds a title or a journal differs between programs; of several the fullest counts.

    Source:
        https://en.wikipedia.org/wiki/RIS_(file_format), and exports of Zotero, EndNote, Mendeley
    """
    lines = ("\n" if _RIS_PREAMBLE.match(line) else line for line in _decode_lines(source))
    for number, group in _group_records(lines, "TY  -", "ER  -"):
        values, strange = _read_tags(group, _RIS_LINE, "")
        strange = strange or ("" if "TY" in values else group[0])
        error = f"not a reference in RIS: {strange!r:.80}" if strange else ""
        yield _to_reference(number, group, error or _name_ris_fields(values))


def _group_records(
    lines: Iterable[str], first: str, last: str | tuple[str, ...] = ()
) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of each record but blank ones, and the number of the line it begins in."""
    begun, group = 1, list[str]()
    for number, line in enumerate(lines, start=1):
        if line.startswith(first) and group:
            yield begun, group
            group = []
        if line.strip():
            begun = begun if group else number
            group.append(line.rstrip())
        if line.startswith(last):
            yield begun, group
            group = []
    if group:
        yield begun, group


def _read_tags(
    lines: Sequence[str], tagged: re.Pattern[str], indent: str
) -> tuple[dict[str, list[str]], str]:
    """Return the values of each tag, and the first line that is none and goes on with none."""
    values: dict[str, list[str]] = {}
    tag = ""
    for line in lines:
        if found := tagged.fullmatch(line):
            tag = found[1]
            values.setdefault(tag, []).append(found[2].strip())
        elif tag and line.startswith(indent):
            values[tag][-1] = f"{values[tag][-1]} {line.strip()}".lstrip()
        else:
            return values, line
    return values, ""


def _to_reference(number: int, lines: Sequence[str], found: dict[str, Any] | str) -> RawRecord:
    """Return a record of the fields that were *found* and have a value, or of an error."""
    if isinstance(found, str):
        return RawRecord(number, {}, found)
    if _find_bad_byte(lines):
        return RawRecord(number, {}, "not UTF-8")
    fields = {name: value for name, value in found.items() if value}
    return RawRecord(number, fields, "" if "abstract" in fields else "has no abstract")


def _name_nbib_fields(values: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    names = {"PMID": "pmid", "TI": "title", "AB": "abstract", "JT": "journal"}
    dois = map(_NBIB_DOI.fullmatch, [*values.get("LID", ()), *values.get("AID", ())])
    return {
        **{name: values[tag][0] for tag, name in names.items() if tag in values},
        "year": _find_year(values.get("DP", ())),
        "authors": "; ".join(values.get("FAU", values.get("AU", ()))),
        "doi": next((doi[1] for doi in dois if doi), None),
    }


def _name_ris_fields(values: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    def gather(*tags: str) -> list[str]:
        return [value for tag in tags for value in values.get(tag, ()) if value]

    dois = map(_RIS_DOI.fullmatch, gather("DO", "UR", "M3", "L3"))
    return {
        **{name: next(iter(gather(*tags)), None) for name, tags in _RIS_FIELDS.items()},
        "abstract": " ".join(gather("AB") or gather("N2")),
        "year": _find_year(gather("PY", "Y1", "DA")),
        "authors": "; ".join(gather("AU") or gather("A1")),
        "doi": next((doi[1] for doi in dois if doi), None),
        "keywords": "; ".join(gather("KW")),
    }


def _find_year(dates: Iterable[str]) -> int | None:
    years = map(_YEAR.match, dates)
    return next((int(year[0]) for year in years if year), None)


def _read_table(
    source: BinaryIO, delimiter: str, to_value: Callable[[str, str], Any]
) -> Iterator[RawRecord]:
    lines = _decode_lines(source)
    first = next(lines, "")
    if delimiter == ",":
        delimiter = max(_DELIMITERS, key=first.count)
    rows = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    header: list[str] = []
    while (row := _next_row(rows)) is not None:
        number, cells, error = row
        if not header and not error:
            header, has_no_header = _read_header(cells, delimiter)
            if not has_no_header:
                continue
        if not error:
            error = _check_row(header, cells)
        named = {} if error else dict(zip(header, cells, strict=True))
        fields = {name: to_value(name, cell) for name, cell in named.items() if name and cell}
        yield RawRecord(number, fields, error)


def _next_row(rows: Any) -> tuple[int, list[str], str] | None:
    """Return number, cells and error of the next row that is not blank; None at the end."""
    while True:
        number = rows.line_num + 1
        try:
            cells = next(rows)
        except StopIteration:
            return None
        except csv.Error as error:
            return number, [], f"not CSV: {error}"
        if cells:
            return number, cells, ""


def _read_header(cells: list[str], delimiter: str) -> tuple[list[str], bool]:
    """Return the names of the columns, and whether the row was no header."""
    names = [cell.strip() for cell in cells]
    known = _KNOWN.intersection(map(field_key, names))
    if delimiter == "\t" and len(names) == len(_WITHOUT_HEADER) and not known:
        return list(_WITHOUT_HEADER), True
    return names, False


def _decode_lines(source: BinaryIO) -> Iterator[str]:
    """Decode by lines, so that only line feeds end them; a byte that is no UTF-8 is marked."""
    for number, line in enumerate(source):
        text = line.removeprefix(BOM) if number == 0 else line
        yield text.decode("utf-8", "surrogateescape")


def _find_bad_byte(texts: Iterable[str]) -> bool:
    """Tell whether a byte was no UTF-8, as `_decode_lines` marks it."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return True
    return False


def _check_row(header: Sequence[str], cells: Sequence[str]) -> str:
    if _find_bad_byte(cells):
        return "not UTF-8; save the table as UTF-8"
    if len(cells) != len(header):
        return "the row has more or fewer cells than the header"
    return ""


def describe_wrong_file(errors: Sequence[tuple[int, str]], *, whole: bool, hint: str) -> str:
    """Say that a file is not what it was taken for: the first errors, and what it may be.

    Args:
        errors: Number and error of all records read; not empty.
        whole: Whether these are all records of the file.
        hint: What it looks like, or nothing.
    """
    n, first = len(errors), dict[str, int]()
    for number, error in errors:
        first.setdefault(error, number)
    told = [f"line {number}: {error}" for error, number in first.items()][:_SHOWN]
    which = f"the first {n} lines" if not whole else f"its {n} lines" if n > 1 else "its only line"
    more = f"; and {n - len(told)} more" if n > len(told) else ""
    none = f"none of {which} can be used" if n > 1 else f"{which} cannot be used"
    return f"{none}: {'; '.join(told)}{more}{'. ' if hint else ''}{hint}"


def guess_kind(fields: Mapping[str, Any]) -> str:
    """Return ``questions``, ``corpus`` or nothing: what a record with such fields is part of."""
    keys = set(map(field_key, fields))
    if keys.intersection(map(field_key, QUESTION_FIELDS)):
        return "questions" if keys.intersection(CANDIDATE_FIELDS) else ""
    return "corpus" if keys.intersection(map(field_key, TEXT_FIELDS)) else ""
