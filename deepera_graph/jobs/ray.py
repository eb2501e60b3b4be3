"""The engine on Ray: each worker is a process with a part of the limits.

A worker that is lost, killed or with its machine, is replaced, and what it had in hand is done
again; each of these tasks alone in a worker, so that one that ends workers is found out and fails
by itself, after three of them.

Ray's actors are used and not Ray Data: results must come one by one in the order of a file that
may never end, with a few tasks in flight, and be written to a journal as they come; an error is
the business of one line.
"""

import asyncio
import io
import logging
import os
import pickle
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
    redirect_stdout,
)
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from socket import create_connection
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic
from typing import Any, Generic, Protocol, Self, TypeVar

from deepera_graph.budget import Budget, Meter
from deepera_graph.errors import BackendError, DeepEraError, RoleError, SettingsError, WorkerError
from deepera_graph.usage import Usage

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
    """Import Ray, set up to be quiet; *alone* on this machine it is out of reach of others.

    What Ray reads when it is imported has no effect on a program that has imported it before.

    Raises:
        SettingsError: It is not installed.
    """
    for name, value in {**_OF_RAY, **(_ALONE if alone else {})}.items():
        os.environ.setdefault(name, value)
    try:
        return import_module("ray")
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"--engine ray needs {error.name}: pip install 'deepera-graph[ray]'"
        ) from error


@contextmanager
def ray_cluster(n_workers: int, address: str | None) -> Iterator[Any]:
    """Give Ray, connected; at the end of the block nothing of it is left.

    What Ray itself prints on stdout is dropped: stdout may be where results go. A cluster of this
    machine alone has no dashboard, reports nothing to anybody, and its files are removed.

    Args:
        n_workers: CPUs that a cluster of this machine alone is to have.
        address: Of a cluster that is there, ``auto`` or ``host:port``; None starts one here.

    Raises:
        SettingsError: Ray is not installed, or the address cannot be used.
        BackendError: The cluster cannot be reached, or not be started.
    """
    check_address(address)
    ray = find_ray(alone=address is None)
    block: AbstractContextManager[dict[str, Any]] = nullcontext({})
    with _here(n_workers) if address is None else block as options:
        if address not in (None, AUTO):
            _check_reachable(str(address))
        with redirect_stdout(io.StringIO()):
            try:
                _connect(ray, address or "local", options)
                yield ray
            finally:
                ray.shutdown()


@contextmanager
def _here(n_workers: int) -> Iterator[dict[str, Any]]:
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
        first = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        hint = "" if options else _TOKEN
        raise BackendError(f"{what}: {first}{hint}") from error


