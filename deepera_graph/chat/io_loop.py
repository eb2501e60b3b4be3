"""One event loop for all model calls of this process.

A client keeps its connections in the loop that opened them, and fails in any other ("Event loop is
closed"). Callers come from threads, from notebooks, from several `asyncio.run` one after another;
so the calls themselves all run in one loop of ours, in a thread of its own.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from threading import Lock, Thread
from typing import Any, TypeVar

T = TypeVar("T")
_THREADS_FOR_SYNC_MODELS = 64

_lock = Lock()
_loop: asyncio.AbstractEventLoop | None = None
_owner: int | None = None


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* in the loop of the model calls, and wait in this thread; not from that loop."""
    loop = _start_loop()
    try:
        is_inside = asyncio.get_running_loop() is loop
    except RuntimeError:
        is_inside = False
    if is_inside:
        work.close()
        raise RuntimeError("a synchronous rerank was started from inside a model call")
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def arun(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* in the loop of the model calls, and wait in the loop of the caller."""
    loop = _start_loop()
    if asyncio.get_running_loop() is loop:
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


def close_later(close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Close a client in the loop of the model calls, without waiting."""
    if _loop is not None and _owner == os.getpid() and _loop.is_running():
        asyncio.run_coroutine_threadsafe(close(), _loop)


def _start_loop() -> asyncio.AbstractEventLoop:
    """Return the loop, started on first use and again in a forked child."""
    global _loop, _owner  # one loop a process is the point
    with _lock:
        if _loop is None or _owner != os.getpid():
            _loop, _owner = asyncio.new_event_loop(), os.getpid()
            _loop.set_default_executor(
                ThreadPoolExecutor(_THREADS_FOR_SYNC_MODELS, "deepera-model")
            )
            Thread(target=_loop.run_forever, name="deepera-io", daemon=True).start()
        return _loop
