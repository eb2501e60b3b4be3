"""How long to wait for a server: what is tried again, when, and how often."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from deepera_graph.backends.llm.reply import Reply
from deepera_graph.errors import CallError, SettingsError
from deepera_graph.usage import Usage

_RETRIED = frozenset({408, 409, 425, 429})
_NEVER = frozenset({501, 505})
_ATTEMPTS_TO_CONNECT = 2  # nobody listens: that seldom passes in seconds
_FEWEST_TIMES = 20
_SHARE = 0.95

Send = Callable[[], Coroutine[Any, Any, Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Bounds on waiting for one answer; all times in seconds.

    Attributes:
        attempts: Most calls for one answer, >= 1, hedges not counted.
        timeout: Longest one call may take, > 0.
        first_wait: Wait before the second attempt; doubled for every further one, and cut by up
            to half at random, so that many callers do not come back at once.
        longest_wait: Longest single wait; a server that asks for more by ``Retry-After`` is not
            waited for.
        total_wait: Most waiting between the attempts in all.
        hedge: Whether to send a second copy of a call that takes longer than 95 % of its
            siblings; the first answer counts, both are charged.

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

    async def send(self, send: Send) -> Reply:
        """Return the first answer; what failed on the way is in its usage.

        Raises:
            CallError: The last failure, with the usage of all attempts.
        """
        failed, waited = Usage(), 0.0
        for attempt in range(1, self._patience.attempts + 1):
            try:
                reply = await self._once(send)
            except CallError as error:
                failed += error.usage
                wait = self._wait(error, attempt)
                if wait is None or waited + wait > self._patience.total_wait:
                    error.usage = failed
                    raise
                waited += wait
                await asyncio.sleep(wait)
            else:
                return reply.costing(failed)
        raise AssertionError("the last attempt returns or raises")

    def _wait(self, error: CallError, attempt: int) -> float | None:
        """Return the seconds to wait before another attempt, None if there is to be none."""
        most = self._patience.attempts
        if error.unusable:
            most = min(most, _ATTEMPTS_TO_CONNECT)
        if attempt >= most or not is_worth_retrying(error):
            return None
        wait = self._patience.first_wait * 2.0 ** (attempt - 1) * self._random.uniform(0.5, 1)
        if error.retry_after is not None:
            if error.retry_after > self._patience.longest_wait:
                return None
            wait = max(wait, error.retry_after)
        return min(wait, self._patience.longest_wait)

    async def _once(self, send: Send) -> Reply:
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._patience.timeout):
                reply = await self._hedged(send)
        except TimeoutError as error:
            raise CallError(
                f"no answer within {self._patience.timeout:g} s",
                transport=True,
                usage=Usage(failed_calls=1),
            ) from error
        self._times.append(asyncio.get_running_loop().time() - started)
        return reply

    async def _hedged(self, send: Send) -> Reply:
        """Send, and send a copy when this takes longer than its siblings took."""
        if not self._patience.hedge or len(self._times) < _FEWEST_TIMES:
            return await send()
        slow = sorted(self._times)[int(_SHARE * len(self._times))]
        first = asyncio.create_task(send())
        going = {first}
        try:
            done, _ = await asyncio.wait(going, timeout=slow)
            if done:
                return first.result()
            going.add(asyncio.create_task(send()))
            return await _first_answer(going)
        finally:
            for task in going:
                task.cancel()


async def _first_answer(going: "set[asyncio.Task[Reply]]") -> Reply:
    """Return the first answer of two calls; raise only if both fail."""
    waiting = set(going)
    while True:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if task.exception() is None:
                return task.result().costing(Usage(hedged_calls=1))
        if not waiting:
            return done.pop().result()
