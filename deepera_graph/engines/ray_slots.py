"""The places of workers: who is there, what each has in hand, and who comes after a lost one."""

import pickle
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Generic

from deepera_graph.engines.engine import DoneT, TaskT, Work
from deepera_graph.engines.ray_worker import Worker
from deepera_graph.engines.share import Share
from deepera_graph.usage import Usage

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
