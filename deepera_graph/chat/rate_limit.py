"""Rate limits that hold for a model, whoever asks it: all rerankers, threads and loops together.

All model calls of a process run in one event loop (`deepera_graph.chat.io_loop`), so plain numbers
and one queue of waiting calls a model are enough.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass

from deepera_graph.budget import Tab
from deepera_graph.errors import SettingsError

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
            if value is not None and not value > 0:
                raise SettingsError(f"{name} must be > 0, got {value!r}")

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
            async with asyncio.timeout(tab.seconds_left), self._queue:
                await self._wait(tab)
                tab.start()
                self._reserve(n_tokens)
                self._in_flight += 1
        except TimeoutError:
            tab.check(after=_LATENESS)  # says so: the time is up
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
        while (seconds := self._seconds_to_wait()) > 0:
            if seconds < float("inf"):
                tab.check(after=seconds)
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds if seconds < float("inf") else None):
                    await self._changed.wait()

    def _seconds_to_wait(self) -> float:
        """Return the seconds until a call may start; infinite while too many are in flight."""
        if self.limits.calls_at_once and self._in_flight >= self.limits.calls_at_once:
            return float("inf")
        return max(self._next_request, self._next_token) - asyncio.get_running_loop().time()

    def _reserve(self, n_tokens: float) -> None:
        if self.limits.requests_per_minute:
            spacing = _spacing(self.limits.requests_per_minute)
            self._next_request = _start_of_slot(self._next_request) + spacing
        if self.limits.tokens_per_minute:
            spacing = _spacing(self.limits.tokens_per_minute)
            self._next_token = _start_of_slot(self._next_token) + n_tokens * spacing


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
