"""The engine on Ray: each worker is a process with a part of the limits.

A worker that is lost, killed or with its machine, is replaced, and what it had in hand is done
again; each of these tasks alone in a worker, so that one that ends workers is found out and fails
by itself, after three of them.

Ray's actors are used and not Ray Data: results must come one by one in the order of a file that
may never end, with a few tasks in flight, and be written to a journal as they come; an error is
the business of one line.
"""

import logging
import sys
from collections import deque
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, Self

from deepera_graph.engines.engine import DoneT, TaskT, Work
from deepera_graph.engines.ray_cluster import ray_cluster
from deepera_graph.engines.ray_slots import Slot, Slots
from deepera_graph.engines.ray_worker import Ended
from deepera_graph.errors import BackendError, RoleError, SettingsError, WorkerError

_MOST_LOST = 3
_PATIENCE = 300.0  # seconds; a cluster may have to fetch machines first
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
            answers: list[Ended[None]] = ray.get(opening, timeout=_PATIENCE)
        except ray.exceptions.GetTimeoutError as error:
            raise BackendError(
                f"Ray had no room for {self._n_workers} workers within {_PATIENCE:.0f} s"
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
