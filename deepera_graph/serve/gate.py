"""Whose turn it is: how many requests are judged at once, and how many may wait."""

import asyncio
from types import TracebackType
from typing import Self

from deepera_graph.serve.replies import RefusedError

_RETRY_AFTER = 1  # seconds


class Gate:
    """At most *at_once* holders in one event loop, first come first served, and a bounded queue.

    A judge that runs in this process reads passages one by one in threads that all requests share;
    more requests at once than that only take turns, and all of them end later.
    """

    def __init__(self, at_once: int, queue: int) -> None:
        self._turns, self._most_waiting = asyncio.Semaphore(at_once), queue
        self.waiting = self.working = 0

    async def __aenter__(self) -> Self:
        """Wait for a turn; HTTP 503 if too many wait already."""
        if self._turns.locked() and self.waiting >= self._most_waiting:
            message = f"{self.waiting} requests wait already; try again later"
            raise RefusedError(503, "busy", message, retry_after=_RETRY_AFTER)
        self.waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self.waiting -= 1
        self.working += 1
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.working -= 1
        self._turns.release()
