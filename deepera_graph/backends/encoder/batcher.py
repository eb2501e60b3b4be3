"""Work that arrives piece by piece, from threads and event loops, done in batches."""

import atexit
import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Condition, Thread, current_thread
from time import monotonic
from typing import Any, Generic, TypeVar
from weakref import WeakSet

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
PAUSE = 0.001
LONGEST_PAUSE = 0.004
LINGER = 1.0
LAST_BATCH = 10.0


class Batcher(Generic[ItemT, ResultT]):
    """Does the work of all callers in one thread, what is waiting together in one call.

    The thread begins with the first item and ends when there has been none for a second
    (`LINGER`). An item that comes alone waits 1 ms (`PAUSE`) for others, and no longer than 4 ms
    (`LONGEST_PAUSE`) while they keep coming. What waits is cut into batches by size, so that items
    of like size are together. If a batch fails, its items are done one by one, and only those fail
    that fail alone. In a forked child it starts anew.

    Args:
        work: Gives one result an item, in the same order.
        size: Of an item.
        batch_size: Most items a call, >= 1.
        renew: Called in a forked child, before any work there.
    """

    def __init__(
        self,
        work: Callable[[Sequence[ItemT]], Sequence[ResultT]],
        *,
        size: Callable[[ItemT], int],
        batch_size: int,
        renew: Callable[[], None] = lambda: None,
    ) -> None:
        self._work, self._size, self._batch_size = work, size, batch_size
        self._renew = renew
        self._line: _Line[ItemT, ResultT] = _Line()
        _ALIVE.add(self)

    def submit(self, item: ItemT) -> "Future[ResultT]":
        """Return where the result will be; cancel it, and an item still waiting is not done.

        Raises:
            RuntimeError: The program is ending.
        """
        return self._line.add(item, self._serve)

    def close(self) -> None:
        """End: finish the batch at work, cancel what waits, and take no more."""
        self._line.close()

    def start_anew(self) -> None:
        """Forget thread, lock and line of the parent process; for a forked child."""
        self._line = _Line()
        self._renew()

    def _serve(self, line: "_Line[ItemT, ResultT]") -> None:
        while entries := line.take(self._batch_size):
            entries.sort(key=lambda entry: self._size(entry[0]), reverse=True)
            for start in range(0, len(entries), self._batch_size):
                self._do(entries[start : start + self._batch_size])

    def _do(self, entries: "Sequence[_Entry[ItemT, ResultT]]") -> None:
        asked = [entry for entry in entries if entry[1].set_running_or_notify_cancel()]
        if asked and not self._done(asked) and len(asked) > 1:
            for entry in asked:
                self._done([entry])

    def _done(self, entries: "Sequence[_Entry[ItemT, ResultT]]") -> bool:
        """Do one batch; a failure is told to its only item, or else left to be tried again."""
        try:
            results = list(self._work([item for item, _ in entries]))
            if len(results) != len(entries):
                raise ValueError(f"{len(results)} results for {len(entries)} items")
        except Exception as error:  # noqa: BLE001 - the boundary to foreign code: its caller gets it
            if len(entries) == 1:
                entries[0][1].set_exception(error)
            return False
        for (_, future), result in zip(entries, results, strict=True):
            future.set_result(result)
        return True


_Entry = tuple[ItemT, "Future[ResultT]"]
_ALIVE: "WeakSet[Batcher[Any, Any]]" = WeakSet()


class _Line(Generic[ItemT, ResultT]):
    """Items that wait, and the thread that serves them, if there is one."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._entries: deque[_Entry[ItemT, ResultT]] = deque()
        self._server: Thread | None = None
        self._closed = False

    def add(
        self, item: ItemT, serve: "Callable[[_Line[ItemT, ResultT]], None]"
    ) -> "Future[ResultT]":
        future: Future[ResultT] = Future()
        with self._changed:
            if self._closed:
                raise RuntimeError("the program is ending")
            if self._server is None:
                server = Thread(target=serve, args=(self,), name="deepera-batches", daemon=True)
                server.start()
                self._server = server
            self._entries.append((item, future))
            self._changed.notify()
        return future

    def take(self, n: int) -> "list[_Entry[ItemT, ResultT]]":
        """Return all that waits, once *n* are there or no more come; empty at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._entries or self._closed, LINGER)
            self._gather(n)
            if self._closed or not self._entries:
                self._server = None
                return []
            taken = list(self._entries)
            self._entries.clear()
            return taken

    def close(self) -> None:
        with self._changed:
            self._closed = True
            server = self._server
            waiting = list(self._entries)
            self._entries.clear()
            self._changed.notify()
        for _, future in waiting:
            future.cancel()
        if server is not None and server is not current_thread():
            server.join(LAST_BATCH)

    def _gather(self, n: int) -> None:
        latest = monotonic() + LONGEST_PAUSE
        n_before = 0
        while n_before < len(self._entries) < n and monotonic() < latest and not self._closed:
            n_before = len(self._entries)
            self._changed.wait(PAUSE)


def _close_all() -> None:
    for batcher in list(_ALIVE):
        batcher.close()


def _start_all_anew() -> None:
    for batcher in list(_ALIVE):
        batcher.start_anew()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_all_anew)
