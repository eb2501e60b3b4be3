"""The engine of one process: an event loop in a thread of its own."""

import asyncio
from concurrent.futures import Future
from threading import Thread
from typing import Any, Generic, Self

from deepera_graph.engines.engine import Do, DoneT, TaskT

_PATIENCE = 1.0  # seconds


class LocalEngine(Generic[TaskT, DoneT]):
    """Does tasks in a thread, so that a signal finds the caller's thread free.

    Args:
        do: What is done with a task.
        at_once: Most tasks at the same time, >= 1.
    """

    def __init__(self, do: Do[TaskT, DoneT], at_once: int) -> None:
        self.at_once = at_once
        self._do = do
        self._turns = asyncio.Semaphore(at_once)
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._work, name="deepera-engine", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        asyncio.run_coroutine_threadsafe(self._wind_up(), self._loop)
        self._thread.join(2 * _PATIENCE)
        if not self._thread.is_alive():
            self._loop.close()

    def start(self, task: TaskT) -> "Future[DoneT]":
        """Return what will be made of a task, without waiting."""
        return asyncio.run_coroutine_threadsafe(self._one(task), self._loop)

    async def _one(self, task: TaskT) -> DoneT:
        async with self._turns:
            return await self._do(task)

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _wind_up(self) -> None:
        """Cancel what is left; what it has still to say then interests nobody."""
        self._loop.set_exception_handler(lambda loop, context: None)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_PATIENCE)
        await self._loop.shutdown_asyncgens()
        self._loop.stop()
