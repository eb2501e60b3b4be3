"""How calls go to a model's server: in one loop, retried, through a breaker, within its limits.

A client keeps its connections in the loop that opened them, and fails in any other ("Event loop is
closed"). Callers come from threads, from notebooks, from several `asyncio.run` one after another;
so the calls themselves all run in one loop of this process, in a thread of its own.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from threading import Lock, Thread
from time import monotonic
from typing import Any, TypeVar

from deepera_graph.errors import BudgetError, CallError
from deepera_graph.settings.budget import Tab
from deepera_graph.settings.ranges import check_at_least, check_not_negative, check_positive
from deepera_graph.usage import Usage

T = TypeVar("T")
_THREADS_FOR_SYNC_MODELS = 64

_lock = Lock()
_loop: asyncio.AbstractEventLoop | None = None
_owner: int | None = None


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* in the loop of the model calls, and wait in this thread; not from that loop."""
    loop = _start_loop()
    try:
        is_inside = asyncio.get_running_loop() is loop
    except RuntimeError:
        is_inside = False
    if is_inside:
        work.close()
        raise RuntimeError("a synchronous rerank was started from inside a model call")
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def arun(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* in the loop of the model calls, and wait in the loop of the caller."""
    loop = _start_loop()
    if asyncio.get_running_loop() is loop:
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


def close_later(close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Close a client in the loop of the model calls, without waiting."""
    if _loop is not None and _owner == os.getpid() and _loop.is_running():
        asyncio.run_coroutine_threadsafe(close(), _loop)


def _start_loop() -> asyncio.AbstractEventLoop:
    """Return the loop, started on first use and again in a forked child."""
    global _loop, _owner  # one loop a process is the point
    with _lock:
        if _loop is None or _owner != os.getpid():
            _loop, _owner = asyncio.new_event_loop(), os.getpid()
            _loop.set_default_executor(
                ThreadPoolExecutor(_THREADS_FOR_SYNC_MODELS, "deepera-model")
            )
            Thread(target=_loop.run_forever, name="deepera-io", daemon=True).start()
        return _loop


_RETRIED = frozenset({408, 409, 425, 429})
_NEVER_RETRIED = frozenset({501, 505})
_ATTEMPTS_TO_CONNECT = 2  # nobody listens: that seldom passes in seconds
_MOST_IN_A_ROW = {401: 8, 403: 8, 404: 8, 500: 16}  # by a server that never answered
_MOST_GIVEN_UP = 8
_SECONDS_OPEN = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Bounds on waiting for one reply; all times in seconds.

    Attributes:
        attempts: Most calls for one reply, >= 1. An answer takes two replies at most, in each
            output mode that is tried because the server may not know another. HTTP 500 is how some
            servers refuse a mode: until one has worked, it costs four calls at most in all modes.
        timeout: Longest one call may take, > 0; waiting for the rate limits is no part of it.
        first_wait: Wait before the second attempt; doubled for every further one, and cut by up
            to half at random, so that many callers do not come back at once.
        longest_wait: Longest single wait; a server that asks for more by ``Retry-After`` is not
            waited for, one that asks for less is waited for that long and a `first_wait` more.
        total_wait: Most waiting between the attempts in all.

    Raises:
        SettingsError: A bound is out of range.
    """

    attempts: int = 4
    timeout: float = 60.0
    first_wait: float = 0.5
    longest_wait: float = 20.0
    total_wait: float = 60.0

    def __post_init__(self) -> None:
        check_at_least("attempts", self.attempts, 1)
        check_positive("timeout", self.timeout)
        for name in ("first_wait", "longest_wait", "total_wait"):
            check_not_negative(name, getattr(self, name))


class CircuitBreaker:
    """Opens where a server answers nobody; while it is open, calls fail at once, unsent.

    It opens after eight refusals in a row (401, 403, 404), or 16 failures (500), of a server that
    has never answered: what it refuses after an answer concerns one passage. And it opens, whatever
    was before, after eight calls in a row that were given up at their last attempt because the
    server was overloaded (429, 502, 503, ...) or silent. Every 5 seconds some are sent again, as a
    key may be activated late and an overload pass; one answer closes it. *clock* gives seconds that
    only grow.

    Source:
        M. Nygard, Release It!, 2nd edition (2018), 5.2; https://martinfowler.com/bliki/CircuitBreaker.html
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._n_failed, self._n_given_up, self._open_until = 0, 0, 0.0
        self._has_answered = False

    def check(self) -> None:
        """Let a call pass, or raise what the server said last."""
        if self._clock() < self._open_until:
            raise CallError(self._message, status=self._status, unusable=self._status != 500)

    def note_answer(self) -> None:
        """Note that a call was answered, well or badly."""
        self._has_answered = True
        self._n_given_up, self._open_until = 0, 0.0

    def note_failure(self, error: CallError) -> None:
        """Note that an attempt failed."""
        most = _MOST_IN_A_ROW.get(error.status or 0)
        if most is None or self._has_answered:
            self._n_failed = 0
            return
        self._n_failed += 1
        if self._n_failed >= most:
            self._open(error, str(error))

    def note_given_up(self, error: CallError) -> None:
        """Note that a call has failed for good."""
        if error.status == 500:
            return
        self._n_given_up = self._n_given_up + 1 if is_retryable(error) else 0
        if self._n_given_up >= _MOST_GIVEN_UP:
            n = f"{self._n_given_up} calls in a row were given up"
            self._open(error, f"{error}; {n}, so that this one was not sent")

    def _open(self, error: CallError, message: str) -> None:
        self._open_until = self._clock() + _SECONDS_OPEN
        self._message, self._status = message, error.status


Slot = Callable[[], AbstractAsyncContextManager[None]]


class Retrier:
    """Sends the calls of one model within a `RetryPolicy`; lives in one event loop."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._random = random.Random(0)

    async def send(
        self,
        call: Callable[[], Awaitable[tuple[T, Usage]]],
        slot: Slot,
        tab: Tab,
        *,
        attempts_at_500: int | None = None,
        n_broken: int = 0,
    ) -> tuple[T, Usage]:
        """Return the first reply, and what it cost with what failed on the way."""
        # *call* sends once and charges the *tab*; *slot* waits until a call may start. HTTP 500
        # gets *attempts_at_500* at most, where it may mean something else; after *n_broken* of them
        # in other ways this waits before it starts. A `CallError` or `BudgetError` carries the
        # usage of all attempts.
        failed, waited, problem = Usage(), 0.0, ""
        wait: float | None = self._backoff(n_broken) if n_broken else 0.0
        for attempt in range(1, self._policy.attempts + 1):
            try:
                if wait:
                    tab.meter.check(after=wait)
                    await asyncio.sleep(wait)
                async with slot():
                    reply, used = await call()
                return reply, used + failed
            except CallError as error:
                failed += error.usage
                wait = self._seconds_to_wait(error, attempt, attempts_at_500)
                if wait is None or waited + wait > self._policy.total_wait:
                    error.usage = failed
                    raise
                problem = f", after {error}"
                waited += wait
            except BudgetError as error:
                raise BudgetError(f"{error}{problem}", usage=failed + error.usage) from error
        raise AssertionError("the last attempt returns or raises")

    def _seconds_to_wait(
        self, error: CallError, attempt: int, attempts_at_500: int | None
    ) -> float | None:
        """Return the seconds before another attempt, None if there is to be none."""
        most = self._policy.attempts
        if error.status == 500 and attempts_at_500 is not None:
            most = min(most, attempts_at_500)
        if error.unusable:
            most = min(most, _ATTEMPTS_TO_CONNECT)
        if attempt >= most or not is_retryable(error):
            return None
        asked = error.retry_after or 0.0
        if asked > self._policy.longest_wait:
            return None
        return min(asked + self._backoff(attempt), self._policy.longest_wait)

    def _backoff(self, n_failed: int) -> float:
        """Return the seconds to wait after so many failures in a row."""
        wait = self._policy.first_wait * 2.0 ** (n_failed - 1) * self._random.uniform(0.5, 1)
        return min(wait, self._policy.longest_wait)


def is_retryable(error: CallError) -> bool:
    """Tell a passing failure (transport, 408, 409, 425, 429, 5xx) from a lasting one."""
    if error.status is None:
        return error.transport
    return error.status in _RETRIED or (error.status >= 500 and error.status not in _NEVER_RETRIED)


_SECONDS = 60.0
_SHARE_USED = 0.99  # what is sent evenly does not arrive evenly
_LATENESS = 0.25  # seconds: a slot that was missed by less is made up for
_TOKENS_PER_CHARACTER = 0.25
_ANSWER_TOKENS = 100.0
_WEIGHT_OF_NEWEST = 0.2  # of the newest call in the estimate of the next


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """What a model's server allows; None is no limit.

    Attributes:
        calls_at_once: Most calls in flight, >= 1.
        requests_per_minute: Most calls a minute, > 0, evenly spaced.
        tokens_per_minute: Most tokens a minute, > 0, prompt and answer; a call is admitted by an
            estimate, and what it really took is settled with those after it.

    Raises:
        SettingsError: A limit is out of range.
    """

    calls_at_once: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None:
                check_positive(name, value)

    def stricter(self, other: "RateLimits") -> "RateLimits":
        """Return the lower of both limits, one by one."""
        mine, others = asdict(self), asdict(other)
        both = {name: [one for one in (mine[name], others[name]) if one] for name in mine}
        return RateLimits(**{name: min(limits) for name, limits in both.items() if limits})


class RateLimiter:
    """Lets calls of one model pass as its limits allow, in the order they came.

    Calls start evenly, at 99 % of the limit, so that no minute holds more than it allows even if
    some reach the server sooner than others. Limits may be made stricter while calls wait.
    """

    def __init__(self, limits: RateLimits) -> None:
        self.limits = limits
        self._queue, self._changed = asyncio.Lock(), asyncio.Event()
        self._in_flight = 0
        self._next_request = self._next_token = 0.0
        self._tokens_per_character = _TOKENS_PER_CHARACTER
        self._answer_tokens = _ANSWER_TOKENS

    @asynccontextmanager
    async def slot(self, n_tokens: float, tab: Tab) -> AsyncIterator[None]:
        """Wait for the slot of a call that takes about *n_tokens*, or raise `BudgetError`."""
        try:
            async with asyncio.timeout(tab.meter.seconds_left), self._queue:
                await self._wait(tab)
                tab.start()
                limits = self.limits
                if limits.requests_per_minute:
                    spacing = _spacing(limits.requests_per_minute)
                    self._next_request = _start_of_slot(self._next_request) + spacing
                if limits.tokens_per_minute:
                    spacing = n_tokens * _spacing(limits.tokens_per_minute)
                    self._next_token = _start_of_slot(self._next_token) + spacing
                self._in_flight += 1
        except TimeoutError:
            tab.meter.check(after=_LATENESS)  # says so: the time is up
            raise
        try:
            yield
        finally:
            self._in_flight -= 1
            self._changed.set()

    def estimate_tokens(self, n_characters: int) -> float:
        """Return how many tokens a call with a prompt of this length will take."""
        return n_characters * self._tokens_per_character + self._answer_tokens

    def settle(self, n_characters: int, n_estimated: float, n_in: int, n_out: int) -> None:
        """Charge the tokens by which a call missed its estimate, and learn from it."""
        if self.limits.tokens_per_minute and n_in + n_out:
            missed = n_in + n_out - n_estimated
            self._next_token += missed * _spacing(self.limits.tokens_per_minute)
            measured = n_in / max(n_characters, 1)
            self._tokens_per_character += _WEIGHT_OF_NEWEST * (
                measured - self._tokens_per_character
            )
            self._answer_tokens += _WEIGHT_OF_NEWEST * (n_out - self._answer_tokens)
            self._changed.set()

    async def _wait(self, tab: Tab) -> None:
        """Wait until a call may start: by the clock, or while too many are in flight."""
        while True:
            seconds: float | None = None
            most = self.limits.calls_at_once
            if not most or self._in_flight < most:
                now = asyncio.get_running_loop().time()
                seconds = max(self._next_request, self._next_token) - now
                if seconds <= 0:
                    return
                tab.meter.check(after=seconds)
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._changed.wait()


_limiters: dict[tuple[int, str], RateLimiter] = {}


def shared_limiter(identity: str, limits: RateLimits) -> RateLimiter:
    """Return the one limiter of a model; of several limits asked for, the strictest hold."""
    key = os.getpid(), identity
    limiter = _limiters.get(key) or _limiters.setdefault(key, RateLimiter(limits))
    if limiter.limits is not limits:
        limiter.limits = limiter.limits.stricter(limits)
    return limiter


def _start_of_slot(reserved: float) -> float:
    """Return the time a slot counts from: as reserved, or now if that is long past."""
    now = asyncio.get_running_loop().time()
    return reserved if now - reserved <= _LATENESS else now


def _spacing(per_minute: float) -> float:
    return _SECONDS / per_minute / _SHARE_USED
