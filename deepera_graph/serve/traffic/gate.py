"""Whose turn it is: how many requests are judged at once, and how many may wait."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

from deepera_graph.serve.replies import RequestRefusedError
from deepera_graph.serve.traffic.ending import has_working_threads, wait_for_threads

_RETRY_AFTER = 1  # seconds


class Gate:
    """At most *at_once* holders in one event loop, first come first served, and a bounded queue.

    A judge that runs in this process reads passages one by one in threads that all requests share;
    more requests at once than that only take turns, and all of them end later. So a holder whose
    time is over, or whose client is gone, keeps its place until its threads have ended, too.
    """

    def __init__(
        self, at_once: int, queue: int, on_change: Callable[[int, int], None] | None = None
    ) -> None:
        self._turns, self._most_waiting = asyncio.Semaphore(at_once), queue
        self._on_change, self._leaving = on_change, set[asyncio.Task[None]]()
        self.waiting = self.working = 0

    async def __aenter__(self) -> Self:
        """Wait for a turn; HTTP 503 if too many wait already."""
        if self._turns.locked() and self.waiting >= self._most_waiting:
            message = f"{self.waiting} requests wait already; try again later"
            raise RequestRefusedError(503, "busy", message, retry_after=_RETRY_AFTER)
        self._count(waiting=1)
        try:
            await self._turns.acquire()
        finally:
            self._count(waiting=-1)
        self._count(working=1)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not has_working_threads():
            self._leave()
            return
        leaving = asyncio.create_task(self._leave_later())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    async def _leave_later(self) -> None:
        try:
            await wait_for_threads()
        finally:
            self._leave()

    def _leave(self) -> None:
        self._count(working=-1)
        self._turns.release()

    def _count(self, *, waiting: int = 0, working: int = 0) -> None:
        self.waiting, self.working = self.waiting + waiting, self.working + working
        if self._on_change is not None:
            self._on_change(self.waiting, self.working)