_LIMITS = "limits"
_COUNTS = ("calls_at_once", "max_calls", "max_tokens")
_RATES = ("requests_per_minute", "tokens_per_minute", "max_cost")
_SHORTEST = 1e-3  # seconds: a budget's time must be > 0, even if it is up


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The part of one worker.

    What a limit leaves over when it is divided goes to the first workers, so that all parts
    together are the whole. What one worker does not use, no other one gets.

    Attributes:
        n_workers: How many there are, >= 1.
        place: Which of them this is, from 0.
        spent: What workers at this place that were lost have spent of it.
        seconds: How long the run has lasted, >= 0 seconds.
    """

    n_workers: int = 1
    place: int = 0
    spent: Usage = field(default_factory=Usage)
    seconds: float = 0.0

    def count(self, name: str, whole: int) -> int:
        """Return the part of a number of things, >= 1.

        Raises:
            SettingsError: There are fewer things than workers.
        """
        if whole < self.n_workers:
            raise SettingsError(
                f"{name} of {whole} cannot be divided among {self.n_workers} workers"
            )
        return whole // self.n_workers + (self.place < whole % self.n_workers)

    def limits(self, limits: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of limits by name: counts, rates and money are divided, the rest is not.

        Raises:
            SettingsError: A count is below the number of workers.
        """
        return {name: self._part(name, value) for name, value in limits.items()}

    def spec(self, spec: Any) -> Any:
        """Return the spec of a backend with the part of every model's limits in it."""
        if not isinstance(spec, Mapping):
            return spec
        return {
            name: self.limits(part) if name == _LIMITS else self.spec(part)
            for name, part in spec.items()
        }

    def budget(self, budget: Budget | None) -> Budget | None:
        """Return the part of a budget; its time runs from the beginning of the run."""
        if budget is None:
            return None
        part = self.limits(asdict(budget))
        if budget.max_seconds is not None:
            part["max_seconds"] = max(_SHORTEST, budget.max_seconds - self.seconds)
        return Budget(**part)

    def meter(self, budget: Budget | None) -> Meter:
        """Return what counts against the part of a budget, with what is spent already."""
        meter = Meter(self.budget(budget))
        meter.add(self.spent)
        return meter

    def _part(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if name in _COUNTS:
            return self.count(name, value)
        return value / self.n_workers if name in _RATES else value


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


_PATIENCE_local = 1.0  # seconds


class LocalEngine(Generic[TaskT, DoneT]):
    """Does tasks in a thread, so that a signal finds the caller's thread free.

    Args:
        do: What is done with a task.
        at_once: Most tasks at the same time, >= 1.
    """

    def __init__(self, do: Do[TaskT, DoneT], at_once: int) -> None:
        self.at_once = at_once
        self._do = do
        self._turns = asyncio.Semaphore(at_once)
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._work, name="deepera-engine", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        asyncio.run_coroutine_threadsafe(self._wind_up(), self._loop)
        self._thread.join(2 * _PATIENCE_local)
        if not self._thread.is_alive():
            self._loop.close()

    def start(self, task: TaskT) -> "Future[DoneT]":
        """Return what will be made of a task, without waiting."""
        return asyncio.run_coroutine_threadsafe(self._one(task), self._loop)

    async def _one(self, task: TaskT) -> DoneT:
        async with self._turns:
            return await self._do(task)

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _wind_up(self) -> None:
        """Cancel what is left; what it has still to say then interests nobody."""
        self._loop.set_exception_handler(lambda loop, context: None)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_PATIENCE_local)
        await self._loop.shutdown_asyncgens()
        self._loop.stop()


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


AHEAD = 2  # tasks a worker has beside those it is doing, so that it need not wait for the next


@dataclass(slots=True)
class Slot:
    """A place for a worker.

    Attributes:
        share: Of a worker that begins here now.
        room: Most tasks the worker is handed.
        actor: The worker.
        is_open: Whether it is ready.
        in_hand: How many tasks it has.
        is_alone: Whether the one task it has may be what ended the worker before.
        n_lost: Workers lost here since one was last ready.
    """

    share: Share
    room: int
    actor: Any = None
    is_open: bool = False
    in_hand: int = 0
    is_alone: bool = False
    n_lost: int = 0

    @property
    def has_room(self) -> bool:
        """Whether it can be handed a task."""
        return self.is_open and not self.is_alone and self.in_hand < self.room


@dataclass(slots=True)
class Slots(Generic[TaskT, DoneT]):
    """All places of one run.

    Args:
        ray: The module, connected.
        work: What the workers do.
        n_workers: How many places, >= 1.
        path: Folders where modules are looked for.

    Raises:
        SettingsError: A limit is too low to be divided among so many workers.
    """

    ray: Any
    work: Work[TaskT, DoneT]
    n_workers: int
    path: list[str]
    all: list[Slot] = field(init=False)
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        self._started = monotonic()
        shares = [Share(n_workers=self.n_workers, place=n) for n in range(self.n_workers)]
        self.all = [Slot(share, self.work.at_once(share) + AHEAD) for share in shares]

    @property
    def at_once(self) -> int:
        """How many tasks are done at the same time, in all places together."""
        return sum(slot.room - AHEAD for slot in self.all)

    def begin(self, slot: Slot) -> Any:
        """Put a new worker in a place; return Ray's reference to its getting ready."""
        if slot.actor is not None:
            self.ray.kill(slot.actor)
        slot.is_open = slot.is_alone = False
        slot.in_hand = 0
        share = replace(slot.share, seconds=monotonic() - self._started)
        options = {"num_cpus": 1, "max_concurrency": slot.room}
        work = pickle.dumps(self.work)
        slot.actor = self.ray.remote(Worker).options(**options).remote(work, share, self.path)
        return slot.actor.open.remote()

    def charge(self, slot: Slot, used: Usage) -> None:
        """Note what a worker has spent of its part."""
        slot.share = replace(slot.share, spent=slot.share.spent + used)

    def freest(self, *, empty: bool) -> Slot | None:
        """Return the place with the fewest tasks that can take one, or that is *empty*."""
        free = [slot for slot in self.all if slot.has_room]
        slot = min(free, key=lambda one: one.in_hand, default=None)
        return None if slot is None or (empty and slot.in_hand) else slot


