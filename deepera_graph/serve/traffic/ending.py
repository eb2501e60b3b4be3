"""The end of work that nobody waits for any more."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

import anyio

P = ParamSpec("P")
T = TypeVar("T")
_of_request: ContextVar[set[Future[Any]] | None] = ContextVar("_of_request", default=None)


async def end_task(task: "asyncio.Future[Any]") -> None:
    """Cancel a task once, and wait until it has ended, whatever cancels who waits here.

    A scope of anyio, as Starlette and the SDK of MCP open one for each request, cancels at every
    await. A task that is cancelled again while LangGraph stops its own tasks leaves them behind:
    they would go on asking a model for a client that is gone.
    """
    task.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.gather(task, return_exceptions=True)


class RequestThreads(ThreadPoolExecutor):
    """Threads of an event loop that know for which request they work.

    A thread cannot be cancelled: it works on when the task that waits for it has ended.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a thread do something for the request that runs."""
        working, doing = _of_request.get(), super().submit(fn, *args, **kwargs)
        if working is not None:
            working.add(doing)
            doing.add_done_callback(working.discard)
        return doing


def begin_request() -> None:
    """Note from here on what threads do for the request that runs."""
    _of_request.set(set())


def has_working_threads() -> bool:
    """Tell whether threads work for the request that runs."""
    return bool(_of_request.get())


async def wait_for_threads() -> None:
    """Wait until no thread works for the request that runs."""
    while left := list(_of_request.get() or ()):
        await asyncio.wait([asyncio.wrap_future(one) for one in left])
