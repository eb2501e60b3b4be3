"""Work that is written once, and done by a thread that waits or in the running loop.

A piece of work is a generator: it yields each call that may take a while, and is given what came of
it; what the call raises is raised where it was yielded.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, NamedTuple, TypeVar

from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnableParallel,
    RunnableSequence,
)
from langchain_core.runnables.base import RunnableBindingBase

from deepera_graph.chat import sending

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
    return call(invoker_of(role), role.ainvoke, task, config)


def invoker_of(role: Runnable[TaskT, DoneT]) -> Callable[[TaskT, RunnableConfig | None], DoneT]:
    """Return what calls a runnable from a thread, also one that is made of coroutine functions."""
    # LangChain refuses those: "Cannot invoke a coroutine function synchronously". A thread waits
    # for them in the loop of the model calls, as its own loop may be running, as in a notebook.
    if not _has_coroutine(role):
        return role.invoke

    def invoke(task: TaskT, config: RunnableConfig | None = None) -> DoneT:
        async def work() -> DoneT:
            return await role.ainvoke(task, config)

        return sending.run(work())

    return invoke


def _has_coroutine(role: object) -> bool:
    """Tell whether a runnable, or a part of it, is a coroutine function without a plain twin."""
    if isinstance(role, RunnableLambda):
        return not hasattr(role, "func")
    if isinstance(role, RunnableSequence):
        return any(map(_has_coroutine, role.steps))
    if isinstance(role, RunnableParallel):
        return any(map(_has_coroutine, role.steps__.values()))
    return isinstance(role, RunnableBindingBase) and _has_coroutine(role.bound)


def call_in_thread(do: Callable[..., Any], *args: Any) -> TwinCall:
    """Return a call of a function that has no async twin."""
    return TwinCall(partial(do, *args), partial(asyncio.to_thread, do, *args))


def as_work(give: Callable[..., Any], *, in_thread: bool = False) -> Callable[..., Work[Any]]:
    """Return the work of a function; for `ado` it is async, or is called *in_thread*."""

    def work(*args: Any) -> Work[Any]:
        return (yield call_in_thread(give, *args) if in_thread else call(give, give, *args))

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
