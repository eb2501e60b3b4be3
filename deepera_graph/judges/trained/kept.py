"""Vectors of texts kept on disk, beside a collection: no process encodes a passage twice."""

import logging
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypeVar
from zlib import crc32

import numpy as np

from deepera_graph.errors import StoreError
from deepera_graph.judges.trained.reading.vectors import Encoded
from deepera_graph.stores.sqlite import FileKind, Handle, is_busy, is_damage, set_aside

_logger = logging.getLogger(__name__)
FILE_NAME = "vectors.sqlite3"

TIMEOUT_SECONDS = 1.0
REST_SECONDS = 5.0
USE_SECONDS = 3600  # how exactly the time of the last use is known
_MB = 1_000_000
_FORMAT = 1  # to be raised whenever a text gets other vectors from equal weights
_MAX_WAITING = 8 * _MB  # bytes that wait to be written
_ROOM_LEFT = 0.95  # how much stays when the oldest give way, so that they seldom have to
_MAX_NOTED = 100_000  # texts
_ROW_BYTES = 200  # what SQLite adds to an entry
_FOREVER = float("inf")
VECTORS = FileKind(
    name="file of kept vectors",
    advice="delete it: it is made again",
    application_id=0x44655665,  # "DeVe"
    form=1,
    setup=("PRAGMA page_size = 16384", "PRAGMA auto_vacuum = INCREMENTAL"),
    tables=(
        # Apart from the vectors, so that noting a use writes a few bytes.
        "CREATE TABLE entry (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
        " used INTEGER NOT NULL, size INTEGER NOT NULL)",
        "CREATE TABLE vectors (id INTEGER PRIMARY KEY, crc INTEGER NOT NULL,"
        " offsets BLOB NOT NULL, tokens BLOB NOT NULL)",
    ),
)
_FIND = (
    "SELECT used, crc, offsets, tokens FROM entry JOIN vectors ON vectors.id = entry.id "
    "WHERE key = ?"
)
_OLDEST = (  # all beyond what may stay, counted from the latest use
    "SELECT id FROM (SELECT id, sum(size) OVER (ORDER BY used DESC, id DESC) AS total FROM entry)"
    " WHERE total > ?"
)
T = TypeVar("T")


class _Row(NamedTuple):
    """An encoded text as it is stored: offsets are int32, vectors float16."""

    crc: int
    offsets: bytes
    tokens: bytes

    @property
    def size(self) -> int:
        """Bytes on disk, >= 1."""
        return len(self.offsets) + len(self.tokens) + _ROW_BYTES