_MOST_LOST = 3
_PATIENCE_ray_engine = 300.0  # seconds; a cluster may have to fetch machines first
_STOP = None
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Job(Generic[TaskT, DoneT]):
    """A task on its way, and how many workers were lost over it."""

    task: TaskT
    done: "Future[DoneT]"
    n_lost: int = 0


@dataclass(frozen=True, slots=True)
class _News:
    """A worker has ended what it was told: a job, or without one, to get ready."""

    slot: Slot
    actor: Any
    job: Any
    answer: "Future[Any]"


class RayEngine(Generic[TaskT, DoneT]):
    """Does tasks in workers of a Ray cluster; use it in a `with` block.

    Args:
        work: What is done; sent to the workers.
        n_workers: How many, >= 1; each counts as one CPU.
        address: Of a cluster that is there; None starts one on this machine, for the block.

    Raises:
        SettingsError: On entering the block: Ray is missing, a limit cannot be divided among so
            many workers, or a worker cannot get ready or would do something else than this process.
        BackendError: On entering the block: there is no such cluster, or it has no room.
    """

    def __init__(
        self, work: Work[TaskT, DoneT], *, n_workers: int, address: str | None = None
    ) -> None:
        if n_workers < 1:
            raise SettingsError(f"--workers must be >= 1, got {n_workers}")
        self._work, self._n_workers, self._address = work, n_workers, address
        self._news: SimpleQueue[_News | _Job[TaskT, DoneT] | None] = SimpleQueue()
        self._waiting: deque[_Job[TaskT, DoneT]] = deque()
        self._in_hand: dict[int, _Job[TaskT, DoneT]] = {}
        self._broken: BackendError | None = None
        self._block = ExitStack()

    @property
    def at_once(self) -> int:
        """How many tasks all workers together do at the same time."""
        return self._slots.at_once

    def __enter__(self) -> Self:
        with ExitStack() as block:
            ray = block.enter_context(ray_cluster(self._n_workers, self._address))
            path = [str(Path(one or ".").resolve()) for one in sys.path]
            self._slots = Slots(ray, self._work, self._n_workers, path)
            self._lost = (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError)
            self._open_all(ray)
            self._thread = Thread(target=self._supervise, name="deepera-ray", daemon=True)
            self._thread.start()
            block.callback(self._stop)
            self._block = block.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._block.close()

    def start(self, task: TaskT) -> "Future[DoneT]":
        """Return what will be made of a task, without waiting."""
        job = _Job[TaskT, DoneT](task, Future())
        self._news.put(job)
        return job.done

    def _open_all(self, ray: Any) -> None:
        opening = [self._slots.begin(slot) for slot in self._slots.all]
        try:
            answers: list[Ended[None]] = ray.get(opening, timeout=_PATIENCE_ray_engine)
        except ray.exceptions.GetTimeoutError as error:
            raise BackendError(
                f"Ray had no room for {self._n_workers} workers within {_PATIENCE_ray_engine:.0f} s"
            ) from error
        except ray.exceptions.RayError as error:
            raise BackendError(f"a worker of Ray cannot begin: {_first_line(error)}") from error
        for answer in answers:
            if answer.error is not None:
                raise answer.error
        for slot in self._slots.all:
            slot.is_open = True

    def _stop(self) -> None:
        self._news.put(_STOP)
        self._thread.join()

    def _supervise(self) -> None:
        """Take news one by one; all that changes is changed here, in one thread."""
        while (news := self._news.get()) is not _STOP:
            try:
                self._attend(news)
            except Exception as error:  # noqa: BLE001 - or who waits for a future would forever
                self._break(error)

    def _attend(self, news: _News | _Job[TaskT, DoneT]) -> None:
        if isinstance(news, _Job):
            self._waiting.append(news)
        else:
            self._take(news)
        self._hand_out()

    def _break(self, error: Exception) -> None:
        """Give up: the cluster is gone."""
        self._broken = BackendError(f"Ray cannot be used any more: {_first_line(error)}")
        for job in [*self._waiting, *self._in_hand.values()]:
            job.done.set_exception(self._broken)
        self._waiting.clear()
        self._in_hand.clear()

    def _hand_out(self) -> None:
        while self._waiting and self._broken is None:
            slot = self._slots.freest(empty=self._waiting[0].n_lost > 0)
            if slot is None:
                return
            job = self._waiting.popleft()
            self._in_hand[id(job)] = job
            slot.in_hand += 1
            slot.is_alone = job.n_lost > 0
            self._ask(slot, job, slot.actor.do.remote(job.task))
        while self._waiting and self._broken is not None:
            self._waiting.popleft().done.set_exception(self._broken)

    def _ask(self, slot: Slot, job: _Job[TaskT, DoneT] | None, asked: Any) -> None:
        def told(actor: Any, answer: "Future[Any]") -> None:
            self._news.put(_News(slot, actor, job, answer))

        asked.future().add_done_callback(partial(told, slot.actor))

    def _take(self, news: _News) -> None:
        if news.job is not None and self._in_hand.pop(id(news.job), None) is None:
            return  # given up
        error = news.answer.exception()
        if isinstance(error, self._lost):
            self._replace(news)
        elif news.job is None:
            self._take_opened(news.slot, error or news.answer.result().error)
        else:
            if news.actor is news.slot.actor:
                news.slot.in_hand -= 1
                news.slot.is_alone = False
            self._settle(news.slot, news.job, news.answer)

    def _take_opened(self, slot: Slot, error: BaseException | None) -> None:
        if error is not None:
            self._broken = BackendError(f"a worker cannot begin again: {_first_line(error)}")
        slot.is_open, slot.n_lost = error is None, 0

    def _settle(self, slot: Slot, job: _Job[TaskT, DoneT], answer: "Future[Any]") -> None:
        unforeseen = answer.exception()
        if unforeseen is not None:
            job.done.set_exception(unforeseen)
            return
        ended: Ended[DoneT] = answer.result()
        if ended.error is not None:
            if isinstance(ended.error, RoleError):
                self._slots.charge(slot, ended.error.usage)
            job.done.set_exception(ended.error)
        elif ended.done is not None:
            self._slots.charge(slot, self._work.cost(ended.done))
            job.done.set_result(ended.done)

    def _replace(self, news: _News) -> None:
        """Have what a lost worker had in hand done again, and put another in its place."""
        if news.job is not None:
            self._do_again(news.job)
        slot = news.slot
        if news.actor is not slot.actor:  # replaced already
            return
        slot.n_lost += 1
        _logger.warning("a worker was lost; what it had in hand is done again")
        if slot.n_lost > _MOST_LOST:
            self._broken = BackendError(f"{slot.n_lost} workers were lost while getting ready")
            return
        opening = self._slots.begin(slot)
        self._ask(slot, None, opening)

    def _do_again(self, job: _Job[TaskT, DoneT]) -> None:
        job.n_lost += 1
        if job.n_lost < _MOST_LOST:
            self._waiting.appendleft(job)
            return
        job.done.set_exception(WorkerError(f"{job.n_lost} workers were lost over it"))


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def in_order(engine: Engine[TaskT, DoneT], tasks: Iterable[TaskT]) -> Iterator[DoneT]:
    """Yield what an engine makes of each task; the first error ends all, be it of reading or doing.

    Args:
        engine: Within its block.
        tasks: Read one by one, never more than twice the engine's `at_once` ahead. If reading them
            fails, the results before are yielded first.
    """
    reading = iter(tasks)
    waiting: deque[Future[DoneT]] = deque()
    failed: list[Exception] = []
    while True:
        try:
            room = AHEAD * engine.at_once - len(waiting)
            waiting.extend(engine.start(task) for task in islice(reading, room))
        except Exception as error:  # noqa: BLE001 - raised when it is its turn
            failed.append(error)
            reading = iter(())
        if not waiting:
            break
        yield waiting.popleft().result()
    for one in failed:
        raise one
