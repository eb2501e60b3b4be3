"""Limits that hold for a model, whoever asks it: all rerankers, threads and loops together.

All model calls of a process run in one event loop (`deepera_graph.chat.io_loop`), so plain
numbers and one line of waiting calls a model are enough.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from deepera_graph.budget import Tab
from deepera_graph.errors import SettingsError

NumberT = TypeVar("NumberT", int, float)
_SECONDS = 60.0
_SHARE_USED = 0.99  # what is sent evenly does not arrive evenly
_LATENESS = 0.25  # seconds: a slot that was missed by less is made up for
_TOKENS_PER_CHARACTER = 0.25
_ANSWER_TOKENS = 100.0
_NEWS = 0.2  # weight of the newest call in the estimate of the next


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
    """Lets calls of one model pass as its limits allow, in the order they came.

    Calls start evenly, at 99 % of the limit, so that no minute holds more than it allows even if
    some reach the server sooner than others. Limits may be made stricter while calls wait.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._line, self._news = asyncio.Lock(), asyncio.Event()
        self._in_flight = 0
        self._next_request = self._next_token = 0.0
        self._tokens_per_character = _TOKENS_PER_CHARACTER
        self._answer_tokens = _ANSWER_TOKENS

    @asynccontextmanager
    async def turn(self, n_tokens: float, tab: Tab) -> AsyncIterator[None]:
        """Wait for a turn of a call that takes about *n_tokens*.

        Raises:
            BudgetError: The budget is spent, or will be before it is this call's turn.
        """
        try:
            async with asyncio.timeout(tab.seconds_left), self._line:
                await self._wait(tab)
                tab.start()
                self._book(n_tokens)
                self._in_flight += 1
        except TimeoutError:
            tab.check(after=_LATENESS)  # says so: the time is up
            raise
        try:
            yield
        finally:
            self._in_flight -= 1
            self._news.set()

    def guess(self, n_characters: int) -> float:
        """Return how many tokens a call with a prompt of this length will take."""
        return n_characters * self._tokens_per_character + self._answer_tokens

    def settle(self, n_characters: int, n_guessed: float, n_in: int, n_out: int) -> None:
        """Charge the tokens by which a call missed its estimate, and learn from it."""
        if self.limits.tokens_per_minute and n_in + n_out:
            missed = n_in + n_out - n_guessed
            self._next_token += missed * _spacing(self.limits.tokens_per_minute)
            measured = n_in / max(n_characters, 1)
            self._tokens_per_character += _NEWS * (measured - self._tokens_per_character)
            self._answer_tokens += _NEWS * (n_out - self._answer_tokens)
            self._news.set()

    async def _wait(self, tab: Tab) -> None:
        while (seconds := self._closed_for()) > 0:
            if seconds < float("inf"):
                tab.check(after=seconds)
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds if seconds < float("inf") else None):
                    await self._news.wait()

    def _closed_for(self) -> float:
        """Return the seconds until a call may start; infinite while too many are in flight."""
        if self.limits.calls_at_once and self._in_flight >= self.limits.calls_at_once:
            return float("inf")
        return max(self._next_request, self._next_token) - asyncio.get_running_loop().time()

    def _book(self, n_tokens: float) -> None:
        if self.limits.requests_per_minute:
            spacing = _spacing(self.limits.requests_per_minute)
            self._next_request = _slot(self._next_request) + spacing
        if self.limits.tokens_per_minute:
            spacing = _spacing(self.limits.tokens_per_minute)
            self._next_token = _slot(self._next_token) + n_tokens * spacing


_paces: dict[tuple[int, str], Pace] = {}


def pace_of(identity: str, limits: Limits) -> Pace:
    """Return the one pace of a model; of several limits asked for, the strictest hold."""
    key = os.getpid(), identity
    if key not in _paces:
        _paces[key] = Pace(limits)
    pace = _paces[key]
    if pace.limits is not limits:
        pace.limits = pace.limits.stricter(limits)
    return pace


def _slot(booked: float) -> float:
    """Return the time a slot counts from: as booked, or now if that is long past."""
    now = asyncio.get_running_loop().time()
    return booked if now - booked <= _LATENESS else now


def _spacing(per_minute: float) -> float:
    return _SECONDS / per_minute / _SHARE_USED


def _lower(one: NumberT | None, other: NumberT | None) -> NumberT | None:
    return min((value for value in (one, other) if value is not None), default=None)
