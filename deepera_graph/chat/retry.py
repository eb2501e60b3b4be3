"""How long to wait for a server: what is tried again, when, and how often."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from deepera_graph.budget import Tab
from deepera_graph.errors import BudgetError, CallError, SettingsError
from deepera_graph.usage import Usage

_MOST_REFUSED = 8
_SECONDS_CLOSED = 5.0
_REFUSALS = frozenset({401, 403, 404})


class Door:
    """Closes after eight refusals in a row (401, 403, 404) by a server that never answered.

    While it is closed, calls fail at once with the refusal, unsent; every 5 seconds some are sent
    again, as a key may be activated late. One answer opens it for good: what a server refuses
    after that concerns one passage.

    Args:
        clock: Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._n_refused, self._closed_until = 0, 0.0
        self._answered = False

    def check(self) -> None:
        """Let a call pass.

        Raises:
            CallError: The door is closed; the message is the server's.
        """
        if self._clock() < self._closed_until:
            raise CallError(self._message, status=self._status, unusable=True)

    def answered(self) -> None:
        """Note that a call was answered, well or badly."""
        self._answered = True

    def failed(self, error: CallError) -> None:
        """Note that a call failed."""
        if error.status not in _REFUSALS or self._answered:
            self._n_refused = 0
            return
        self._n_refused += 1
        if self._n_refused >= _MOST_REFUSED:
            self._closed_until = self._clock() + _SECONDS_CLOSED
            self._message, self._status = str(error), error.status


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model.

    Attributes:
        text: What it said: its text, or the arguments of its tool call.
        usage: What it cost, failed attempts before it included.
        refusal: Why it refused; empty if it did not.
        cut_off: Whether it ended at the limit of its tokens.
    """

    text: str
    usage: Usage
    refusal: str = ""
    cut_off: bool = False

    def costing(self, more: Usage) -> "Reply":
        """Return the same reply with *more* usage."""
        return replace(self, usage=self.usage + more)


_RETRIED = frozenset({408, 409, 425, 429})
_NEVER = frozenset({501, 505})
_ATTEMPTS_TO_CONNECT = 2  # nobody listens: that seldom passes in seconds
_FEWEST_TIMES = 20
_SHARE = 0.95

Send = Callable[[], Coroutine[Any, Any, Reply]]
Turn = Callable[[], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Bounds on waiting for one answer; all times in seconds.

    Attributes:
        attempts: Most calls for one reply, >= 1, hedges not counted. An answer takes two replies at
            most, in each way of asking that is tried because the server may not know another.
        timeout: Longest one call may take, > 0; waiting for a turn is no part of it.
        first_wait: Wait before the second attempt; doubled for every further one, and cut by up
            to half at random, so that many callers do not come back at once.
        longest_wait: Longest single wait; a server that asks for more by ``Retry-After`` is not
            waited for, one that asks for less is waited for that long and a `first_wait` more.
        total_wait: Most waiting between the attempts in all.
        hedge: Whether to send a second copy of a call that takes longer than 95 % of its
            siblings, as soon as limits and budget let it; the first answer counts, the other call
            is cancelled, both are charged.

    Raises:
        SettingsError: A bound is out of range.
    """

    attempts: int = 4
    timeout: float = 60.0
    first_wait: float = 0.5
    longest_wait: float = 20.0
    total_wait: float = 60.0
    hedge: bool = False

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise SettingsError(f"attempts must be >= 1, got {self.attempts!r}")
        if self.timeout <= 0:
            raise SettingsError(f"timeout must be > 0 seconds, got {self.timeout!r}")
        for name in ("first_wait", "longest_wait", "total_wait"):
            if getattr(self, name) < 0:
                raise SettingsError(f"{name} must be >= 0 seconds, got {getattr(self, name)!r}")


def is_worth_retrying(error: CallError) -> bool:
    """Tell a passing failure (transport, 408, 409, 425, 429, 5xx) from a lasting one."""
    if error.status is None:
        return error.transport
    return error.status in _RETRIED or (error.status >= 500 and error.status not in _NEVER)


