"""What is done of a file of questions, so that a run that was cut short can go on."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import IO, Any, Self

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.text.jsonl import (
    naming_full_file,
    parse_object,
    read_raw_lines,
    writing_alone,
)

FORMAT = 1
Entry = dict[str, Any]
_OF_NO_EFFECT = ("settings.budget", "settings.max_concurrency", "versions")
_PACKAGE = "versions.deepera-graph"
_MOST_CHARS = 60
_MISSING = "not set"


class Journal:
    """A file beside a result, with a line for each question; it is only added to.

    Its first line says what made the others, which each have the `id` of their question; the last
    one of a question counts. A line that a kill cut off is dropped.

    Attributes:
        path: The file; the null device if it was made with None, and nothing is written.
        entries: What was found for questions, by their ids.
    """

    def __init__(self, path: Path | None, ran: Mapping[str, Any]) -> None:
        self.path, self._is_kept = path or Path(os.devnull), path is not None
        self._ran: dict[str, Any] = json.loads(json.dumps(ran, default=str))
        self.entries: dict[str, Entry] = {}
        self._file: IO[bytes] | None = None
        self._lock = Lock()

    @contextmanager
    def open(self, *, resume: bool, busy: str = "") -> Iterator[Self]:
        """Open it for adding, anew or with what it holds; no other process can meanwhile.

        Raises:
            SettingsError: Another process has it open, for which it says *busy*; or it is to be
                resumed, and was made with other settings, or is another file.
        """
        if not self._is_kept:
            yield self
            return
        with writing_alone(self.path, busy):
            end = self._load() if resume and self.path.exists() else 0
            with self.path.open("r+b" if end else "wb") as file:
                file.truncate(end)
                file.seek(end)
                self._file = file
                if not end:
                    self._write({"format": FORMAT, "ran": self._ran})
                yield self
        self._file = None

    def read(self) -> Self:
        """Read what is there, and leave the file as it is.

        Raises:
            SettingsError: It was made with other settings, or is another file.
        """
        self._load()
        return self

    def put(self, name: str, fields: Mapping[str, Any]) -> None:
        """Write what was found for a question, from any thread, and hand it over to the system."""
        entry = {"id": name, **fields}
        with self._lock:
            self.entries[name] = entry
            self._write(entry)

    def _load(self) -> int:
        """Read what is there; return where its last whole line ends."""
        end = 0
        with self.path.open("rb") as file:
            for line in read_raw_lines(file):
                if not line.text.endswith(b"\n"):
                    break  # torn when the process was killed
                try:
                    self._take(parse_object(line.text), is_first=end == 0)
                except (InputError, KeyError, TypeError) as error:
                    place = f"{str(self.path)!r}, line {line.number}"
                    raise SettingsError(f"{place} cannot be read: {error}") from error
                end = line.end
        return end

    def _take(self, fields: Entry, *, is_first: bool) -> None:
        if not is_first:
            self.entries[fields["id"]] = fields
            return
        if fields.get("format") != FORMAT:
            raise InputError(f"it is not of format {FORMAT}, give --overwrite to start over")
        if found := find_differences(fields["ran"], self._ran):
            raise SettingsError(f"{str(self.path)!r} cannot be continued: {'; '.join(found)}")

    def _write(self, fields: Entry) -> None:
        if not self._is_kept:
            return
        assert self._file is not None
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False)
        with naming_full_file(self.path):
            self._file.write(text.encode("utf-8", "backslashreplace") + b"\n")
            self._file.flush()


def find_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Name what makes the lines of two runs differ: ``settings.threshold was 0.8 and is 0.7``.

    What a run may cost, how much it does at once, and the versions of other packages make no
    difference.
    """
    old, new = dict(_leaves(before)), dict(_leaves(now))
    return [
        f"{name} was {_show(old, name)} and is {_show(new, name)}"
        for name in sorted(old.keys() | new.keys())
        if _matters(name) and old.get(name) != new.get(name)
    ]


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from _leaves(part, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def _matters(name: str) -> bool:
    inside = any(name == one or name.startswith(f"{one}.") for one in _OF_NO_EFFECT)
    return name == _PACKAGE or not inside


def _show(leaves: Mapping[str, Any], name: str) -> str:
    text = repr(leaves[name]) if name in leaves else _MISSING
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}..."
