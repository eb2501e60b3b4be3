"""The worker of the Ray engine: an actor with an engine of its own."""

import pickle
import sys
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from deepera_graph.engines.engine import DoneT, TaskT, Work
from deepera_graph.engines.local import LocalEngine
from deepera_graph.engines.share import Share
from deepera_graph.errors import DeepEraError


@dataclass(frozen=True, slots=True)
class Ended(Generic[DoneT]):
    """How a task ended: with what was done, or with an error that was raised on purpose."""

    done: DoneT | None = None
    error: DeepEraError | None = None


class Worker(Generic[TaskT, DoneT]):
    """Does tasks of one kind of work; Ray calls `do` in several threads at once.

    Args:
        work: What is done, pickled, as its modules may be found on *path* alone; nothing is opened
            before `open`.
        share: The worker's part of the limits.
        path: Folders where the driver looks for modules; those there are here are added.
    """

    def __init__(self, work: bytes, share: Share, path: list[str]) -> None:
        sys.path.extend(one for one in path if one not in sys.path and Path(one).exists())
        self._work: Work[TaskT, DoneT] = pickle.loads(work)
        self._share = share
        self._open = ExitStack()
        self._engine: LocalEngine[TaskT, DoneT] | None = None

    def open(self) -> Ended[None]:
        """Get ready."""
        try:
            do = self._open.enter_context(self._work.ready(self._share))
        except DeepEraError as error:
            return Ended(error=error)
        engine = LocalEngine(do, self._work.at_once(self._share))
        self._engine = self._open.enter_context(engine)
        return Ended()

    def do(self, task: TaskT) -> Ended[DoneT]:
        """Do a task, and wait for it."""
        started: Future[Any] = self._engine.start(task)  # type: ignore[union-attr]  # `open` came first
        try:
            return Ended(started.result())
        except DeepEraError as error:
            return Ended(error=error)
