"""The limits of a run: what it may cost, and how many calls may be in flight at once."""

import asyncio
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextvars import copy_context
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from threading import Event, Lock, RLock
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, TypeVar

from deepera_graph.errors import BudgetError, SettingsError
from deepera_graph.settings.ranges import check_not_negative, check_positive, check_setting, setting
from deepera_graph.usage import HasUsage, Usage

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

_REACHED = "budget reached"
_limit = partial(setting, None, check=check_positive, shown="no limit", metavar="N")
_price = partial(setting, None, check=check_not_negative, metavar="M")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run may cost; None is no limit.

    At a limit no new call starts, and calls in flight are finished; when the time is up, calls of a
    chat model are abandoned, too, counted as failed calls whose tokens nobody knows. Roles of
    one's own and models that run in this process end what they are doing.

    Raises:
        SettingsError: A number is out of range, or there is a cost without prices.
    """

    max_calls: int | None = _limit(
        "Upper bound of calls, retries included; replies from the cache are free.",
        brief="Upper bound of calls to the chat model.",
    )
    max_tokens: int | None = _limit(
        "Upper bound of tokens, prompts and replies together; calls in flight are finished."
    )
    max_seconds: float | None = _limit(
        "Longest time, in seconds: then no call starts, and those in flight are abandoned.",
        metavar="S",
    )
    max_cost: float | None = _limit(
        "Upper bound of the cost, in the currency of the prices; needs both prices.", metavar="M"
    )
    input_price: float | None = _price("Price of a million prompt tokens.")
    output_price: float | None = _price("Price of a million reply tokens.")

    def __post_init__(self) -> None:
        for one in fields(self):
            check_setting(one, getattr(self, one.name))
        if self.max_cost is not None and not self.has_prices:
            raise SettingsError("max_cost needs input_price and output_price")

    @property
    def has_prices(self) -> bool:
        """Whether both prices are known."""
        return None not in (self.input_price, self.output_price)

    def cost(self, usage: Usage) -> float:
        """Return what tokens cost, in the currency of the prices; without prices 0."""
        paid_in = usage.input_tokens * (self.input_price or 0)
        return (paid_in + usage.output_tokens * (self.output_price or 0)) / 1_000_000

    def to_dict(self) -> dict[str, Any]:
        """Return the limits that are set, as plain data."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(HasUsage):
    """The most that questions may cost if every reply is usable; second tries are not counted.

    With `stop_after` among the settings fewer passages may be asked about: all of them are counted.

    Attributes:
        n_questions: Questions counted, >= 0.
        n_passages: Their passages together, >= 0.
        usage: Calls and tokens a stage, for every passage that may be kept kept. A token is taken
            for 4 characters of prompt, and a verdict or a summary in a reply for 60 tokens.
        tokens_known: Whether all tokens are counted; the roles of one's own count calls alone.
        cost: Money, in the currency of the budget's prices; None without both prices.
    """

    n_questions: int
    n_passages: int
    usage: Mapping[str, Usage]
    tokens_known: bool
    cost: float | None

    @classmethod
    def of(
        cls,
        results: Sequence[HasUsage],
        n_passages: int,
        budget: Budget | None,
        *,
        tokens_known: bool,
    ) -> Self:
        """Add up what counting runs used; *budget* has the prices."""
        usage: dict[str, Usage] = {}
        for result in results:
            for stage, used in result.usage.items():
                usage[stage] = usage.get(stage, Usage()) + used
        whole = sum(usage.values(), Usage())
        return cls(
            n_questions=len(results),
            n_passages=n_passages,
            usage=usage,
            tokens_known=tokens_known,
            cost=budget.cost(whole) if budget is not None and budget.has_prices else None,
        )


_NO_BUDGET, _NOTHING = Budget(), Usage()


