"""An output file that a later run can continue."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self
from zlib import crc32

from deepera_graph.errors import SettingsError
from deepera_graph.jobs.facts import Facts
from deepera_graph.jobs.identity import differences
from deepera_graph.jobs.journal import Entry, Journal
from deepera_graph.jobs.lines import BadLine, DoneLine, QuestionLine, RawLine
from deepera_graph.jobs.lock import lock

_DONE_AGAIN = "budget_stop"
_AFTER_ALL = float("inf")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an entry is in the journal, and where its output line is in the output."""

    entry: int
    line: int


class Progress:
    """Writes lines in their order and notes them in the manifest; use it in a `with` block.

    Lines are handed in by their order in the input: with `keep` if an earlier run is done with
    them (`done` says so), else with `add` and `add_bad`. Neither file is touched before the first
    line that must be written. If a line is missing among those that are done, the ones after it
    wait in the manifest for their turn.

    Args:
        out: The output; a regular file.
        manifest: The journal beside it.
        ran: What runs, as `identity_of` has it.
        resume: Whether to go on with what is there; from the beginning, if nothing is.
        overwrite: Whether to replace what is there.

    Raises:
        SettingsError: On entering the block: *out* is of another run, or was changed since.
    """

    def __init__(
        self, out: Path, manifest: Path, ran: Mapping[str, Any], *, resume: bool, overwrite: bool
    ) -> None:
        self._out, self._path, self._ran = out, manifest, ran
        self._goes_on = resume and out.exists() and out.stat().st_size > 0
        self._may_replace = resume or overwrite
        self._journal: Journal | None = None
        self._file: BinaryIO | None = None
        self._places: dict[int, _Place] = {}
        self._n_met = self._position = 0
        self._begun = False
        self._lock = Lock()

    def __enter__(self) -> Self:
        if self._goes_on:
            try:
                self._load()
            except BaseException:
                self._close()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType
    ) -> None:
        """Close both files; if all went well, even an empty output is there."""
        try:
            if kind is None and (not self._goes_on or self._out.stat().st_size > self._position):
                self._begin(_AFTER_ALL)
        finally:
            self._close()

    @property
    def manifest(self) -> dict[str, Any]:
        """What ran, as the report has it."""
        return {name: value for name, value in self._ran.items() if name != "spec"}

    def done(self, line: RawLine) -> DoneLine | None:
        """Return a line of the input as done, if it is; a bad line that was mended is not.

        Raises:
            SettingsError: The line is another one now.
        """
        with self._lock:
            place = self._places.get(line.number)
            if place is None:
                return None
            entry = self._read(place)
            if entry.digest == line.digest:
                return DoneLine(
                    number=line.number,
                    end=line.end,
                    id=entry.id,
                    facts=entry.facts,
                    error=entry.error,
                )
            if entry.facts is None:
                del self._places[line.number]
                return None
        raise SettingsError(
            f"line {line.number} is not the one that {str(self._out)!r} was made from; "
            "lines may be added at the end, but those that are done must stay as they are"
        )

    def keep(self, line: DoneLine) -> None:
        """See that the output line of a line that is done is in its place."""
        entry = self._entry(line.number)
        self._n_met += 1
        if entry.held is not None:
            self._begin(line.number)
        if self._begun and entry.facts is not None:
            text = self._entry(line.number).held or ""
            self._append(replace(entry, held=None), text.encode())
        else:
            self._position += entry.size

    def add(self, line: QuestionLine, data: bytes, facts: Facts) -> None:
        """Write an output line."""
        self._begin(line.number)
        entry = Entry(
            line=line.number,
            id=line.id,
            digest=line.digest,
            size=len(data),
            checksum=crc32(data),
            facts=facts,
        )
        self._append(entry, data)

    def add_bad(self, line: BadLine) -> None:
        """Note a line that has no output line."""
        self._begin(line.number)
        entry = Entry(line=line.number, id=line.id, digest=line.digest, error=line.error)
        self._append(entry, b"")

    def finish(self) -> None:
        """Make sure that every line that was done has been met again.

        Raises:
            SettingsError: One is missing.
        """
        if self._n_met < len(self._places):
            raise SettingsError(
                f"{len(self._places)} lines are done in {str(self._out)!r}, but only "
                f"{self._n_met} of them are there; is the input, or --limit, shorter than before?"
            )

    def _load(self) -> None:
        out = self._open()
        self._journal = Journal.open(self._path)
        found = differences(self._journal.ran, self._ran)
        if found:
            raise SettingsError(f"{str(self._out)!r} cannot be continued: {'; '.join(found)}")
        for place, entry in self._journal.entries():
            start = out.tell()
            if entry.held is None and not self._is_whole(entry, out.read(entry.size)):
                break
            if entry.facts is not None and entry.facts["outcome"] == _DONE_AGAIN:
                self._places.pop(entry.line, None)
            else:
                self._places[entry.line] = _Place(place, start)

    def _is_whole(self, entry: Entry, data: bytes) -> bool:
        if len(data) < entry.size:
            return False
        if crc32(data) != entry.checksum:
            raise SettingsError(
                f"{str(self._out)!r} was changed since: it has another line for {entry.id!r}; "
                "without that line and all after it, it can be continued"
            )
        return True

    def _begin(self, number: float) -> None:
        """Cut the output before a line, and have the lines after it wait in the manifest."""
        if self._begun:
            return
        out = self._file or self._open()
        with self._lock:
            places = dict(sorted(self._places.items()))
            journal = Journal.create(self._path, self._ran, self._waiting(places, number))
            if self._journal is not None:
                self._journal.close()
            self._journal = journal
            self._places = {entry.line: _Place(place, 0) for place, entry in journal.entries()}
        out.truncate(self._position)
        out.seek(0, os.SEEK_END)
        self._begun = True

    def _open(self) -> BinaryIO:
        """Open the output, and keep other processes out."""
        mode: Literal["r+b", "xb"] = "r+b" if self._may_replace and self._out.exists() else "xb"
        self._file = _open_binary(self._out, mode)
        lock(self._file, self._out)
        return self._file

    def _waiting(self, places: Mapping[int, _Place], number: float) -> Iterator[bytes]:
        """Yield the entries in order, those after a line with their output."""
        if not places:
            return
        with self._out.open("rb") as out:
            for line, place in places.items():
                text = self._text(place)
                if line >= number:
                    text = _held(Entry.of(text), out, place.line).to_bytes()
                yield text

    def _append(self, entry: Entry, data: bytes) -> None:
        self._journal.append(entry)  # type: ignore[union-attr]  # `_begin` has made both
        self._file.write(data)  # type: ignore[union-attr]
        self._file.flush()  # type: ignore[union-attr]

    def _entry(self, number: int) -> Entry:
        with self._lock:
            return self._read(self._places[number])

    def _read(self, place: _Place) -> Entry:
        return Entry.of(self._text(place))

    def _text(self, place: _Place) -> bytes:
        return self._journal.read(place.entry)  # type: ignore[union-attr]  # there are places

    def _close(self) -> None:
        for file in (self._journal, self._file):
            if file is not None:
                file.close()


def _open_binary(path: Path, mode: Literal["r+b", "xb"]) -> BinaryIO:
    file: BinaryIO = path.open(mode)
    return file


def _held(entry: Entry, out: BinaryIO, place: int) -> Entry:
    """Return an entry with its output line, if it has one."""
    if entry.held is not None or entry.facts is None:
        return entry
    out.seek(place)
    return replace(entry, held=out.read(entry.size).decode())
