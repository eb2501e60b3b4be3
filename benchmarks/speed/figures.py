"""What the server's log and the clock say about each question."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import median
from typing import Any, Self

from latency import makespan

Json = Mapping[str, Any]
_COUNTED = (200, 499)  # answered, or left while it was being answered


@dataclass(frozen=True, slots=True)
class Figures:
    """One question, or the medians of several.

    Attributes:
        wall: Seconds from the question to the ranking.
        own: Seconds that its round trips take by themselves: see `own_seconds`.
        calls: Calls to the model.
        refused: Requests refused because of the rate limit.
        prompt: Prompt tokens.
        uncached: Those of them that were in no cache.
        output: Tokens written.
        late: Seconds by which the server was latest with an answer.
    """

    wall: float
    own: float
    calls: float
    refused: float
    prompt: float
    uncached: float
    output: float
    late: float

    @classmethod
    def of(cls, asked: Json, log: Iterable[Json], at_once: int, *, in_turn: bool) -> Self:
        """Read one question's lines of the log: those that arrived while it was asked."""
        lines = [line for line in log if asked["start"] <= line["arrived"] <= asked["end"]]
        calls = [line for line in lines if line["status"] in _COUNTED]
        return cls(
            wall=asked["end"] - asked["start"],
            own=own_seconds(calls, at_once, in_turn=in_turn),
            calls=len(calls),
            refused=sum(line["status"] == 429 for line in lines),
            prompt=sum(call["prompt"] for call in calls),
            uncached=sum(call["prompt"] - call["cached"] for call in calls),
            output=sum(call["output"] for call in calls),
            late=max((call["late"] for call in calls), default=0.0),
        )

    @classmethod
    def medians(cls, several: Sequence[Self]) -> Self:
        """Return the median of each figure."""
        return cls(
            **{
                field.name: median(getattr(one, field.name) for one in several)
                for field in fields(cls)
            }
        )


def own_seconds(calls: Sequence[Json], at_once: int, *, in_turn: bool) -> float:
    """Return the critical path: how long the calls take if nothing but the server costs time.

    Calls of one kind do not need each other and start as soon as the server has a place; calls of
    another kind wait for all of them. *in_turn* is for rankers whose every call waits for the one
    before.
    """
    if in_turn:
        return sum(call["service"] for call in calls)
    kinds = dict.fromkeys(call["kind"] for call in sorted(calls, key=lambda one: one["arrived"]))
    return sum(
        makespan([call["service"] for call in calls if call["kind"] == kind], at_once)
        for kind in kinds
    )
