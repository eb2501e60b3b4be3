"""Many jobs, a few at a time: results in order, and the first error ends all."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

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
