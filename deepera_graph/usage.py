"""What the calls of a role cost."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from typing_extensions import TypedDict

CHARS_PER_TOKEN = 4  # about what English costs


class UsageRecord(TypedDict):
    """The plain form of `Usage`, as it travels in the graph's state."""

    calls: int
    input_tokens: int
    output_tokens: int
    reasked_calls: int
    failed_calls: int
    cached_calls: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Model calls and their tokens.

    The first three columns are what the judgements took: equal judgements have equal numbers, be
    they fresh or from the cache, with or without a hiccup on the way.

    Attributes:
        calls: Calls whose replies were read, usable or not, >= 0. The local backend makes none.
        input_tokens: Prompt tokens of these calls as the server counts them, >= 0; where it does
            not, a token is taken for `CHARS_PER_TOKEN` characters.
        output_tokens: Completion tokens of these calls, counted in the same way, >= 0.
        reasked_calls: Those of `calls` that asked again because a reply was unusable.
        failed_calls: Calls beside `calls` that brought no reply: refused, timed out, cut off.
        cached_calls: Those of `calls` that were not sent, as the cache had the answer.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reasked_calls: int = 0
    failed_calls: int = 0
    cached_calls: int = 0

    @property
    def sent_calls(self) -> int:
        """Calls that really went out."""
        return self.calls - self.cached_calls + self.failed_calls

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*[getattr(self, name) + getattr(other, name) for name in _COLUMNS])

    def beyond(self, other: "Usage") -> "Usage":
        """Return what is left without *other*, no column below 0."""
        return Usage(*[max(0, getattr(self, name) - getattr(other, name)) for name in _COLUMNS])

    def record(self) -> UsageRecord:
        """Return the plain form."""
        return {
            "calls": self.calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "reasked_calls": self.reasked_calls,
            "failed_calls": self.failed_calls,
            "cached_calls": self.cached_calls,
        }

    @classmethod
    def of(cls, record: UsageRecord) -> Self:
        """Read the plain form; a column that is missing is 0."""
        plain: Mapping[str, Any] = record
        return cls(*[plain.get(name, 0) for name in _COLUMNS])


_COLUMNS = tuple(one.name for one in fields(Usage))


class HasUsage:
    """What says by step what it cost, and so what it cost together."""

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def usage(self) -> Mapping[str, Usage]:
            """Calls and tokens by step."""

    @property
    def total_usage(self) -> Usage:
        """Calls and tokens of all steps."""
        return sum(self.usage.values(), Usage())


def merge_usage(
    old: dict[str, UsageRecord] | None, new: dict[str, UsageRecord] | None
) -> dict[str, UsageRecord]:
    """Add two counts per stage; None as *new* starts again from nothing."""
    if new is None:
        return {}
    merged = dict(old or {})
    for stage, record in new.items():
        before = merged.get(stage)
        merged[stage] = _added(before, record) if before else record
    return merged


def _added(one: Mapping[str, Any], other: Mapping[str, Any]) -> Any:
    return {name: one.get(name, 0) + other.get(name, 0) for name in _COLUMNS}