class KeptVectors:
    """Encoded texts by their hash, in one file; safe for several processes and threads.

    No trouble with the file is an error, as vectors can be made anew: a locked file is left alone
    for a few seconds, one that cannot be written for good, and one that is damaged, or another
    program's, is renamed and begun again; the last three log a warning. Vectors of other weights
    are never found. What is added is written by the next `flush`, or once it is `_MAX_WAITING`.

    Args:
        folder: Where the file is, made if missing.
        version: What tells the encoder's weights from others, see `name_weights`.
        max_mb: Most the entries may take, in 10^6 bytes, > 0; those used longest ago give way, to
            within an hour.
    """

    def __init__(self, folder: Path, version: str, *, max_mb: float) -> None:
        self.path = folder / FILE_NAME
        self._version, self._max_bytes = version, int(max_mb * _MB)
        self._handle = Handle(self.path, VECTORS, timeout=TIMEOUT_SECONDS)
        self._opened: int | None = None  # inode of the file that is open
        self._resting_until: dict[str, float] = {}
        self._warned: set[str] = set()
        self.restart()

    def restart(self) -> None:
        """Forget what waits to be written; a forked child leaves that to its parent."""
        self._lock = Lock()
        self._waiting, self._n_waiting = dict[bytes, _Row](), 0
        self._used: set[bytes] = set()
        self._noted: dict[bytes, float] = {}

    def find(self, text: str) -> Encoded | None:
        """Return what is kept of a text, or None."""
        key = self._key(text)
        row = self._attempt("read", lambda db: db.execute(_FIND, (key,)).fetchone())
        if row is None:
            return None
        used, *stored = row
        found = _decode(_Row(*stored))
        if found is None:
            self._set_aside("an entry does not match its checksum")
            return None
        with self._lock:
            self._note(key)
            if time.time() - used >= USE_SECONDS:
                self._used.add(key)
        return found

    def add(self, text: str, encoded: Encoded) -> None:
        """Keep a text, or note that it was used."""
        key = self._key(text)
        with self._lock:
            if time.monotonic() - self._noted.get(key, -_FOREVER) < USE_SECONDS:
                return
            self._note(key)
        row = _encode(encoded)
        if row.size > self._max_bytes:
            return
        with self._lock:
            self._waiting[key] = row
            self._n_waiting += row.size
            is_much = self._n_waiting > _MAX_WAITING
        if is_much:
            self.flush()

    def flush(self) -> None:
        """Write what was added and used; what cannot be written is forgotten."""
        with self._lock:
            waiting, self._waiting, self._n_waiting = self._waiting, {}, 0
            used, self._used = self._used, set()
        if waiting or used:
            self._attempt("write", lambda db: _write(db, waiting, used, self._max_bytes))

    def count_bytes(self) -> int:
        """Return what the entries take; 0 if the file cannot be read."""
        return self._attempt("read", _count_bytes) or 0

    @property
    def has_room(self) -> bool:
        """Whether something can be added and nothing has to give way."""
        is_off = time.monotonic() < self._resting_until.get("write", 0.0)
        n_bytes = self.count_bytes() + self._n_waiting
        return not is_off and n_bytes < _ROOM_LEFT * self._max_bytes

    def close(self) -> None:
        """Write what waits, and close the file; the next use opens it again."""
        self.flush()
        self._handle.close()

    def _key(self, text: str) -> bytes:
        named = f"{_FORMAT} {self._version}\n{text}"
        return sha256(named.encode("utf-8", "surrogatepass")).digest()

    def _note(self, key: bytes) -> None:
        if len(self._noted) >= _MAX_NOTED:
            self._noted.clear()
        self._noted[key] = time.monotonic()

    def _attempt(self, kind: str, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Work on the file, or give None."""
        if time.monotonic() < self._resting_until.get(kind, 0.0):
            return None
        before = _number_file(self.path)
        try:
            found = self._handle.use(work)
        except (sqlite3.Error, StoreError) as error:
            if is_damage(error):
                self._set_aside(str(error), self._opened or before)
            else:
                self._rest(kind, error)
            return None
        self._opened = self._opened or _number_file(self.path)
        return found

    def _rest(self, kind: str, error: Exception) -> None:
        if is_busy(error):
            self._resting_until[kind] = time.monotonic() + REST_SECONDS
            return
        self._resting_until[kind] = _FOREVER
        self._warn(f"cannot {kind} the vectors kept in {self.path}, so texts are encoded: {error}")

    def _set_aside(self, why: str, number: int | None = None) -> None:
        """Rename a file that cannot be used, unless another thread or process was faster."""
        with self._lock:
            expected = self._opened if number is None else number
            self._handle.close()
            self._opened = None
            self._noted.clear()
            if expected is None or _number_file(self.path) != expected:
                return
            try:
                now = f"and is now {set_aside(self.path).name}: {why}"
            except OSError as error:
                self._resting_until = dict.fromkeys(("read", "write"), _FOREVER)
                now = f"nor renamed: {why}; {error}"
        self._warn(f"{self.path} cannot be used, {now}")

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            _logger.warning("%s", message)


def name_weights(sums: Mapping[str, str], names: Sequence[str]) -> str:
    """Return what tells an encoder's files from others: 16 digits of a hash of their checksums.

    Weights that differ in what comes after the encoder share its vectors.
    """
    return sha256("\n".join(sums[name] for name in names).encode()).hexdigest()[:16]


def _encode(encoded: Encoded) -> _Row:
    tokens = np.asarray(encoded.tokens, np.float16).tobytes()
    offsets = encoded.offsets.astype(np.int32).tobytes()
    return _Row(crc32(tokens, crc32(offsets)), offsets, tokens)


def _decode(row: _Row) -> Encoded | None:
    """Return the text that was encoded; None if it is damaged."""
    if crc32(row.tokens, crc32(row.offsets)) != row.crc:
        return None
    offsets = np.frombuffer(row.offsets, np.int32).reshape(-1, 2).astype(np.int64)
    tokens = np.frombuffer(row.tokens, np.float16).reshape(len(offsets), -1)
    return Encoded(tokens, offsets)


def _write(
    db: sqlite3.Connection, waiting: Mapping[bytes, _Row], used: set[bytes], max_bytes: int
) -> None:
    now = int(time.time())
    db.execute("BEGIN IMMEDIATE")
    with db:
        for key, row in waiting.items():
            added = db.execute(
                "INSERT OR IGNORE INTO entry (key, used, size) VALUES (?, ?, ?)",
                (key, now, row.size),
            )
            if added.rowcount:
                db.execute("INSERT INTO vectors VALUES (?, ?, ?, ?)", (added.lastrowid, *row))
            else:
                used.add(key)
        db.executemany("UPDATE entry SET used = ? WHERE key = ?", [(now, key) for key in used])
        n_bytes = _count_bytes(db)
        if n_bytes > max_bytes:
            gone = db.execute(_OLDEST, (int(_ROOM_LEFT * max_bytes),)).fetchall()
            db.executemany("DELETE FROM vectors WHERE id = ?", gone)
            db.executemany("DELETE FROM entry WHERE id = ?", gone)
    if n_bytes > 2 * max_bytes:  # the limit was lowered: give the space back to the disk
        db.executescript("PRAGMA incremental_vacuum")  # `execute` would free one page


def _count_bytes(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT coalesce(sum(size), 0) FROM entry").fetchone()[0])


def _number_file(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None
