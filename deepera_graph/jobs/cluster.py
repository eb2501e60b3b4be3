"""A cluster of Ray, started here for a block or joined by its address, and work done there."""

import io
import logging
import os
import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
    redirect_stdout,
)
from functools import partial
from pathlib import Path
from socket import create_connection
from tempfile import TemporaryDirectory
from typing import Any, Protocol, Self, TypeVar
from uuid import uuid4

from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.packages import import_extra

AUTO = "auto"
_CLIENT = "ray://"
_STORE_BYTES = 200 * 2**20  # tasks and results on their way; what does not fit goes to disk
_TOKEN = " (where Ray asks for a token, set RAY_AUTH_MODE and RAY_AUTH_TOKEN_PATH as its nodes do)"
_KNOCK = 10.0  # seconds
_OF_RAY = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # leave GPUs visible to those who ask for none
}
_ALONE = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on every system: listen on the loopback only
    "RAY_worker_niceness": "0",  # as this process, and not 15
}


def check_address(address: str | None) -> None:
    """Raise `SettingsError` unless an engine can be started on a cluster at this address."""
    if address is not None and (not address.strip() or address.startswith(_CLIENT)):
        raise SettingsError(
            "--ray-address must be 'auto' or HOST:PORT of a cluster that this machine is part of, "
            f"got {address!r}; from elsewhere use `ray job submit`"
        )


def find_ray(*, alone: bool) -> Any:
    """Import Ray, set up to be quiet; *alone* on this machine it is out of reach of others."""
    # What Ray reads when it is imported has no effect on a program that has imported it before.
    for name, value in {**_OF_RAY, **(_ALONE if alone else {})}.items():
        os.environ.setdefault(name, value)
    return import_extra("ray", extra="ray", what="--engine ray")


@contextmanager
def connect_ray(n_workers: int, address: str | None) -> Iterator[Any]:
    """Give Ray, connected; at the end of the block nothing of it is left."""
    # What Ray itself prints on stdout is dropped: stdout may be where results go. A cluster of this
    # machine alone has *n_workers* CPUs and no dashboard, reports nothing to anybody, and its files
    # are removed.
    check_address(address)
    ray = find_ray(alone=address is None)
    block: AbstractContextManager[dict[str, Any]] = nullcontext({})
    with _configure_here(n_workers) if address is None else block as options:
        if address not in (None, AUTO):
            _check_reachable(str(address))
        with redirect_stdout(io.StringIO()):
            try:
                _connect(ray, address or "local", options)
                yield ray
            finally:
                ray.shutdown()


@contextmanager
def _configure_here(n_workers: int) -> Iterator[dict[str, Any]]:
    with TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        yield {
            "num_cpus": n_workers,
            "object_store_memory": _STORE_BYTES,
            "include_dashboard": False,
            "_temp_dir": folder,
        }


def _check_reachable(address: str) -> None:
    """Look whether somebody is there, which Ray tries to find out for ten minutes."""
    host, _, port = address.rpartition(":")
    try:
        create_connection((host, int(port)), timeout=_KNOCK).close()
    except (OSError, ValueError) as error:
        raise BackendError(f"cannot reach Ray at {address!r}: {error}") from error


def _connect(ray: Any, address: str, options: dict[str, Any]) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    try:
        ray.init(address=address, **quiet, **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        what = "cannot start Ray here" if options else f"cannot reach Ray at {address!r}"
        first = first_line(error).rstrip(".")
        hint = "" if options else _TOKEN
        raise BackendError(f"{what}: {first}{hint}") from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error of Ray, which may have many; its name if it has none."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def list_path() -> list[str]:
    """Return where modules of this process are found, for its workers."""
    return [str(Path(one or ".").resolve()) for one in sys.path]


def extend_path(path: Iterable[str]) -> None:
    """Have a worker find modules where the driver does, too."""
    sys.path.extend(one for one in path if one not in sys.path and Path(one).exists())


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
        self._path = list_path()
        return self

    def __exit__(self, *error: Any) -> None:
        self._block.close()

    def map(
        self, function: Callable[[SharedT, ItemT], ResultT], items: Iterable[ItemT], shared: SharedT
    ) -> Iterator[ResultT]:
        """Yield the results in the order of the items; a few of each worker's wait here."""
        # in a list, Ray does not fetch it
        given = [self._ray.put(pickle.dumps((function, shared)))]
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
            raise BackendError(f"a worker of Ray was lost: {first_line(error)}") from error


_opened: dict[str, tuple[Any, Any]] = {}  # in a worker: what it was given last


def _apply(key: str, given: list[Any], item: bytes, path: list[str]) -> Any:
    """Apply a function in a worker; modules may be found on the driver's *path* alone."""
    extend_path(path)
    if key not in _opened:
        _opened.clear()
        _opened[key] = pickle.loads(find_ray(alone=False).get(given[0]))
    function, shared = _opened[key]
    return function(shared, pickle.loads(item))
