"""Judging in worker processes on Ray, each with a part of the limits.

A worker that is lost is replaced, and what it had in hand is judged again, each question alone: one
that ends workers is reported after three of them. Ray's own `max_task_retries` would let it take
its neighbours along, and `max_restarts` would give the new worker the whole budget again. Ray Data
is handed blocks, and gives back blocks; here a line is written as soon as it is judged.
"""

import asyncio
import logging
import pickle
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any, Protocol, Self

from deepera_graph.agents.journal import find_differences
from deepera_graph.errors import BackendError, RoleError, SettingsError, WorkerError
from deepera_graph.jobs.cluster import connect_ray, extend_path, first_line, list_path
from deepera_graph.jobs.files import describe_run
from deepera_graph.jobs.lines import QuestionLine
from deepera_graph.jobs.rerank import JudgedLine, LocalEngine, build_line_judge
from deepera_graph.reranker import EvidenceReranker, most_questions_at_once
from deepera_graph.settings import Settings
from deepera_graph.settings.budget import Budget, Meter
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.usage import Usage

AHEAD = 2  # questions a worker has beside those it judges, so that it need not wait for the next
_MOST_LOST = 3
_PATIENCE = 300.0  # seconds; a cluster may have to fetch machines first
_logger = logging.getLogger(__name__)


