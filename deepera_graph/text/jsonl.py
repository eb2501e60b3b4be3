"""Lines and JSON lines: the one reader, which names what is wrong with a line."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from deepera_graph.errors import InputError

NOT_UTF8 = "not UTF-8; save the file as UTF-8"


class RawRecord(NamedTuple):
    """One record of a file: its fields, or what is wrong with it; of a reference maybe both."""

    number: int  # of the line it begins in, or its place in a JSON list; from 1
    fields: dict[str, Any]
    error: str = ""


def decode_lines(source: BinaryIO) -> Iterator[str]:
    """Decode by lines, so that only line feeds end them; a byte that is no UTF-8 is marked."""
    for number, line in enumerate(source):
        text = line.removeprefix(BOM) if number == 0 else line
        yield text.decode("utf-8", "surrogateescape")


def find_bad_byte(texts: Iterable[str]) -> bool:
    """Tell whether a byte was no UTF-8, as `decode_lines` marks it."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return True
    return False


BOM = b"\xef\xbb\xbf"


class RawLine(NamedTuple):
    """A line of a file that is not blank."""

    number: int  # from 1
    end: int  # bytes of the file up to the end of this line
    text: bytes  # the line, with its line feed, without a byte order mark


def read_raw_lines(source: Iterable[bytes]) -> Iterator[RawLine]:
    """Yield the lines that are not blank, one in memory at a time; only a line feed ends a line."""
    end = 0
    for number, line in enumerate(source, start=1):
        end += len(line)
        if line.strip():
            yield RawLine(number, end, line.removeprefix(BOM) if number == 1 else line)


def read_objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the object of each line of a file that is not blank."""
    with path.open("rb") as file:
        for line in read_raw_lines(file):
            yield parse_object(line.text)


def read_places(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object of a file under the words that name its place in messages.

    Raises:
        InputError: A record is no object, or the file cannot be read; it names the place.
    """
    number = 0
    try:
        for number, line in enumerate(read_objects(path), start=1):
            yield f"{path}, record {number}", line
    except InputError as error:
        raise InputError(f"{path}, record {number + 1}: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


def parse_object(line: bytes | str) -> dict[str, Any]:
    """Read one JSON object."""
    value = parse_value(line)
    if not isinstance(value, dict):
        raise InputError(f"must be a JSON object, got {value!r:.80}")
    return value


def parse_value(line: bytes | str) -> Any:
    """Read one JSON value."""
    try:
        text = line.decode() if isinstance(line, bytes) else line
        return json.loads(text, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8: {error.reason} at byte {error.start + 1}") from error
    except json.JSONDecodeError as error:
        line_number = f" in line {error.lineno}" if error.lineno > 1 else ""
        raise InputError(f"not JSON: {error.msg}{line_number} at column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")
