"""Who does the work on a corpus: this process, or workers on Ray."""

import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar
from uuid import uuid4

from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.jobs.cluster import connect_ray, find_ray

SharedT = TypeVar("SharedT")
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
_AHEAD = 2  # items in hand for each worker


class Workers(Protocol):
    """Applies a function to items, in order; the results do not depend on who does it."""

    is_elsewhere: bool  # whether in other processes, which do not see what is in memory here

    def map(
        self, function: Callable[[SharedT, ItemT], ResultT], items: Iterable[ItemT], shared: SharedT
    ) -> Iterator[ResultT]:
        """Yield ``function(shared, item)`` for each item, which are read as they are needed."""
        ...


class Here:
    """This process."""

    is_elsewhere = False

    def map(
        self, function: Callable[[SharedT, ItemT], ResultT], items: Iterable[ItemT], shared: SharedT
    ) -> Iterator[ResultT]:
        """Yield the results, one after the other."""
        return map(partial(function, shared), items)


class RayWorkers:
    """Workers of a Ray cluster, one CPU each; use it in a `with` block.

    Without an address a cluster is started on this machine, for the block. A task whose worker is
    lost is done again by another, as Ray's own retries see to; it changes nothing but its result.
    """

    is_elsewhere = True

    def __init__(self, n_workers: int, *, address: str | None = None) -> None:
        if n_workers < 1:
            raise SettingsError(f"--workers must be >= 1, got {n_workers}")
        self._n_workers, self._address = n_workers, address
        self._block = ExitStack()

    def __enter__(self) -> Self:
        self._ray = self._block.enter_context(connect_ray(self._n_workers, self._address))
        self._path = [str(Path(one or ".").resolve()) for one in sys.path]
        return self

    def __exit__(self, *error: Any) -> None:
        self._block.close()

    def map(
        self, function: Callable[[SharedT, ItemT], ResultT], items: Iterable[ItemT], shared: SharedT
    ) -> Iterator[ResultT]:
        """Yield the results in the order of the items; a few of each worker's wait here."""
        given = [
            self._ray.put(pickle.dumps((function, shared)))
        ]  # in a list, Ray does not fetch it
        key = uuid4().hex
        task = self._ray.remote(_apply).options(num_cpus=1)
        running: deque[Any] = deque()
        for item in items:
            running.append(task.remote(key, given, pickle.dumps(item), self._path))
            if len(running) >= self._n_workers * (1 + _AHEAD):
                yield self._take(running)
        while running:
            yield self._take(running)

    def _take(self, running: "deque[Any]") -> Any:
        try:
            return self._ray.get(running.popleft())
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except self._ray.exceptions.RayError as error:
            first = next(iter(str(error).splitlines()), type(error).__name__)
            raise BackendError(f"a worker of Ray was lost: {first}") from error


_opened: dict[str, tuple[Any, Any]] = {}  # in a worker: what it was given last


def _apply(key: str, given: list[Any], item: bytes, path: list[str]) -> Any:
    """Apply a function in a worker; modules may be found on the driver's *path* alone."""
    sys.path.extend(one for one in path if one not in sys.path and Path(one).exists())
    if key not in _opened:
        _opened.clear()
        _opened[key] = pickle.loads(find_ray(alone=False).get(given[0]))
    function, shared = _opened[key]
    return function(shared, pickle.loads(item))
