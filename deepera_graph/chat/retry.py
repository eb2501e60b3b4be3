"""Retries of a call to a model server: the policy, who follows it, and a circuit breaker."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import InitVar, dataclass, replace
from time import monotonic
from typing import Any

from deepera_graph.budget import Tab
from deepera_graph.errors import BudgetError, CallError, SettingsError
from deepera_graph.usage import Usage

_RETRIED = frozenset({408, 409, 425, 429})
_NEVER_RETRIED = frozenset({501, 505})
_ATTEMPTS_TO_CONNECT = 2  # nobody listens: that seldom passes in seconds
_REFUSALS = frozenset({401, 403, 404})
_MOST_REFUSED = 8
_SECONDS_OPEN = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Bounds on waiting for one reply; all times in seconds.

    Attributes:
        attempts: Most calls for one reply, >= 1. An answer takes two replies at most, in each
            output mode that is tried because the server may not know another.
        timeout: Longest one call may take, > 0; waiting for the rate limits is no part of it.
        first_wait: Wait before the second attempt; doubled for every further one, and cut by up
            to half at random, so that many callers do not come back at once.
        longest_wait: Longest single wait; a server that asks for more by ``Retry-After`` is not
            waited for, one that asks for less is waited for that long and a `first_wait` more.
        total_wait: Most waiting between the attempts in all.
        hedge: No longer there since 0.6; False is ignored.

    Raises:
        SettingsError: A bound is out of range, or hedging is asked for.
    """

    attempts: int = 4
    timeout: float = 60.0
    first_wait: float = 0.5
    longest_wait: float = 20.0
    total_wait: float = 60.0
    hedge: InitVar[bool] = False

    def __post_init__(self, hedge: bool) -> None:
        if hedge:
            raise SettingsError("hedge was removed in version 0.6: slow calls get no second copy")
        if self.attempts < 1:
            raise SettingsError(f"attempts must be >= 1, got {self.attempts!r}")
        if self.timeout <= 0:
            raise SettingsError(f"timeout must be > 0 seconds, got {self.timeout!r}")
        for name in ("first_wait", "longest_wait", "total_wait"):
            if getattr(self, name) < 0:
                raise SettingsError(f"{name} must be >= 0 seconds, got {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True)
class RawReply:
    """One reply of a model: its text, what it cost, why it refused, whether it was cut off."""

    text: str
    usage: Usage
    refusal: str = ""
    cut_off: bool = False


class CircuitBreaker:
    """Opens after eight refusals in a row (401, 403, 404) by a server that never answered.

    While it is open, calls fail at once with the refusal, unsent; every 5 seconds some are sent
    again, as a key may be activated late. One answer closes it for good: what a server refuses
    after that concerns one passage. *clock* gives seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._n_refused, self._open_until = 0, 0.0
        self._has_answered = False

    def check(self) -> None:
        """Let a call pass, or raise the server's own refusal."""
        if self._clock() < self._open_until:
            raise CallError(self._message, status=self._status, unusable=True)

    def note_answer(self) -> None:
        """Note that a call was answered, well or badly."""
        self._has_answered = True

    def note_failure(self, error: CallError) -> None:
        """Note that a call failed."""
        if error.status not in _REFUSALS or self._has_answered:
            self._n_refused = 0
            return
        self._n_refused += 1
        if self._n_refused >= _MOST_REFUSED:
            self._open_until = self._clock() + _SECONDS_OPEN
            self._message, self._status = str(error), error.status


Send = Callable[[], Coroutine[Any, Any, RawReply]]
Slot = Callable[[], AbstractAsyncContextManager[None]]


class Retrier:
    """Sends the calls of one model within a `RetryPolicy`; lives in one event loop."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._random = random.Random(0)

    async def send(self, call: Send, slot: Slot, tab: Tab) -> RawReply:
        """Return the first reply; what failed on the way is in its usage.

        *call* sends once and charges the *tab*; *slot* waits until a call may start. A `CallError`
        or `BudgetError` carries the usage of all attempts.
        """
        failed, waited, problem = Usage(), 0.0, ""
        wait: float | None = 0.0
        for attempt in range(1, self._policy.attempts + 1):
            try:
                if wait:
                    tab.check(after=wait)
                    await asyncio.sleep(wait)
                async with slot():
                    reply = await call()
                return replace(reply, usage=reply.usage + failed)
            except CallError as error:
                failed += error.usage
                wait = self._seconds_to_wait(error, attempt)
                if wait is None or waited + wait > self._policy.total_wait:
                    error.usage = failed
                    raise
                problem = f", after {error}"
                waited += wait
            except BudgetError as error:
                raise BudgetError(f"{error}{problem}", usage=failed) from error
        raise AssertionError("the last attempt returns or raises")

    def _seconds_to_wait(self, error: CallError, attempt: int) -> float | None:
        """Return the seconds before another attempt, None if there is to be none."""
        most = self._policy.attempts
        if error.unusable:
            most = min(most, _ATTEMPTS_TO_CONNECT)
        if attempt >= most or not is_retryable(error):
            return None
        asked = error.retry_after or 0.0
        if asked > self._policy.longest_wait:
            return None
        wait = self._policy.first_wait * 2.0 ** (attempt - 1) * self._random.uniform(0.5, 1)
        return min(asked + wait, self._policy.longest_wait)


def is_retryable(error: CallError) -> bool:
    """Tell a passing failure (transport, 408, 409, 425, 429, 5xx) from a lasting one."""
    if error.status is None:
        return error.transport
    return error.status in _RETRIED or (error.status >= 500 and error.status not in _NEVER_RETRIED)
