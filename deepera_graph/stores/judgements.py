"""The judgement cache: answers by key, in one SQLite file that many processes share."""

import json
import logging
import math
import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.stores.sqlite import FileKind, Handle, is_busy, side_files

_logger = logging.getLogger(__name__)
JUDGEMENTS = FileKind(
    name="judgement cache",
    advice="name another folder for the cache, turn it off, or delete the file if nothing else "
    "needs it",
    application_id=0x44654572,  # "DeEr"
    form=1,
    tables=(
        """
CREATE TABLE judgement (
    key TEXT PRIMARY KEY NOT NULL,
    role TEXT NOT NULL,
    created INTEGER NOT NULL,
    last_used INTEGER NOT NULL,
    size INTEGER NOT NULL,
    value TEXT NOT NULL
) WITHOUT ROWID
""",
    ),
)


def _compact(connection: sqlite3.Connection, n_removed: int) -> int:
    """Give the space of removed entries back, if nobody is in the way; return *n_removed*."""
    try:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError as error:  # the entries are gone all the same
        _logger.info("the judgement cache was not made smaller: %s", error)
    return n_removed


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a judgement cache holds."""

    entries: Mapping[str, int]  # stored answers by role, in the order of the alphabet
    n_bytes: int  # on disk with SQLite's own side files, or in memory, >= 0
    oldest: datetime | None  # when it was stored, in UTC; None if there is none
    newest: datetime | None

    @property
    def n_entries(self) -> int:
        """Stored answers of all roles."""
        return sum(self.entries.values())


# Of entries last used on the same day, which is all that is known, the older one goes first.
_REMOVE_OLDEST = (
    "DELETE FROM judgement WHERE key IN (SELECT key FROM (SELECT key, sum(size) OVER"
    " (ORDER BY last_used DESC, created DESC, key) AS total FROM judgement) WHERE total > ?)"
)
T = TypeVar("T")
TIMEOUT_SECONDS = 1.0
REST_SECONDS = 5.0
_DAY = 24 * 60 * 60
_ROW_BYTES = 48  # what SQLite adds to an entry of a few hundred bytes, measured on 10 000 of them


class JudgementCache:
    """Answers of roles, by key; safe for several processes, threads and event loops at once.

    For `get`, `put` and `forget` no trouble with the file is an error: if it is locked or broken, a
    read is a miss and a write does nothing, one warning is logged, and a locked file is left alone
    for a few seconds. The other methods say what is wrong. The file is opened at the first use, and
    again after `close`, unpickling or a fork. A cache in memory is then empty; in a child, a copy.

    Args:
        path: The file, made with its folder if missing; None keeps everything in memory.
        timeout: How long to wait for a lock of another process, in seconds.
    """

    def __init__(self, path: Path | None = None, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self.path = None if path is None else Path(path).absolute()
        self._timeout = timeout
        self._handle = Handle(self.path, JUDGEMENTS, timeout=timeout)
        self._resting_until: dict[str, float] = {}
        self._warned: set[str] = set()

    def open(self) -> Self:
        """Open the file now, to find out at the start of a run whether it can be used.

        Raises:
            StoreError: The file is locked, unwritable, damaged, or of another program or format.
        """
        self._do(lambda _: None)
        return self

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the answer stored under *key*, or None.

        The time of its last use is noted at most once a day, so that reading does not write.
        """
        row = self._attempt(
            "read",
            lambda db: db.execute(
                "SELECT value, last_used FROM judgement WHERE key = ?", (key,)
            ).fetchone(),
        )
        if row is None:
            return None
        text, last_used = row
        now = int(time.time())
        if now - last_used >= _DAY:
            self._write("UPDATE judgement SET last_used = ? WHERE key = ?", (now, key))
        return self._parsed(key, text)

    def put(self, key: str, role: str, value: Mapping[str, Any]) -> bool:
        """Store an answer under *key*, unless there is one: the first one stays.

        Args:
            key: What `cache_key` gives.
            role: Which role answered, for `stats`.
            value: The answer, as JSON values. No key, header or prompt belongs in it.

        Returns:
            Whether this answer is the one stored now.

        Raises:
            TypeError, ValueError: *value* is not made of JSON values.
        """
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
        now = int(time.time())
        size = len(key) + len(role) + len(text) + _ROW_BYTES
        return self._write(
            "INSERT OR IGNORE INTO judgement (key, role, created, last_used, size, value)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (key, role, now, now, size, text),
        )

    def forget(self, key: str) -> None:
        """Remove one answer, e.g. because it cannot be read."""
        self._write("DELETE FROM judgement WHERE key = ?", (key,))

    def stats(self) -> CacheStats:
        """Count what is stored.

        Raises:
            StoreError: The file cannot be used.
        """
        return self._do(self._read_stats)

    def _read_stats(self, db: sqlite3.Connection) -> CacheStats:
        rows = db.execute(
            "SELECT role, count(*), min(created), max(created)"
            " FROM judgement GROUP BY role ORDER BY role"
        ).fetchall()
        if self.path is not None:
            n_bytes = sum(file.stat().st_size for file in side_files(self.path))
        else:
            pages = db.execute("PRAGMA page_count").fetchone()[0]
            n_bytes = pages * db.execute("PRAGMA page_size").fetchone()[0]
        return CacheStats(
            entries={role: count for role, count, _, _ in rows},
            n_bytes=n_bytes,
            oldest=datetime.fromtimestamp(min(row[2] for row in rows), UTC) if rows else None,
            newest=datetime.fromtimestamp(max(row[3] for row in rows), UTC) if rows else None,
        )

    def clear(self) -> int:
        """Remove everything, and return how many answers that were.

        Raises:
            StoreError: The file cannot be used.
        """
        return self._do(lambda db: _compact(db, db.execute("DELETE FROM judgement").rowcount))

    def prune(self, *, older_than_days: float | None = None, max_bytes: int | None = None) -> int:
        """Remove what was not used for long, then the least recently used until the rest fits.

        While the file is made smaller, runs in other processes may have to do without the cache.

        Args:
            older_than_days: Remove what was last used this long ago or longer, >= 0. The time of
                use is known to within a day. None sets no limit.
            max_bytes: Most bytes the file may have afterwards, >= 0, kept to within a few pages
                of 4 KiB; None sets no limit.

        Returns:
            How many answers were removed.

        Raises:
            SettingsError: Neither limit is given, or one is negative.
            StoreError: The file cannot be used.
        """
        if older_than_days is None and max_bytes is None:
            raise SettingsError("prune needs older_than_days, max_bytes or both, got neither")
        for name, limit in (("older_than_days", older_than_days), ("max_bytes", max_bytes)):
            if limit is not None and not (math.isfinite(limit) and limit >= 0):
                raise SettingsError(f"{name} must be >= 0, got {limit!r}")

        def remove(db: sqlite3.Connection) -> int:
            n_removed = 0
            if older_than_days is not None:
                before = int(time.time() - older_than_days * _DAY)
                n_removed += db.execute(
                    "DELETE FROM judgement WHERE last_used <= ?", (before,)
                ).rowcount
            if max_bytes is not None:
                n_removed += db.execute(_REMOVE_OLDEST, (max_bytes,)).rowcount
            return _compact(db, n_removed)

        return self._do(remove)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "timeout": self._timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        JudgementCache.__init__(self, **state)

    def __repr__(self) -> str:
        return f"JudgementCache({'memory' if self.path is None else str(self.path)!r})"

    def _parsed(self, key: str, text: str) -> dict[str, Any] | None:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, dict):
            return value
        self.forget(key)
        return None

    def _write(self, statement: str, values: tuple[object, ...]) -> bool:
        n_rows = self._attempt("write", lambda db: db.execute(statement, values).rowcount)
        return n_rows is not None and n_rows > 0

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Work on the file, and say which file it was if that fails."""
        with JUDGEMENTS.wrap_errors(self.path):
            return self._handle.use(work)

    def _attempt(self, kind: str, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Work on the file, or give None: a run does not need the cache."""
        if time.monotonic() < self._resting_until.get(kind, 0.0):
            return None
        try:
            return self._handle.use(work)
        except (sqlite3.Error, StoreError) as error:
            if is_busy(error) or isinstance(error, StoreError):
                self._resting_until[kind] = time.monotonic() + REST_SECONDS
            self._warn(kind, error)
            return None

    def _warn(self, kind: str, error: Exception) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            _logger.warning("cannot %s the judgement cache %s: %s", kind, self.path, error)


OFF = "off"
FILE_NAME = "judgements.sqlite3"


def default_cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/deepera``, or ``~/.cache/deepera``."""
    # Source: XDG Base Directory Specification 0.8: an empty or relative variable counts as not set.
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():
        return base / "deepera"
    try:
        return Path.home() / ".cache" / "deepera"
    except RuntimeError as error:
        raise SettingsError(
            f"no folder for the judgement cache: {error}; name one, or set XDG_CACHE_HOME"
        ) from error


def open_cache(where: str | Path | None = None) -> JudgementCache | None:
    """Open the cache in a folder, made if missing; None in the default folder; "off" gives None.

    Raises:
        SettingsError: *where* is empty.
        StoreError: The folder or the file in it cannot be used; the message says what to do.
    """
    if where == OFF:
        return None
    if where == "":
        raise SettingsError("cache must be a folder or 'off', got ''")
    folder = default_cache_folder() if where is None else Path(where).expanduser()
    return JudgementCache(folder / FILE_NAME).open()
