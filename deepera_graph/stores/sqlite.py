"""SQLite files that processes share: made if missing, refused if they are something else."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TypeVar
from urllib.parse import quote
from weakref import WeakSet

from deepera_graph.errors import DeepEraError, StoreError

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
_RETRY_SECONDS = 0.01
_SMALLEST_DATABASE = 512  # bytes: one page of the smallest size, sqlite.org/fileformat2.html
_SIDES = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file holds, and what messages say of it."""

    name: str  # e.g. "judgement cache"
    advice: str  # what to do about a file that cannot be used
    application_id: int = 0  # in the header of the file: tells it from any other; 0 if none does
    form: int = 0  # number of the format, likewise
    tables: tuple[str, ...] = ()  # statements that make them
    setup: tuple[str, ...] = ()  # statements before the first table, e.g. about pages
    error: type[DeepEraError] = StoreError
    is_private: bool = True  # made with its folder, readable by its owner only

    def refuse(self, path: Path | None, why: str | Exception) -> DeepEraError:
        """Return the error that says what is wrong with a file, and what to do."""
        text, advice = _explain(why) if isinstance(why, Exception) else (why, "")
        return self.error(
            f"the {self.name} {str(path)!r} cannot be used: {text}; {advice or self.advice}"
        )

    @contextmanager
    def wrap_errors(self, path: Path | None) -> Iterator[None]:
        """Turn SQLite's errors into one that names the file."""
        try:
            yield
        except sqlite3.Error as error:
            raise self.refuse(path, error) from error

    def is_new(self, db: sqlite3.Connection, path: Path | None, *, any_form: bool = False) -> bool:
        """Tell whether a database is empty; raise the error unless it is, or is of this kind."""
        owner = _number(db, "PRAGMA application_id")
        form, n_tables = _number(db, "PRAGMA user_version"), _number(db, _COUNT_TABLES)
        if (owner, form, n_tables) == (0, 0, 0):
            return True
        if owner != self.application_id:
            raise self.refuse(path, "it is a database of another program")
        if form != self.form and not any_form:
            raise self.error(
                f"the {self.name} {str(path)!r} has format {form}, and this version of "
                f"deepera-graph reads format {self.form}: {self.advice}"
            )
        return False


_COUNT_TABLES = "SELECT count(*) FROM sqlite_master"
_WITH_ADVICE = (  # words of SQLite's own, what they mean, and what to do
    ("no such module: fts5", "", "take a Python whose SQLite has FTS5, which the words need"),
    ("locked", "another process holds it", "try again when it is done"),
    ("full", "the disk is full", "what was committed stays, and going on is possible"),
)


def _explain(error: Exception) -> tuple[str, str]:
    """Return what an error says, and what to do; empty for the advice of the kind of file."""
    text = (isinstance(error, OSError) and error.strerror) or str(error)
    for words, meaning, advice in _WITH_ADVICE:
        if words in text:
            return meaning or text, advice
    return text, ""


def connect(path: Path | None, kind: FileKind, *, timeout: float) -> sqlite3.Connection:
    """Open the file for reading and writing, made if missing; any thread may use the connection."""
    # A commit is written but not forced to the disk (WAL, ``synchronous=NORMAL``): a killed process
    # loses nothing that was put; a power cut may lose the last entries, never the file.
    try:
        if path is not None and kind.is_private:
            _make_private(path, kind)
        return _until(time.monotonic() + timeout, path, timeout, kind)
    except (OSError, sqlite3.Error) as error:
        if is_busy(error):
            raise
        raise kind.refuse(path, error) from error


def connect_reader(path: Path) -> sqlite3.Connection:
    """Open a file that is not written; in a folder that cannot be written either, as it stands."""
    name = quote(str(path.resolve()))
    for more in ("", "&immutable=1"):
        db = sqlite3.connect(
            f"file:{name}?mode=ro{more}", uri=True, check_same_thread=False, isolation_level=None
        )
        try:
            db.execute(_COUNT_TABLES).fetchone()
            break
        except sqlite3.OperationalError:
            db.close()
            if more:
                raise
    db.execute("PRAGMA query_only = 1")
    return db


def leave_plain(db: sqlite3.Connection) -> None:
    """Fold the write-ahead log into the file, so that it can be read where nothing is written."""
    with suppress(sqlite3.Error):  # somebody is reading: the log stays, which does no harm
        db.execute("PRAGMA busy_timeout = 200")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA journal_mode = DELETE")


def is_busy(error: BaseException) -> bool:
    """Tell whether another process holds the file."""
    return _code_of(error) in _BUSY


def is_damage(error: BaseException) -> bool:
    """Tell whether the file is at fault, and not its folder, the disk or another process."""
    if isinstance(error, StoreError):
        cause = error.__cause__
        return cause is None or (isinstance(cause, sqlite3.Error) and is_damage(cause))
    return _code_of(error) in _DAMAGE


def _code_of(error: BaseException) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF  # the low byte is the primary code


def side_files(path: Path) -> list[Path]:
    """Return a database and the files that SQLite has beside it, those that are there."""
    every = (path.with_name(path.name + side) for side in _SIDES)
    return [one for one in every if one.exists()]


def set_aside(path: Path) -> Path:
    """Rename a file that cannot be used, with those beside it; return its new name."""
    number = 1
    while (aside := path.with_name(f"{path.name}.unusable-{number}")).exists():
        number += 1
    for one in side_files(path):
        one.rename(aside.with_name(aside.name + one.name.removeprefix(path.name)))
    return aside


def _make_private(path: Path, kind: FileKind) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite gives -wal and -shm its mode
    if 0 < path.stat().st_size < _SMALLEST_DATABASE:  # SQLite would take it for empty
        raise kind.refuse(path, "file is not a database")


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
        new = kind.is_new(connection, path)  # nothing is written yet: it may be someone else's
    if new:
        _run_all(connection, kind.setup)
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("PRAGMA synchronous = NORMAL")
    if not new:
        return
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        if kind.is_new(connection, path):  # nobody was faster
            _run_all(connection, kind.tables)
            connection.execute(f"PRAGMA application_id = {kind.application_id}")
            connection.execute(f"PRAGMA user_version = {kind.form}")


def _run_all(connection: sqlite3.Connection, statements: Iterable[str]) -> None:
    for statement in statements:
        connection.execute(statement)


def _number(connection: sqlite3.Connection, query: str) -> int:
    with closing(connection.execute(query)) as cursor:
        return int(cursor.fetchone()[0])


T = TypeVar("T")


class Handle:
    """A connection that threads take in turns."""

    def __init__(self, path: Path | None, kind: FileKind, *, timeout: float) -> None:
        self._connection: sqlite3.Connection | None = None
        self._path, self._timeout, self._kind = path, timeout, kind
        self._lock = Lock()
        with _registry:
            _handles.add(self)

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Give what *work* gives; the connection is its own as long as it lasts."""
        with self._lock:
            if self._connection is None:
                self._connection = connect(self._path, self._kind, timeout=self._timeout)
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
