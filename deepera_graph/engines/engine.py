"""What an engine is, and what it is given to do."""

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self, TypeVar

from deepera_graph.engines.share import Share
from deepera_graph.usage import Usage

TaskT = TypeVar("TaskT")
DoneT = TypeVar("DoneT")
TaskT_contra = TypeVar("TaskT_contra", contravariant=True)
Do = Callable[[TaskT], Awaitable[DoneT]]


class Engine(Protocol[TaskT_contra, DoneT]):
    """Does tasks, several at once; use it in a `with` block.

    At the end of the block it stops at once: calls that hang are left behind, not waited for.
    """

    @property
    def at_once(self) -> int:
        """How many tasks are worked on at the same time, >= 1; known within the block."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: Any) -> None: ...

    def start(self, task: TaskT_contra) -> "Future[DoneT]":
        """Return what will be made of a task, without waiting; errors come with the result."""


class Work(Protocol[TaskT_contra, DoneT]):
    """How a worker in another process gets ready: plain data that can be sent there."""

    def at_once(self, share: Share) -> int:
        """How many tasks such a worker does at the same time, >= 1.

        Raises:
            SettingsError: A limit is too low to be divided among so many workers.
        """

    def ready(self, share: Share) -> "AbstractContextManager[Do[TaskT_contra, DoneT]]":
        """Open what a worker needs; the block gives what does a task.

        Raises:
            SettingsError: It cannot be opened here, or would do something else than at home.
        """

    def cost(self, done: DoneT) -> Usage:
        """What a task has cost, so that a worker in place of a lost one has its budget's rest."""
