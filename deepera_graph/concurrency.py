"""A limit on calls in flight that threads and event loops share."""

import asyncio
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock
from types import TracebackType
from typing import Self, TypeVar

from langchain_core.runnables import RunnableConfig

_KEY = "__deepera_limiter"  # keys of this form stay out of checkpoints and traces
_HELD_KEY = "__deepera_held"


class Limiter:
    """At most *n* holders at once, first come first served; for threads and event loops alike."""

    def __init__(self, n: int) -> None:
        self._free = n
        self._lock = Lock()
        self._waiting: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        turn = self._ask()
        if turn is not None:
            try:
                turn.result()
            except BaseException:
                self._give_up(turn)
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._release()

    async def __aenter__(self) -> Self:
        turn = self._ask()
        if turn is not None:
            try:
                await asyncio.wrap_future(turn)
            except BaseException:
                self._give_up(turn)
                raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._release()

    def _ask(self) -> "Future[None] | None":
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return None
            turn: Future[None] = Future()
            self._waiting.append(turn)
            return turn

    def _release(self) -> None:
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._free += 1

    def _give_up(self, turn: "Future[None]") -> None:
        """Pass the turn on if it was granted while its owner was being cancelled."""
        with self._lock:
            granted = not turn.cancel()
        if granted:
            self._release()


_NO_LIMIT = Limiter(sys.maxsize)


def with_limit(config: RunnableConfig, n: int) -> RunnableConfig:
    """Return a config that carries a limit of its own run to the role calls."""
    return {**config, "configurable": {**(config.get("configurable") or {}), _KEY: Limiter(n)}}


def has_limit(config: RunnableConfig | None) -> bool:
    """Whether a config carries a limit."""
    return _KEY in ((config or {}).get("configurable") or {})


def limit_of(config: RunnableConfig | None) -> Limiter:
    """Return the limit that a config carries; one that never waits if there is none."""
    found = ((config or {}).get("configurable") or {}).get(_KEY)
    return found if isinstance(found, Limiter) else _NO_LIMIT


def turn_of(config: RunnableConfig | None, limiter: Limiter) -> Limiter:
    """Return where a call takes its turn: a limiter, or the one turn in it that is held already.

    A role that asks a reranker itself holds its turn while it waits. If the calls within had to
    wait for turns of the same limiter, and every turn were held in this way, none would ever end:
    so they use, one after the other, the turn of the role that asks.
    """
    return _held(config).get(limiter, limiter)


def with_turns(config: RunnableConfig, *limiters: Limiter) -> RunnableConfig:
    """Return a config that tells calls within a role call which turns are held; see `turn_of`."""
    new = {limiter: Limiter(1) for limiter in limiters if limiter is not _NO_LIMIT}
    held = {**_held(config), **new}
    return {**config, "configurable": {**(config.get("configurable") or {}), _HELD_KEY: held}}


def _held(config: RunnableConfig | None) -> Mapping[Limiter, Limiter]:
    found = ((config or {}).get("configurable") or {}).get(_HELD_KEY)
    return found if isinstance(found, Mapping) else {}


JobT = TypeVar("JobT")
DoneT = TypeVar("DoneT")


def do_many(do: Callable[[JobT], DoneT], jobs: Sequence[JobT], at_once: int) -> list[DoneT]:
    """Return what *do* makes of each job, *at_once* in threads that see the caller's context."""
    with ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(copy_context().run, do, job) for job in jobs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


async def ado_many(
    do: Callable[[JobT], Awaitable[DoneT]], jobs: Sequence[JobT], at_once: int
) -> list[DoneT]:
    """Do what `do_many` does, in the running loop."""
    turns = asyncio.Semaphore(at_once)

    async def one(job: JobT) -> DoneT:
        async with turns:
            return await do(job)

    tasks = [asyncio.create_task(one(job)) for job in jobs]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
