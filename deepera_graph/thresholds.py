"""Where the line between kept and dropped is drawn: a number, or a rule that looks at the scores.

A rule is a frozen dataclass with `cut`. Score rules can only be stricter than their `floor`, so a
question without evidence still keeps nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from deepera_graph.errors import SettingsError
from deepera_graph.schema import IntentKind


@runtime_checkable
class ThresholdRule(Protocol):
    """A rule that gives the lowest score kept, in [0, 1], for one question."""

    def cut(self, scores: Sequence[float], intent: IntentKind) -> float:
        """Return the lowest score kept.

        Args:
            scores: Scores of the judged passages in any order, each in [0, 1]; may be empty.
            intent: What kind of question it is.
        """
        ...


def check_share(name: str, value: object) -> None:
    """Raise `SettingsError` unless *value* is a number in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise SettingsError(f"{name} must be in [0, 1], got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """Keep the best *share* of the passages, but nothing under *floor*; both in [0, 1]."""

    kind: ClassVar[str] = "quantile"
    share: float = 0.1
    floor: float = 0.5

    def __post_init__(self) -> None:
        check_share("share", self.share)
        check_share("floor", self.floor)

    def cut(self, scores: Sequence[float], intent: IntentKind) -> float:
        """Return the score of the last passage inside the share (one at least), or the floor."""
        if not scores:
            return self.floor
        n_inside = max(1, round(self.share * len(scores)))
        return max(self.floor, sorted(scores, reverse=True)[n_inside - 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Cut at the widest gap between neighbouring scores, but never under *floor*, in [0, 1]."""

    kind: ClassVar[str] = "gap"
    floor: float = 0.5

    def __post_init__(self) -> None:
        check_share("floor", self.floor)

    def cut(self, scores: Sequence[float], intent: IntentKind) -> float:
        """Return the score just above the widest gap, at least the floor."""
        ordered = sorted(scores, reverse=True)
        above = [score for score in ordered if score >= self.floor]
        if not above:
            return self.floor
        below = [*ordered[1 : len(above)], max([0.0, *ordered[len(above) :]])]
        gaps = [high - low for high, low in zip(above, below, strict=True)]
        return above[gaps.index(max(gaps))]


@dataclass(frozen=True, slots=True, kw_only=True)
class PerIntent:
    """One threshold for each kind of question, *default* for the kinds not named; all in [0, 1]."""

    kind: ClassVar[str] = "per_intent"
    values: Mapping[IntentKind, float] = field(default_factory=dict)
    default: float = 0.8

    def __post_init__(self) -> None:
        check_share("default", self.default)
        for name, value in self.values.items():
            check_share(f"values[{name!r}]", value)

    def cut(self, scores: Sequence[float], intent: IntentKind) -> float:
        """Return the threshold of this kind of question."""
        return self.values.get(intent, self.default)


Threshold = float | Quantile | Gap | PerIntent
_RULES: dict[str, type[Quantile | Gap | PerIntent]] = {
    rule.kind: rule for rule in (Quantile, Gap, PerIntent)
}


def cut(threshold: Threshold, scores: Sequence[float], intent: IntentKind) -> float:
    """Return the lowest score kept, in [0, 1]."""
    if isinstance(threshold, ThresholdRule):
        return threshold.cut(scores, intent)
    return float(threshold)


def threshold_to_plain(threshold: Threshold) -> float | dict[str, Any]:
    """Return a number, or the rule as ``{"kind": ..., **options}``."""
    if isinstance(threshold, int | float):
        return float(threshold)
    return {"kind": threshold.kind, **asdict(threshold)}


def threshold_from_plain(value: object) -> Threshold:
    """Read what `threshold_to_plain` wrote.

    Raises:
        SettingsError: *value* is neither a number nor a known rule.
    """
    if isinstance(value, Mapping):
        options = dict(value)
        kind = options.pop("kind", None)
        if kind not in _RULES:
            raise SettingsError(f"threshold kind must be one of {sorted(_RULES)}, got {kind!r}")
        return _RULES[kind](**options)
    if isinstance(value, Quantile | Gap | PerIntent):
        return value
    check_share("threshold", value)
    return float(value)  # type: ignore[arg-type]  # checked to be a number just above
