"""One connection to a judgement cache, opened when needed and never carried through a fork.

SQLite keeps the locks of a process in its memory. A forked child inherits that memory but not the
locks, believes to hold them, and may damage the file, even through a connection of its own. So
every file is closed before a fork, and parent and child open it again. `subprocess` and the start
method "spawn" do not fork in this sense.

Source:
    https://sqlite.org/howtocorrupt.html, section 2.6.
"""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TypeVar
from weakref import WeakSet

from deepera_graph.cache.connection import connect

T = TypeVar("T")


class Handle:
    """A connection that threads take in turns.

    Args:
        path: The file; None for memory, of which a forked child gets a copy.
        timeout: How long to wait for a lock of another process, in seconds.
    """

    def __init__(self, path: Path | None, timeout: float) -> None:
        self._connection: sqlite3.Connection | None = None
        self._path, self._timeout = path, timeout
        self._lock = Lock()
        with _registry:
            _handles.add(self)

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Give what *work* gives; the connection is its own as long as it lasts.

        Raises:
            StoreError: The file cannot be opened as a cache.
            sqlite3.Error: What *work* raised, or the file is locked.
        """
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