class Patient:
    """Sends calls of one model within the bounds of a `Patience`; lives in one event loop."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._times: deque[float] = deque(maxlen=200)
        self._random = random.Random(0)

    async def send(self, call: Send, turn: Turn, tab: Tab) -> Reply:
        """Return the first answer; what failed on the way is in its usage.

        Args:
            call: Sends once, and charges the tab.
            turn: Waits until a call may start.
            tab: Says whether there is time left to wait.

        Raises:
            CallError: The last failure, with the usage of all attempts.
            BudgetError: The budget does not allow another attempt.
        """
        failed, waited, problem = Usage(), 0.0, ""
        for attempt in range(1, self._patience.attempts + 1):
            try:
                async with turn():
                    return (await self._hedged(call, turn)).costing(failed)
            except CallError as error:
                failed += error.usage
                wait = self._wait(error, attempt)
                if wait is None or waited + wait > self._patience.total_wait:
                    error.usage = failed
                    raise
                problem = str(error)
                waited += wait
            except BudgetError as error:
                raise _stopped(error, problem, failed) from error
            try:
                tab.check(after=wait)
            except BudgetError as error:
                raise _stopped(error, problem, failed) from error
            await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _wait(self, error: CallError, attempt: int) -> float | None:
        """Return the seconds to wait before another attempt, None if there is to be none."""
        most = self._patience.attempts
        if error.unusable:
            most = min(most, _ATTEMPTS_TO_CONNECT)
        if attempt >= most or not is_worth_retrying(error):
            return None
        asked = error.retry_after or 0.0
        if asked > self._patience.longest_wait:
            return None
        wait = self._patience.first_wait * 2.0 ** (attempt - 1) * self._random.uniform(0.5, 1)
        return min(asked + wait, self._patience.longest_wait)

    async def _hedged(self, call: Send, turn: Turn) -> Reply:
        """Call, and call again when this takes longer than its siblings took."""
        if not self._patience.hedge or len(self._times) < _FEWEST_TIMES:
            return await self._timed(call)
        slow = sorted(self._times)[int(_SHARE * len(self._times))]
        first = asyncio.create_task(self._timed(call))
        try:
            done, _ = await asyncio.wait({first}, timeout=slow)
            return first.result() if done else await self._raced(first, call, turn)
        finally:
            await _ended(first)

    async def _raced(self, first: "asyncio.Task[Reply]", call: Send, turn: Turn) -> Reply:
        """Send a copy when it may start; return the first answer of both."""
        sent = asyncio.Event()

        async def send_copy() -> Reply:
            async with turn():
                sent.set()
                return await self._timed(call)

        copy = asyncio.create_task(send_copy())
        try:
            await _until_answered(first, copy, sent)
        finally:
            await _ended(copy)
            await _ended(first)
        return _winner(first, copy, n_sent=1 + sent.is_set())

    async def _timed(self, call: Send) -> Reply:
        started = asyncio.get_running_loop().time()
        reply = await call()
        self._times.append(asyncio.get_running_loop().time() - started)
        return reply


def _stopped(error: BudgetError, problem: str, failed: Usage) -> BudgetError:
    """Say what the budget put an end to: a call before it starts, or its repetition."""
    return BudgetError(f"{error}, after {problem}" if problem else str(error), usage=failed)


async def _until_answered(
    first: "asyncio.Task[Reply]", copy: "asyncio.Task[Reply]", sent: asyncio.Event
) -> None:
    """Wait for an answer; or for both to fail, or the first before its copy was sent."""
    going = {first, copy}
    while going and not _answers(first, copy) and not (first.done() and not sent.is_set()):
        _, going = await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED)


def _winner(first: "asyncio.Task[Reply]", copy: "asyncio.Task[Reply]", *, n_sent: int) -> Reply:
    """Return the answer, charged with all that was sent beside it; raise if there is none."""
    errors = [task.exception() for task in (first, copy) if task.done() and not task.cancelled()]
    failed = sum((one.usage for one in errors if isinstance(one, CallError)), Usage())
    answers = _answers(first, copy)
    if not answers:
        error = first.exception()
        assert isinstance(error, CallError)
        error.usage = failed
        raise error
    n_left = n_sent - 1 - failed.failed_calls
    return answers[0].costing(failed + Usage(hedged_calls=n_left))


def _answers(*tasks: "asyncio.Task[Reply]") -> list[Reply]:
    return [
        task.result()
        for task in tasks
        if task.done() and not task.cancelled() and task.exception() is None
    ]


async def _ended(task: "asyncio.Task[Reply]") -> None:
    """Cancel what is no longer needed, and wait until it has been charged."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # looked at, or the loop would complain
