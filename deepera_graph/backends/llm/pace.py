"""Limits that hold for a model, whoever asks it: all rerankers, threads and loops together.

All model calls of a process run in one event loop (`deepera_graph.backends.llm.io_loop`), so plain
numbers and one semaphore a model are enough.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from deepera_graph.errors import SettingsError

NumberT = TypeVar("NumberT", int, float)
_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
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
        for name in ("calls_at_once", "requests_per_minute", "tokens_per_minute"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise SettingsError(f"{name} must be > 0, got {value!r}")

    def stricter(self, other: "Limits") -> "Limits":
        """Return the lower of both limits, one by one."""
        return Limits(
            calls_at_once=_lower(self.calls_at_once, other.calls_at_once),
            requests_per_minute=_lower(self.requests_per_minute, other.requests_per_minute),
            tokens_per_minute=_lower(self.tokens_per_minute, other.tokens_per_minute),
        )


class Pace:
    """Lets calls of one model pass as its limits allow, in the order they came."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._turns = asyncio.Semaphore(limits.calls_at_once) if limits.calls_at_once else None
        self._next_request = 0.0
        self._next_token = 0.0

    @asynccontextmanager
    async def turn(self, n_tokens: int) -> AsyncIterator[None]:
        """Wait for a turn of a call that takes about *n_tokens*."""
        if self._turns is None:
            await self._wait(n_tokens)
            yield
            return
        async with self._turns:
            await self._wait(n_tokens)
            yield

    def settle(self, n_tokens: int) -> None:
        """Charge the tokens by which a call missed its estimate, >= 0 or less."""
        if self.limits.tokens_per_minute:
            self._next_token += n_tokens * _SECONDS / self.limits.tokens_per_minute

    async def _wait(self, n_tokens: int) -> None:
        now = asyncio.get_running_loop().time()
        start = max(now, self._next_request, self._next_token)
        if self.limits.requests_per_minute:
            self._next_request = start + _SECONDS / self.limits.requests_per_minute
        if self.limits.tokens_per_minute:
            self._next_token = start + n_tokens * _SECONDS / self.limits.tokens_per_minute
        if start > now:
            await asyncio.sleep(start - now)


_paces: dict[str, Pace] = {}


def pace_of(identity: str, limits: Limits) -> Pace:
    """Return the one pace of a model; of several limits asked for, the strictest hold."""
    known = _paces.get(identity)
    if known is None or known.limits.stricter(limits) != known.limits:
        strictest = limits if known is None else known.limits.stricter(limits)
        _paces[identity] = Pace(strictest)
    return _paces[identity]


def _lower(one: NumberT | None, other: NumberT | None) -> NumberT | None:
    return min((value for value in (one, other) if value is not None), default=None)
