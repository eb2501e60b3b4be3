"""Files of lines and JSON lines: opened, read with what is wrong with a line, and written."""

import errno
import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from gzip import GzipFile
from pathlib import Path
from struct import unpack
from typing import Any, BinaryIO, NamedTuple, NoReturn, cast

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.text.plain import OBEYED

NOT_UTF8 = "not UTF-8; save the file as UTF-8"
GZIP = ".gz"
_ENDS = 1 << 16  # bytes
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


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
def open_records(path: Path, stored: BinaryIO | None = None) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a file, decompressed if it ends in ``.gz``; also give the file as it is on the disk."""
    # A file that is stored elsewhere, as a member of an archive, is given as *stored*.
    try:
        raw = path.open("rb") if stored is None else stored
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    with raw:
        if path.name.lower().endswith(GZIP):
            yield cast("BinaryIO", io.BufferedReader(_Gzip(str(path), mode="rb", fileobj=raw))), raw
        else:
            yield raw, raw


def measure(path: Path, raw: BinaryIO) -> int | None:
    """Return the size of a file as it is read, in bytes; None if that is not known."""
    # That of a compressed one is what its last four bytes say (RFC 1952).
    size = path.stat().st_size if path.is_file() else 0
    if not size or not path.name.lower().endswith(GZIP):
        return size or None
    raw.seek(-4, io.SEEK_END)
    (size,) = unpack("<I", raw.read(4))
    raw.seek(0)
    return size or None


def hash_ends(path: Path, digest: Any) -> str:
    """Return the hash of a file's beginning and end, by which, with its size, it is known again."""
    with path.open("rb") as file:
        digest.update(file.read(_ENDS))
        file.seek(max(0, path.stat().st_size - _ENDS))
        digest.update(file.read(_ENDS))
    return str(digest.hexdigest())


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
    """Yield each object of a file under the words that name its place in messages."""
    number = 0
    try:
        for number, line in enumerate(read_objects(path), start=1):
            yield f"{path}, record {number}", line
    except InputError as error:
        raise InputError(f"{path}, record {number + 1}: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


def has_fields(path: Path, *names: str) -> bool:
    """Tell whether the first object of a file of JSON lines (``.jsonl``) has fields so named."""
    if not path.is_file() or path.suffix != ".jsonl":
        return False
    try:
        with path.open("rb") as file:
            first = next(iter(read_raw_lines(file)), None)
            return first is not None and set(names) <= parse_object(first.text).keys()
    except InputError:
        return False


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
        what = error.msg.removesuffix(" at")  # "Unterminated string starting at"
        line_number = f" in line {error.lineno}" if error.lineno > 1 else ""
        raise InputError(f"not JSON: {what}{line_number} at column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def format_json(value: Any, *, indent: int | None = 2, allow_nan: bool = True) -> str:
    """Return a JSON value as text, with its line feed; what a terminal obeys is an escape in it.

    So is a lone surrogate, for which UTF-8 has no bytes.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=allow_nan)
    text = text.encode("utf-8", "backslashreplace").decode()
    return OBEYED.sub(lambda found: f"\\u{ord(found.group()):04x}", text) + "\n"


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write that takes the place of *path* when it is whole."""
    # A reader finds the old file or the new one, never half of one; after an error, the old one.
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def writing_alone(
    path: Path, busy: str = "", error: type[Exception] = SettingsError
) -> Iterator[None]:
    """Let no other process write a file within the block; *error* if one does, which says *busy*.

    Any thread may leave the block.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415 - pages of help need it not

    lock = FileLock(path.with_name(f"{path.name}.lock"), thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout as timeout:
        told = busy or f"{str(path)!r} is being written by another process"
        raise error(told) from timeout
    except (OSError, NotImplementedError):  # a file system that knows no locks
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):  # Windows lets nobody remove a file that is open
            Path(lock.lock_file).unlink()
        lock.release()


@contextmanager
def naming_full_file(path: object) -> Iterator[None]:
    """Have an error of a full disk within the block say which file it was."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM and error.filename is None:
            error.filename = str(path)
        raise


def to_plain(value: object) -> Any:
    """Return a value as JSON has it: NumPy's numbers and arrays too, NaN as None."""
    from pydantic_core import to_jsonable_python  # noqa: PLC0415 - pages of help need it not

    write = partial(to_jsonable_python, value, fallback=_from_numpy, inf_nan_mode="null")
    try:
        return write()
    except UnicodeDecodeError:  # bytes that are no text
        return write(bytes_mode="base64")


def _from_numpy(value: object) -> Any:
    to_list = getattr(value, "tolist", None)
    return to_list() if callable(to_list) else str(value)
