"""An output file that a later run can continue."""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, Any, BinaryIO, Literal, Self
from zlib import crc32

from deepera_graph.errors import SettingsError
from deepera_graph.jobs.lines import BadLine, DoneLine, Facts, QuestionLine, RawLine
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.runner import versions
from deepera_graph.usage import Usage


def output_line(line: QuestionLine, result: RerankResult) -> bytes:
    """Return one line of JSON in UTF-8, with its line feed; equal judgements give equal bytes.

    `left_out` is there if passages that failed are not ranked, and `metadata` if the input line had
    fields of its own; of a passage, `quote_status` and `quote_span` if there is a quote,
    `summary_status` if it is another than ``ok``, and `windowed` if it was read in pieces. A lone
    surrogate, which UTF-8 has no bytes for, is written as its JSON escape.
    """
    fields: dict[str, Any] = {
        "id": line.id,
        "question": line.question,
        "intent": {
            **result.intent["fields"],
            "status": result.intent["status"],
            "cause": result.intent["cause"],
        },
        "outcome": result.outcome,
        "threshold": result.threshold,
        "ranking": [_ranked(passage) for passage in result.passages],
        "usage": _cost(result.total_usage),
    }
    if result.left_out:
        fields["left_out"] = [_ranked(passage) for passage in result.left_out]
    if line.metadata:
        fields["metadata"] = line.metadata
    text = json.dumps(fields, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _cost(usage: Usage) -> dict[str, int]:
    """What the judgements took; what went wrong on the way, or came from a cache, is reported."""
    return {
        "calls": usage.calls,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
    }


def _ranked(passage: RankedPassage) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": passage.id,
        "rank": passage.rank,
        "score": passage.score,
        "kept": passage.kept,
        "status": passage.status,
        "reason": passage.reason,
        "quote": passage.quote,
        "summary": passage.summary,
    }
    if passage.quote:
        fields["quote_status"], fields["quote_span"] = passage.quote_status, passage.quote_span
    if passage.summary_status not in {"", "ok"}:
        fields["summary_status"] = passage.summary_status
    if passage.windowed:
        fields["windowed"] = True
    return fields


_SECRET_PARTS_OF_URL = re.compile(r"(?<=://)[^/@\s]*@|\?\S*")
_OF_NO_EFFECT = ("settings.budget", "settings.max_concurrency", "versions")
_PACKAGE = "versions.deepera-graph"
_MOST_CHARS = 60
_MISSING = "not set"


def identity_of(reranker: EvidenceReranker) -> dict[str, Any]:
    """Return backend, model, prompts, settings and versions, as JSON values without secrets.

    Raises:
        SettingsError: The backend was made from live objects and cannot be told from others.
    """
    backend = reranker.backend
    identity = {
        "backend": backend.name,
        **backend.about,
        "spec": _without_secrets(backend.fingerprint()["spec"]),
        "settings": reranker.settings.to_dict(),
        "versions": dict(versions()),
    }
    plain: dict[str, Any] = json.loads(json.dumps(identity, default=str))
    return plain


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Name what makes the lines of two runs differ: ``settings.threshold was 0.8 and is 0.7``.

    What a run may cost, how much it does at once, and the versions of other packages make no
    difference.
    """
    old, new = dict(_leaves(before)), dict(_leaves(now))
    return [
        f"{name} was {_shown(old, name)} and is {_shown(new, name)}"
        for name in sorted(old.keys() | new.keys())
        if _counts(name) and old.get(name) != new.get(name)
    ]


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_secrets(part) for key, part in value.items()}
    if isinstance(value, str) and "://" in value:
        return _SECRET_PARTS_OF_URL.sub("", value)
    return value


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from _leaves(part, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def _counts(name: str) -> bool:
    inside = any(name == one or name.startswith(f"{one}.") for one in _OF_NO_EFFECT)
    return name == _PACKAGE or not inside


def _shown(leaves: Mapping[str, Any], name: str) -> str:
    text = repr(leaves[name]) if name in leaves else _MISSING
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}..."


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
        ran: What ran, as `deepera_graph.jobs.files` has it.
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


if sys.platform == "win32":

    def lock(file: IO[bytes], path: Path) -> None:
        """Do nothing: who has a file open there keeps others from replacing it."""

else:
    import fcntl

    def lock(file: IO[bytes], path: Path) -> None:
        """Hold a file until it is closed or the process ends, however it ends.

        Raises:
            SettingsError: Another process holds it.
        """
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SettingsError(f"{str(path)!r} is being written by another process") from error
        except OSError:  # a file system that knows no locks
            return


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
