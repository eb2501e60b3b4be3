"""The SQLite file of a judgement cache: made if missing, refused if it is something else."""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import TypeVar
from weakref import WeakSet

from deepera_graph.errors import StoreError

FORMAT = 1
_APPLICATION_ID = 0x44654572  # "DeEr", in the header of the file: tells ours from any other
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_RETRY_SECONDS = 0.01
_SMALLEST_DATABASE = 512  # bytes: one page of the smallest size, sqlite.org/fileformat2.html
_TABLE = """
CREATE TABLE judgement (
    key TEXT PRIMARY KEY NOT NULL,
    role TEXT NOT NULL,
    created INTEGER NOT NULL,
    last_used INTEGER NOT NULL,
    size INTEGER NOT NULL,
    value TEXT NOT NULL
) WITHOUT ROWID
"""


def connect(path: Path | None, *, timeout: float) -> sqlite3.Connection:
    """Open the file, readable and writable by its owner only; any thread may use the connection.

    A commit is written but not forced to the disk (WAL, ``synchronous=NORMAL``): a killed process
    loses nothing that was put; a power cut may lose the last entries, never the file.

    Raises:
        StoreError: The file is no cache of this version, or cannot be opened for writing.
        sqlite3.OperationalError: Another process locks the file for longer than *timeout*.
    """
    try:
        if path is not None:
            _make_private(path)
        return _until(time.monotonic() + timeout, path, timeout)
    except OSError as error:
        raise StoreError(cannot_use(path, error.strerror or str(error))) from error
    except sqlite3.Error as error:
        if is_busy(error):
            raise
        raise StoreError(cannot_use(path, str(error))) from error


def is_busy(error: BaseException) -> bool:
    """Tell whether another process holds the file."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _BUSY  # the low byte is the primary code


def _make_private(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite gives -wal and -shm its mode
    if 0 < path.stat().st_size < _SMALLEST_DATABASE:  # SQLite would take it for empty
        raise StoreError(cannot_use(path, "file is not a database"))


def _until(deadline: float, path: Path | None, timeout: float) -> sqlite3.Connection:
    """Open; try again while others make the same file, where SQLite does not wait by itself."""
    while True:
        connection = sqlite3.connect(
            path or ":memory:", timeout=timeout, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, path)
        except BaseException as error:
            connection.close()
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return connection


def _prepare(connection: sqlite3.Connection, path: Path | None) -> None:
    connection.execute("BEGIN")  # one look: another process may be making the file right now
    with connection:
        new = _is_new(connection, path)  # nothing is written yet: it may be someone else's file
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("PRAGMA synchronous = NORMAL")
    if not new:
        return
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        if _is_new(connection, path):  # nobody was faster
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")


def _is_new(connection: sqlite3.Connection, path: Path | None) -> bool:
    """Tell whether the database is empty."""
    owner, form, n_tables = (
        _number(connection, query)
        for query in (
            "PRAGMA application_id",
            "PRAGMA user_version",
            "SELECT count(*) FROM sqlite_master",
        )
    )
    if (owner, form, n_tables) == (0, 0, 0):
        return True
    if owner != _APPLICATION_ID:
        raise StoreError(cannot_use(path, "it is a database of another program"))
    if form != FORMAT:
        raise StoreError(
            f"the judgement cache {str(path)!r} has format {form}, and this version of "
            f"deepera-graph reads format {FORMAT}: name another folder for the cache, or delete "
            "the file"
        )
    return False


def _number(connection: sqlite3.Connection, query: str) -> int:
    with closing(connection.execute(query)) as cursor:
        return int(cursor.fetchone()[0])


def cannot_use(path: Path | None, why: str) -> str:
    """Say what is wrong with the file, and what to do."""
    return (
        f"the judgement cache {str(path)!r} cannot be used: {why}. Name another folder for the "
        "cache, turn it off, or delete the file if nothing else needs it"
    )


T = TypeVar("T")


class Handle:
    """A connection that threads take in turns."""

    def __init__(self, path: Path | None, timeout: float) -> None:
        self._connection: sqlite3.Connection | None = None
        self._path, self._timeout = path, timeout
        self._lock = Lock()
        with _registry:
            _handles.add(self)

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Give what *work* gives; the connection is its own as long as it lasts."""
        with self._lock:
            if self._connection is None:
                self._connection = connect(self._path, timeout=self._timeout)
            return work(self._connection)

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self._lock:
            self._let_go()

    def stop(self) -> None:
        """Close the file and let nobody use it until `go_on`."""
        self._lock.acquire()
        if self._path is not None:
            self._let_go()

    def go_on(self) -> None:
        """Allow use again after `stop`."""
        self._lock.release()

    def __del__(self) -> None:
        self._let_go()

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


_registry = Lock()
_handles: WeakSet[Handle] = WeakSet()
_stopped: list[Handle] = []


def _before_fork() -> None:
    _registry.acquire()
    for handle in list(_handles):
        handle.stop()
        _stopped.append(handle)


def _after_fork() -> None:
    while _stopped:
        _stopped.pop().go_on()
    if _registry.locked():
        _registry.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
