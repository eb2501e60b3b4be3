"""Files of records: JSON lines, JSON, CSV, TSV and references."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO

from deepera_graph.errors import InputError
from deepera_graph.passages import ID_FIELDS, TEXT_FIELDS, field_key
from deepera_graph.text import jsonl
from deepera_graph.text.bibtex import read_bibtex
from deepera_graph.text.jsonl import RawRecord
from deepera_graph.text.plain import count
from deepera_graph.text.references import name_csl_fields, read_nbib, read_ris, to_reference

LINES = (".jsonl", ".ndjson")
CSV = ".csv"
TABLES = {CSV: ",", ".tsv": "\t"}
NBIB, RIS, BIBTEX = ".nbib", ".ris", ".bib"
_READERS = {NBIB: read_nbib, RIS: read_ris, BIBTEX: read_bibtex}
REFERENCES = tuple(_READERS)
SUFFIXES = (*LINES, ".json", *TABLES, *REFERENCES)
QUESTION_FIELDS = ("question", "query")
CANDIDATE_FIELDS = ("passages", "contexts", "documents", "candidates", "hits")
UNREADABLE = "\0error"  # the field that says why a record was no JSON in its file
MOST_BAD = 20  # so many bad ones at the beginning, and no good one, are the wrong file
_SHOWN = 3
_DELIMITER_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
_DELIMITERS = tuple(_DELIMITER_NAMES)
_WITHOUT_HEADER = ("id", "text")
_KNOWN = {field_key(one) for one in (*ID_FIELDS, *TEXT_FIELDS, *QUESTION_FIELDS, "title", "qid")}
_COLUMNS = _KNOWN | set(
    map(field_key, ("authors", "author", "year", "publication_year", "journal"))
)
_COLUMNS |= {"doi", "pmid", "key", "label", "score"}
_LONGEST_NAME = 40  # of a column, in characters


def read_records(
    source: BinaryIO,
    suffix: str,
    *,
    to_value: Callable[[str, str], Any] = lambda name, cell: cell,
    are_last: Callable[[str, Sequence[str]], bool] = lambda name, cells: False,
) -> Iterator[RawRecord]:
    """Read the records of a file, a bad one as such; a cell of a table is what *to_value* gives."""
    # A ``.json`` file is a list of objects, an object that holds one such list, one object, or JSON
    # lines under another name; an item of it as CSL has references is read as one. A ``.nbib`` file
    # is what PubMed calls its own format, or exports for citation managers; ``.ris`` and ``.bib``
    # files are what citation managers and publishers export. A table has a header; its cells are
    # separated by commas, or by semicolons or tabs if the header is. A ``.tsv`` file of two columns
    # without a known name is read as `id` and `text`, without a header. Empty cells are left out.
    # Of a row with more cells than columns those from the last column on are joined if they
    # *are_last*, by the name of that column.
    if suffix in TABLES:
        return _read_table(source, TABLES[suffix], to_value, are_last)
    if suffix in REFERENCES:
        return _READERS[suffix](source)
    return _read_json(source) if suffix == ".json" else _read_json_lines(source)


def _read_json_lines(source: BinaryIO) -> Iterator[RawRecord]:
    for line in jsonl.read_raw_lines(source):
        try:
            yield RawRecord(line.number, jsonl.parse_object(line.text))
        except InputError as error:
            yield RawRecord(line.number, {}, str(error))


def _read_json(source: BinaryIO) -> Iterator[RawRecord]:
    text = source.read().removeprefix(jsonl.BOM)
    if not text.strip():
        return
    try:
        value = jsonl.parse_value(text)
    except InputError as error:
        if _has_json_lines(text):
            yield from _read_json_lines(io.BytesIO(text))
        else:
            yield RawRecord(1, {}, str(error))
        return
    for number, item in enumerate(_find_items(value), start=1):
        if isinstance(item, dict):
            named = name_csl_fields(item)
            yield RawRecord(number, item) if named is None else to_reference(number, named)
        else:
            yield RawRecord(number, {}, f"must be a JSON object, got {item!r:.80}")


def _has_json_lines(text: bytes) -> bool:
    try:
        return isinstance(jsonl.parse_value(text.lstrip().partition(b"\n")[0]), dict)
    except InputError:
        return False


def _find_items(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if not isinstance(value, dict) or _KNOWN.intersection(map(field_key, value)):
        return [value]
    lists = [one for one in value.values() if isinstance(one, list) and one]
    return lists[0] if len(lists) == 1 and isinstance(lists[0][0], dict) else [value]


def begins_table(text: str, *, whole: bool) -> bool:
    """Tell a table of passages or papers by its header and the row below, which may be cut."""
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    try:
        header, row, *others = csv.reader(io.StringIO(text), delimiter=delimiter)
    except (csv.Error, ValueError):
        return False
    names = set(map(field_key, header))
    is_header = len(names & _COLUMNS) > 1 and not names.isdisjoint(_KNOWN)
    fits = len(row) == len(header) or not (whole or others)
    return is_header and fits and max(map(len, header)) <= _LONGEST_NAME


def _read_table(
    source: BinaryIO,
    delimiter: str,
    to_value: Callable[[str, str], Any],
    are_last: Callable[[str, Sequence[str]], bool],
) -> Iterator[RawRecord]:
    lines = jsonl.decode_lines(source)
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
        n = len(header) - 1
        if not error and len(cells) > len(header) and are_last(header[-1], cells[n:]):
            cells = [*cells[:n], "; ".join(filter(None, map(str.strip, cells[n:])))]
        if not error:
            error = _check_row(header, cells, _DELIMITER_NAMES[delimiter])
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
            return number, [], _explain_row(str(error), number, rows.line_num)
        if any(map(str.strip, cells)):  # Excel writes rows of separators alone below a table
            return number, cells, ""


def _explain_row(error: str, first: int, last: int) -> str:
    """Say what is wrong with a row of lines *first* to *last* that is no CSV."""
    if "unexpected end of data" in error:
        lost = f"; it takes {count(last - first, 'line')} below with it" if last > first else ""
        return f"not CSV: a quote that opens in line {first} is never closed{lost}"
    if "field limit" in error:
        most = f"{csv.field_size_limit():,}"
        return (
            f"not CSV: a cell has more than {most} characters; "
            f"is a quote that opens in line {first} never closed?"
        )
    return f"not CSV: {error}"


def _read_header(cells: list[str], delimiter: str) -> tuple[list[str], bool]:
    """Return the names of the columns, and whether the row was no header."""
    names = [cell.strip() for cell in cells]
    known = _COLUMNS.intersection(map(field_key, names))
    if delimiter == "\t" and len(names) == len(_WITHOUT_HEADER) and not known:
        return list(_WITHOUT_HEADER), True
    return names, False


def _check_row(header: Sequence[str], cells: Sequence[str], delimiter: str) -> str:
    if jsonl.find_bad_byte(cells):
        return "not UTF-8; save the table as UTF-8"
    if len(cells) != len(header):
        quote = (
            f": put quotes round a cell that has {delimiter}" if len(cells) > len(header) else ""
        )
        return f"the row has {count(len(cells), 'cell')} in {count(len(header), 'column')}{quote}"
    return ""


def describe_wrong_file(errors: Sequence[tuple[int, str]], *, whole: bool, hint: str) -> str:
    """Say that a file is not what it was taken for: the first errors, and what it may be."""
    # *errors*, numbers and words, are of all records read, which may be those of the *whole* file.
    n, first = len(errors), dict[str, int]()
    for number, error in errors:
        first.setdefault(error, number)
    told = [f"line {number}: {error}" for error, number in first.items()][:_SHOWN]
    which = f"the first {n} lines" if not whole else f"its {n} lines" if n > 1 else "its only line"
    more = f"; and {n - len(told)} more" if n > len(told) else ""
    none = f"none of {which} can be used" if n > 1 else f"{which} cannot be used"
    return f"{none}: {'; '.join(told)}{more}{'. ' if hint else ''}{hint}"


def guess_kind(names: Iterable[str]) -> str:
    """Return ``questions``, ``corpus`` or nothing: what a record with such fields is part of."""
    keys = set(map(field_key, names))
    if keys.intersection(map(field_key, QUESTION_FIELDS)):
        return "questions" if keys.intersection(CANDIDATE_FIELDS) else ""
    return "corpus" if keys.intersection(map(field_key, TEXT_FIELDS)) else ""
