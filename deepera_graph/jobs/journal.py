"""The manifest beside an output file: first what ran, then a line for every line that is done.

A line of the output goes into the journal before it goes into the output, with its length and
checksum. So whatever moment a process is killed at, the journal says how much of the output is
whole; a last line of either that is not is left out.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

from deepera_graph.errors import SettingsError
from deepera_graph.jobs.facts import Facts

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What was done with a line.

    Attributes:
        line: Its number, from 1.
        id: As read; None if that could not be read.
        digest: SHA-256 of the input line.
        size: Bytes of its output line, >= 0.
        checksum: CRC-32 of its output line.
        facts: What the report counts; None for a bad line.
        error: What is wrong with a bad line; empty for any other.
        held: The output line, while it cannot be in the output yet because one before it is
            missing; else None.
    """

    line: int
    id: str | None
    digest: str
    size: int = 0
    checksum: int = 0
    facts: Facts | None = None
    error: str = ""
    held: str | None = None

    def to_bytes(self) -> bytes:
        """Return a line of the journal."""
        return _json_line({name: value for name, value in asdict(self).items() if value})

    @classmethod
    def of(cls, text: bytes) -> Self:
        """Read a line of the journal."""
        fields = json.loads(text)
        return cls(**{"id": None, **fields})


class Journal:
    """A journal that can be read at any place and added to at its end.

    Attributes:
        path: The file.
        ran: What ran, as `deepera_graph.jobs.identity` has it.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self._file = path, file
        try:
            head = json.loads(file.readline())
            self.ran: dict[str, Any] = head["ran"]
            if head["format"] != FORMAT:
                raise ValueError
        except (ValueError, KeyError, TypeError) as error:
            raise SettingsError(f"{str(path)!r} is not a manifest that can be read") from error

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a journal.

        Raises:
            SettingsError: There is none, or it is something else.
        """
        try:
            file = path.open("r+b")
        except FileNotFoundError as error:
            raise SettingsError(f"nothing to go on from: no manifest {str(path)!r}") from error
        try:
            return cls(path, file)
        except SettingsError:
            file.close()
            raise

    @classmethod
    def create(cls, path: Path, ran: Mapping[str, Any], lines: Iterable[bytes]) -> Self:
        """Write a journal as a whole or not at all, in place of the one that may be there."""
        draft = path.with_name(f"{path.name}.tmp")
        try:
            with draft.open("wb") as file:
                file.write(_json_line({"format": FORMAT, "ran": ran}))
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        return cls.open(path)

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """Yield what follows, with its place in the file; a torn last line is left out.

        Raises:
            SettingsError: A line cannot be read.
        """
        place = self._file.tell()
        while (text := self._file.readline()).endswith(b"\n"):
            try:
                yield place, Entry.of(text)
            except (ValueError, TypeError) as error:
                raise SettingsError(f"{str(self.path)!r} is damaged at byte {place}") from error
            place = self._file.tell()

    def read(self, place: int) -> bytes:
        """Return the line at a place."""
        self._file.seek(place)
        return self._file.readline()

    def append(self, entry: Entry) -> None:
        """Add an entry, and hand it over to the system."""
        self._file.seek(0, os.SEEK_END)
        self._file.write(entry.to_bytes())
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _json_line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
