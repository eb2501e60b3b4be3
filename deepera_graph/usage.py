"""What a model call costs."""

from dataclasses import dataclass
from typing import Self, TypedDict


class UsageRecord(TypedDict):
    """The plain form of `Usage`, as it travels in the graph's state."""

    calls: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Model calls and their tokens; failed calls count.

    Attributes:
        calls: Calls sent to a model, >= 0. The local backend makes none.
        input_tokens: Prompt tokens as the server counts them, >= 0.
        output_tokens: Completion tokens as the server counts them, >= 0.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    def record(self) -> UsageRecord:
        """Return the plain form."""
        return {
            "calls": self.calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
        }

    @classmethod
    def of(cls, record: UsageRecord) -> Self:
        """Read the plain form."""
        return cls(**record)


def merge_usage(
    old: dict[str, UsageRecord] | None, new: dict[str, UsageRecord] | None
) -> dict[str, UsageRecord]:
    """Add two counts per stage; None as *new* starts again from nothing."""
    if new is None:
        return {}
    merged = dict(old or {})
    for stage, record in new.items():
        before = merged.get(stage)
        merged[stage] = (Usage.of(before) + Usage.of(record)).record() if before else record
    return merged