class Meter:
    """Counts what one run, or several that share it, have cost; for threads and loops alike."""

    def __init__(self, budget: Budget | None, clock: Callable[[], float] = monotonic) -> None:
        self._budget = budget or _NO_BUDGET
        self._clock, self._started = clock, clock()
        self._lock = RLock()
        self._in_flight = 0
        self.spent = Usage()

    def admit(self) -> None:
        """Let one more call start."""
        with self._lock:
            if reached := self.reached():
                raise BudgetError(f"{_REACHED}: {reached}")
            self._in_flight += 1

    def check(self, *, after: float = 0.0) -> None:
        """Make sure that a call admitted before may still start, *after* seconds from now."""
        if reached := self.reached(after=after, is_admitted=True):
            raise BudgetError(f"{_REACHED}: {reached}")

    def reached(self, *, after: float = 0.0, is_admitted: bool = False) -> str:
        """Return the limit that keeps a call from starting, in words; empty if none does."""
        # One that *is_admitted* is among the calls that count already.
        with self._lock:
            budget, spent, in_flight = self._budget, self.spent, self._in_flight
        if (
            not is_admitted
            and budget.max_calls is not None
            and spent.sent_calls + in_flight >= budget.max_calls
        ):
            return f"{budget.max_calls} calls"
        if budget.max_tokens is not None and spent.tokens >= budget.max_tokens:
            return f"{budget.max_tokens} tokens"
        if budget.max_cost is not None and budget.cost(spent) >= budget.max_cost:
            digits = ".2f" if budget.max_cost == round(budget.max_cost, 2) else "g"
            return f"cost {budget.max_cost:{digits}}"
        seconds = self._clock() - self._started + after
        if budget.max_seconds is not None and seconds >= budget.max_seconds:
            return f"{budget.max_seconds:g} seconds"
        return ""

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the time is up, >= 0; None if there is no such limit."""
        most = self._budget.max_seconds
        return None if most is None else max(0.0, self._started + most - self._clock())

    def charge(self, usage: Usage, n_ended: int = 1) -> None:
        """Note that a call has ended, and what it cost; or, with 0, what one cost in addition."""
        with self._lock:
            self._in_flight -= n_ended
            self.spent += usage

    def abandoned(self, usage: Usage) -> BudgetError:
        """Return what a call raises that was in flight when the time was up."""
        seconds = f"{_REACHED}: {self._budget.max_seconds:g} seconds"
        return BudgetError(f"{seconds}; a call in flight was abandoned", usage=usage)


@dataclass(slots=True)
class Tab:
    """What one role call runs up: the calls it really sends, one after the other or at once.

    The first of them is admitted already, when the role is called. A retry or a repeated
    question is a call of its own, and starts only if the budget allows another.
    """

    meter: Meter  # of the run
    usage: Usage = _NOTHING  # what the role says in the end
    _admitted: bool = True
    _charged: Usage = _NOTHING

    def start(self) -> None:
        """Let one call start now."""
        if self._admitted:
            self.meter.check()
            self._admitted = False
        else:
            self.meter.admit()

    def end(self, usage: Usage) -> None:
        """Note that a call has ended, and what it cost."""
        self._charged += usage
        self.meter.charge(usage)

    def close(self) -> None:
        """Charge what the role says it cost, as far as its calls were not charged one by one."""
        if self._admitted:  # not one of them was
            self.meter.charge(self.usage)
        else:
            self.meter.charge(self.usage.beyond(self._charged), n_ended=0)


class Limiter:
    """At most *n* holders at once, first come first served; for threads and event loops alike."""

    def __init__(self, n: int) -> None:
        self._free = n
        self._lock = Lock()
        self._waiting: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        turn = self._ask()
        if turn is not None:
            try:
                turn.result()
            except BaseException:
                self._give_up(turn)
                raise
        return self

    def __exit__(self, *error: object) -> None:
        """Pass the turn on to the first who waits."""
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._free += 1

    async def __aenter__(self) -> Self:
        turn = self._ask()
        if turn is not None:
            try:
                await asyncio.wrap_future(turn)
            except BaseException:
                self._give_up(turn)
                raise
        return self

    async def __aexit__(self, *error: object) -> None:
        self.__exit__()

    def _ask(self) -> "Future[None] | None":
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return None
            turn: Future[None] = Future()
            self._waiting.append(turn)
            return turn

    def _give_up(self, turn: "Future[None]") -> None:
        """Pass the turn on if it was granted while its owner was being cancelled."""
        with self._lock:
            granted = not turn.cancel()
        if granted:
            self.__exit__()


_NO_LIMIT = Limiter(sys.maxsize)
_KEY = "__deepera"  # keys of this form stay out of checkpoints and traces


@dataclass(frozen=True, slots=True)
class Carried:
    """What the config of a run carries to the role calls, and what one of them to its own calls.

    A role that asks a reranker itself holds its turn while it waits. If the calls within had to
    wait for turns of the same limiter, and every turn were held in this way, none would ever end:
    so they use, one after the other, the turn of the role that asks.
    """

    meter: Meter  # what the run has cost
    limiter: Limiter | None = None  # the limit of the run itself
    tab: Tab = field(default_factory=lambda: Tab(Meter(None)))  # what the role call has run up
    # for each limiter whose turn is held already, the one turn in it
    held: Mapping[Limiter, Limiter] = field(default_factory=dict)
    broken_off: tuple[Event, ...] = ()  # set where nobody waits for a run any more

    @property
    def is_broken_off(self) -> bool:
        """Whether nobody waits for the run, or for one around it, any more."""
        return any(one.is_set() for one in self.broken_off)

    def turn(self, limiter: Limiter | None) -> Limiter:
        """Return where a call takes its turn."""
        return _NO_LIMIT if limiter is None else self.held.get(limiter, limiter)


def carried(config: "RunnableConfig | None", budget: Budget | None = None) -> Carried:
    """Return what a config carries; if nothing, what a run within a *budget* begins with."""
    found = ((config or {}).get("configurable") or {}).get(_KEY)
    return found if isinstance(found, Carried) else Carried(meter=Meter(budget))


def carry(config: "RunnableConfig | None", what: Carried) -> "RunnableConfig":
    """Return a config that carries it."""
    given: RunnableConfig = config or {}
    return {**given, "configurable": {**(given.get("configurable") or {}), _KEY: what}}


def with_meter(config: "RunnableConfig", meter: Meter) -> "RunnableConfig":
    """Return a config that carries a meter to the role calls."""
    return carry(config, replace(carried(config), meter=meter))


JobT = TypeVar("JobT")
DoneT = TypeVar("DoneT")


def do_many(do: Callable[[JobT], DoneT], jobs: Sequence[JobT], at_once: int) -> list[DoneT]:
    """Return what *do* makes of each job, *at_once* in threads that see the caller's context."""
    with ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(copy_context().run, do, job) for job in jobs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def stream_many(do: Callable[[JobT], DoneT], jobs: Sequence[JobT], at_once: int) -> Iterator[DoneT]:
    """Yield what `do_many` returns, each as soon as it is there, in any order."""
    with ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(copy_context().run, do, job) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


async def ado_many(
    do: Callable[[JobT], Awaitable[DoneT]],
    jobs: Sequence[JobT],
    at_once: int,
    *,
    paid: type[BaseException] = BudgetError,
) -> list[DoneT]:
    """Do what `do_many` does, in the running loop.

    Where a job fails no other begins. Those in flight are cancelled, but after an error of kind
    *paid* they are finished: what they bring is paid for.
    """
    turns, failed = asyncio.Semaphore(at_once), asyncio.Event()

    async def one(job: JobT) -> list[DoneT]:
        async with turns:
            if failed.is_set():
                return []
            try:
                return [await do(job)]
            except BaseException:
                failed.set()
                raise

    tasks = [asyncio.create_task(one(job)) for job in jobs]
    try:
        return [each for many in await asyncio.gather(*tasks) for each in many]
    except BaseException as error:
        if not isinstance(error, paid):
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
