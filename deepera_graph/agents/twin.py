"""Work that is written once, and done by a thread that waits or in the running loop.

A piece of work is a generator: it yields each call that may take a while, and is given what came of
it; what the call raises is raised where it was yielded.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, NamedTuple, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig

TaskT = TypeVar("TaskT")
DoneT = TypeVar("DoneT")


class TwinCall(NamedTuple):
    """A call in both its forms."""

    do: Callable[[], Any]
    ado: Callable[[], Awaitable[Any]]


Work = Generator[TwinCall, Any, DoneT]


def call(do: Callable[..., Any], ado: Callable[..., Any], *args: Any, **kwargs: Any) -> TwinCall:
    """Return a call of a function or of its async twin, with the same arguments."""
    return TwinCall(partial(do, *args, **kwargs), partial(ado, *args, **kwargs))


def ask(role: Runnable[Any, Any], task: Any, config: RunnableConfig | None) -> TwinCall:
    """Return the call of a runnable."""
    return call(role.invoke, role.ainvoke, task, config)


def call_in_thread(do: Callable[..., Any], *args: Any) -> TwinCall:
    """Return a call of a function that has no async twin."""
    return TwinCall(partial(do, *args), partial(asyncio.to_thread, do, *args))


def as_work(give: Callable[..., Any]) -> Callable[..., Work[Any]]:
    """Return the work of a function: a plain one for `do`, an async one for `ado`."""

    def work(*args: Any) -> Work[Any]:
        return (yield call(give, give, *args))

    return work


def do(work: Work[DoneT]) -> DoneT:
    """Do a piece of work, waiting in this thread."""
    try:
        step = next(work)
        while True:
            try:
                found = step.do()
            except Exception as error:  # noqa: BLE001  # the work says what becomes of it
                step = work.throw(error)
            else:
                step = work.send(found)
    except StopIteration as end:
        done: DoneT = end.value
        return done


async def ado(work: Work[DoneT]) -> DoneT:
    """Do a piece of work in the running loop."""
    try:
        step = next(work)
        while True:
            try:
                found = await step.ado()
            except Exception as error:  # noqa: BLE001  # the work says what becomes of it
                step = work.throw(error)
            else:
                step = work.send(found)
    except StopIteration as end:
        done: DoneT = end.value
        return done


class TwinRunnable(Runnable[TaskT, DoneT]):
    """A runnable whose work is written once."""

    @abstractmethod
    def work(self, task: TaskT, config: RunnableConfig | None) -> Work[DoneT]:
        """Return the work on a task."""

    def invoke(self, input: TaskT, config: RunnableConfig | None = None, **kwargs: Any) -> DoneT:
        """Do the work, waiting in this thread."""
        return do(self.work(input, config))

    async def ainvoke(
        self, input: TaskT, config: RunnableConfig | None = None, **kwargs: Any
    ) -> DoneT:
        """Do the work in the running loop."""
        return await ado(self.work(input, config))
