"""SQLite files that processes share: made if missing, refused if they are something else."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TypeVar
from weakref import WeakSet

from deepera_graph.errors import StoreError

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_RETRY_SECONDS = 0.01
_SMALLEST_DATABASE = 512  # bytes: one page of the smallest size, sqlite.org/fileformat2.html


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file holds, and how messages call it."""

    name: str  # e.g. "judgement cache"
    place: str  # what a user may name instead, e.g. "another folder for the cache"
    application_id: int  # in the header of the file: tells it from any other
    form: int  # number of the format, likewise
    tables: tuple[str, ...]  # statements that make them
    setup: tuple[str, ...] = ()  # statements before the first table, e.g. about pages


FORMAT = 1
JUDGEMENTS = FileKind(
    name="judgement cache",
    place="another folder for the cache",
    application_id=0x44654572,  # "DeEr"
    form=FORMAT,
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


def connect(
    path: Path | None, *, timeout: float, kind: FileKind = JUDGEMENTS
) -> sqlite3.Connection:
    """Open the file, readable and writable by its owner only; any thread may use the connection.

    A commit is written but not forced to the disk (WAL, ``synchronous=NORMAL``): a killed process
    loses nothing that was put; a power cut may lose the last entries, never the file.

    Raises:
        StoreError: The file is of another kind or version, or cannot be opened for writing.
        sqlite3.OperationalError: Another process locks the file for longer than *timeout*.
    """
    try:
        if path is not None:
            _make_private(path, kind)
        return _until(time.monotonic() + timeout, path, timeout, kind)
    except OSError as error:
        why = error.strerror or str(error)
        raise StoreError(cannot_use(path, why, kind)) from error
    except sqlite3.Error as error:
        if is_busy(error):
            raise
        raise StoreError(cannot_use(path, str(error), kind)) from error


def is_busy(error: BaseException) -> bool:
    """Tell whether another process holds the file."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _BUSY  # the low byte is the primary code


def _make_private(path: Path, kind: FileKind) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite gives -wal and -shm its mode
    if 0 < path.stat().st_size < _SMALLEST_DATABASE:  # SQLite would take it for empty
        raise StoreError(cannot_use(path, "file is not a database", kind))


def _until(
    deadline: float, path: Path | None, timeout: float, kind: FileKind
) -> sqlite3.Connection:
    """Open; try again while others make the same file, where SQLite does not wait by itself."""
    while True:
        connection = sqlite3.connect(
            path or ":memory:", timeout=timeout, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, path, kind)
        except BaseException as error:
            connection.close()
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return connection


def _prepare(connection: sqlite3.Connection, path: Path | None, kind: FileKind) -> None:
    connection.execute("BEGIN")  # one look: another process may be making the file right now
    with connection:
        new = _is_new(connection, path, kind)  # nothing is written yet: it may be someone else's
    if new:
        _run_all(connection, kind.setup)
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("PRAGMA synchronous = NORMAL")
    if not new:
        return
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        if _is_new(connection, path, kind):  # nobody was faster
            _run_all(connection, kind.tables)
            connection.execute(f"PRAGMA application_id = {kind.application_id}")
            connection.execute(f"PRAGMA user_version = {kind.form}")


def _run_all(connection: sqlite3.Connection, statements: Iterable[str]) -> None:
    for statement in statements:
        connection.execute(statement)


def _is_new(connection: sqlite3.Connection, path: Path | None, kind: FileKind) -> bool:
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
    if owner != kind.application_id:
        raise StoreError(cannot_use(path, "it is a database of another program", kind))
    if form != kind.form:
        raise StoreError(
            f"the {kind.name} {str(path)!r} has format {form}, and this version of "
            f"deepera-graph reads format {kind.form}: name {kind.place}, or delete the file"
        )
    return False


def _number(connection: sqlite3.Connection, query: str) -> int:
    with closing(connection.execute(query)) as cursor:
        return int(cursor.fetchone()[0])


def cannot_use(path: Path | None, why: str, kind: FileKind = JUDGEMENTS) -> str:
    """Say what is wrong with the file, and what to do."""
    return (
        f"the {kind.name} {str(path)!r} cannot be used: {why}. Name {kind.place}, turn it off, or "
        "delete the file if nothing else needs it"
    )


T = TypeVar("T")


class Handle:
    """A connection that threads take in turns."""

    def __init__(self, path: Path | None, timeout: float, kind: FileKind = JUDGEMENTS) -> None:
        self._connection: sqlite3.Connection | None = None
        self._path, self._timeout, self._kind = path, timeout, kind
        self._lock = Lock()
        with _registry:
            _handles.add(self)

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Give what *work* gives; the connection is its own as long as it lasts."""
        with self._lock:
            if self._connection is None:
                self._connection = connect(self._path, timeout=self._timeout, kind=self._kind)
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