_LIMITS = "limits"
_COUNTS = ("calls_at_once", "max_calls", "max_tokens")
_RATES = ("requests_per_minute", "tokens_per_minute", "max_cost")
_SHORTEST = 1e-3  # seconds: a budget's time must be > 0, even if it is up


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The part of one worker in what is limited; all parts together are the whole.

    What is left over when a limit is divided goes to the first workers. What one worker does not
    use, no other one gets.
    """

    n_workers: int = 1
    place: int = 0  # which of them this is, from 0
    spent: Usage = field(default_factory=Usage)  # by the workers that were lost at this place
    seconds: float = 0.0  # how long the run has lasted

    def divide_count(self, name: str, whole: int) -> int:
        """Return the part of a number of things, >= 1; a `SettingsError` if there are too few."""
        if whole < self.n_workers:
            raise SettingsError(
                f"{name} of {whole} cannot be divided among {self.n_workers} workers"
            )
        return whole // self.n_workers + (self.place < whole % self.n_workers)

    def divide_limits(self, limits: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of limits by name: counts, rates and money are divided, no others."""
        return {name: self._divide(name, value) for name, value in limits.items()}

    def divide_spec(self, spec: Any) -> Any:
        """Return the spec of a backend with the part of every model's limits in it."""
        if not isinstance(spec, Mapping):
            return spec
        return {
            name: self.divide_limits(part) if name == _LIMITS else self.divide_spec(part)
            for name, part in spec.items()
        }

    def divide_budget(self, budget: Budget | None) -> Budget | None:
        """Return the part of a budget; its time runs from the beginning of the run."""
        if budget is None:
            return None
        part = self.divide_limits(asdict(budget))
        if budget.max_seconds is not None:
            part["max_seconds"] = max(_SHORTEST, budget.max_seconds - self.seconds)
        return Budget(**part)

    def build_meter(self, budget: Budget | None) -> Meter:
        """Return what counts against the part of a budget, with what is spent already."""
        meter = Meter(self.divide_budget(budget))
        meter.charge(self.spent, n_ended=0)
        return meter

    def _divide(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if name in _COUNTS:
            return self.divide_count(name, value)
        return value / self.n_workers if name in _RATES else value


class Work(Protocol):
    """What workers do, as plain data: it is sent to them. `JudgingWork` judges lines."""

    def at_once(self, share: Share) -> int:
        """How many tasks a worker does at the same time, >= 1."""

    def open(self, share: Share) -> AbstractContextManager[Callable[[Any], Awaitable[Any]]]:
        """Give what does a task; a `SettingsError` if a worker cannot get ready."""

    def cost(self, done: Any) -> Usage:
        """What a task has cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingWork:
    """How a worker in another process judges lines, as plain data without secrets.

    It builds a reranker of its own with its part of the limits: calls at once, those of every
    model, and the budget.
    """

    plain: Mapping[str, Any]  # of `EvidenceReranker.to_dict`
    run: Mapping[str, Any]  # of `describe_run`; a worker that would judge otherwise does not begin
    cache: Path | None = None  # file of the judgement cache, opened where the worker is

    @classmethod
    def of(cls, reranker: EvidenceReranker, cache: JudgementCache | None = None) -> Self:
        """Write a reranker down; a `SettingsError` if its backend was made from live objects."""
        path = None if cache is None else cache.path
        return cls(plain=reranker.to_dict(), run=describe_run(reranker), cache=path)

    def at_once(self, share: Share) -> int:
        """How many questions a worker judges at the same time, >= 1."""
        return most_questions_at_once(self._settings(share))

    @contextmanager
    def open(self, share: Share) -> Iterator[Callable[[QuestionLine], Awaitable[JudgedLine]]]:
        """Build the reranker; a `SettingsError` if it cannot be built, or would judge otherwise."""
        settings = self._settings(share)
        whole = Settings.of(self.plain["settings"])
        cache = None if self.cache is None else JudgementCache(self.cache)
        spec = share.divide_spec(self.plain["backend"])
        try:
            reranker = EvidenceReranker.from_dict(
                {"backend": spec, "settings": settings.to_dict()}, cache=cache
            )
            found = find_differences(self.run, describe_run(reranker))
            if found:
                raise SettingsError(f"a worker would judge otherwise: {'; '.join(found)}")
            yield build_line_judge(reranker, share.build_meter(whole.budget))
        finally:
            if cache is not None:
                cache.close()

    def cost(self, judged: JudgedLine) -> Usage:
        """What a question has cost."""
        return sum(map(Usage.of, judged.stats["usage"].values()), Usage())

    def _settings(self, share: Share) -> Settings:
        whole = dict(self.plain["settings"])
        at_once = share.divide_count("--max-concurrency", whole["max_concurrency"])
        budget = share.divide_budget(Settings.of(whole).budget)
        return Settings.of({**whole, "max_concurrency": at_once, "budget": budget})


class Worker:
    """Judges lines in a process of its own; Ray calls it in the event loop of that process.

    The work comes pickled, as its modules may be found on the driver's *path* alone.
    """

    def __init__(self, work: bytes, share: Share, path: list[str]) -> None:
        extend_path(path)
        self._work: Work = pickle.loads(work)
        self._share = share
        self._block = ExitStack()

    async def open(self) -> None:
        """Get ready."""
        self._slots = asyncio.Semaphore(self._work.at_once(self._share))
        self._judge = self._block.enter_context(self._work.open(self._share))

    async def judge(self, line: Any) -> Any:
        """Judge a line, or what else the work is."""
        async with self._slots:
            return await self._judge(line)


class _Slot:
    """A place for a worker, which is replaced there if it is lost."""

    def __init__(self, share: Share, n_at_once: int) -> None:
        self.share = share
        self.room = n_at_once + AHEAD
        self.worker: Any = None
        self.is_lost = False
        self.alone = asyncio.Lock()  # for a question that may be what ended the worker before
        self.n_suspects = 0
        self.no_suspects = asyncio.Event()
        self.no_suspects.set()

    def charge(self, used: Usage) -> None:
        """Note what the worker has spent of its part."""
        self.share = replace(self.share, spent=self.share.spent + used)


class RayEngine:
    """Judges in workers of a Ray cluster, one CPU each; use it in a `with` block.

    Without an address a cluster is started on this machine, for the block. Entering raises a
    `SettingsError` if a worker cannot get ready, and a `BackendError` if the cluster has no room.
    """

    def __init__(self, work: Work, *, n_workers: int, address: str | None = None) -> None:
        if n_workers < 1:
            raise SettingsError(f"--workers must be >= 1, got {n_workers}")
        self._work, self._n_workers, self._address = work, n_workers, address
        self._seats: asyncio.Queue[_Slot] = asyncio.Queue()  # each slot as often as it has room
        self._block = ExitStack()

    @property
    def at_once(self) -> int:
        """How many questions all workers together judge at the same time."""
        return sum(slot.room - AHEAD for slot in self._slots)

    def __enter__(self) -> Self:
        shares = [Share(n_workers=self._n_workers, place=n) for n in range(self._n_workers)]
        self._slots = [_Slot(share, self._work.at_once(share)) for share in shares]
        self._path = list_path()
        with ExitStack() as block:
            self._ray = block.enter_context(connect_ray(self._n_workers, self._address))
            self._lost = (self._ray.exceptions.RayActorError, self._ray.exceptions.ObjectLostError)
            self._started = monotonic()
            self._open_all()
            n_seats = sum(slot.room for slot in self._slots)
            self._driver = block.enter_context(LocalEngine(self._judge, n_seats))
            self._block = block.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._block.close()

    def start(self, line: Any) -> "Future[Any]":
        """Return what will be made of a question, or another task, without waiting."""
        return self._driver.start(line)

    def _open_all(self) -> None:
        errors = self._ray.exceptions
        try:
            self._ray.get([self._begin(slot) for slot in self._slots], timeout=_PATIENCE)
        except errors.GetTimeoutError as error:
            raise BackendError(
                f"Ray had no room for --workers {self._n_workers} within {_PATIENCE:.0f} s"
            ) from error
        except errors.RayTaskError as error:
            raise error.cause from error
        except errors.RayError as error:
            raise BackendError(f"a worker of Ray cannot begin: {first_line(error)}") from error
        for number in range(max(slot.room for slot in self._slots)):
            for slot in self._slots:
                if number < slot.room:
                    self._seats.put_nowait(slot)

    def _begin(self, slot: _Slot) -> Any:
        """Put a new worker in a slot; return Ray's reference to its getting ready."""
        if slot.worker is not None:
            self._ray.kill(slot.worker)
        share = replace(slot.share, seconds=monotonic() - self._started)
        options = {"num_cpus": 1, "max_concurrency": slot.room}
        work = pickle.dumps(self._work)
        slot.worker = self._ray.remote(Worker).options(**options).remote(work, share, self._path)
        return slot.worker.open.remote()

    async def _judge(self, line: Any) -> Any:
        """Judge a question in a worker that has a seat free, again if that worker is lost."""
        slot = await self._seats.get()
        try:
            await slot.no_suspects.wait()
            return await self._ask(slot, line)
        except self._lost:
            return await self._judge_alone(slot, line)
        finally:
            self._seats.put_nowait(slot)

    async def _judge_alone(self, slot: _Slot, line: Any) -> Any:
        slot.n_suspects += 1
        slot.no_suspects.clear()
        try:
            async with slot.alone:
                for _ in range(_MOST_LOST - 1):
                    await self._replace_lost(slot)
                    with suppress(*self._lost):
                        return await self._ask(slot, line)
                await self._replace_lost(slot)
            raise WorkerError(f"{_MOST_LOST} workers were lost over it")
        finally:
            slot.n_suspects -= 1
            if not slot.n_suspects:
                slot.no_suspects.set()

    async def _ask(self, slot: _Slot, line: Any) -> Any:
        worker = slot.worker
        try:
            judged = await worker.judge.remote(line)
        except self._lost:
            slot.is_lost = slot.is_lost or worker is slot.worker
            raise
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, RoleError):
                slot.charge(error.cause.usage)
            raise error.cause from error
        except self._ray.exceptions.RayError as error:
            raise BackendError(f"Ray cannot be used any more: {first_line(error)}") from error
        slot.charge(self._work.cost(judged))
        return judged

    async def _replace_lost(self, slot: _Slot) -> None:
        """Put another worker in the place of one that was lost."""
        for _ in range(_MOST_LOST):
            if not slot.is_lost:
                return
            _logger.warning("a worker was lost; what it had in hand is judged again")
            try:
                await self._begin(slot)
            except self._lost:
                continue
            except self._ray.exceptions.RayError as error:
                cause = getattr(error, "cause", error)
                raise BackendError(f"a worker cannot begin again: {first_line(cause)}") from error
            slot.is_lost = False
        if slot.is_lost:
            raise BackendError(f"{_MOST_LOST + 1} workers were lost while getting ready")
