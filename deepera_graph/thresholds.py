"""Where the line between kept and dropped is drawn: a number, or a rule that looks at the scores.

A rule is a frozen dataclass with `cut`. Score rules can only be stricter than their `floor`, so a
question without evidence still keeps nothing.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Protocol, get_args, runtime_checkable

from deepera_graph.curve import Curve
from deepera_graph.errors import SettingsError
from deepera_graph.schema import IntentKind

UNREACHABLE = math.nextafter(1.0, 2.0)  # the first number above every score
_log = logging.getLogger(__name__)


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
    """Cut at the widest gap between neighbouring scores and 0, never under *floor* in [0, 1]."""

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
        given: object = self.values
        if not isinstance(given, Mapping):
            raise SettingsError(f"values must map kinds of questions, got {given!r:.80}")
        kinds = get_args(IntentKind)
        for name, value in self.values.items():
            if name not in kinds:
                raise SettingsError(f"no kind of question is {name!r}; they are {', '.join(kinds)}")
            check_share(f"values[{name!r}]", value)

    def cut(self, scores: Sequence[float], intent: IntentKind) -> float:
        """Return the threshold of this kind of question."""
        return self.values.get(intent, self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """Keep what is evidence with at least this *probability*, in [0, 1], as a *curve* has it.

    *curve* may be given as `Curve.to_dict` writes it. If no score is that probable, nothing is
    kept: the cut is then `UNREACHABLE`, just above 1.
    """

    kind: ClassVar[str] = "calibrated"
    curve: Curve
    probability: float = 0.8

    def __post_init__(self) -> None:
        check_share("probability", self.probability)
        given: object = self.curve
        if isinstance(given, Mapping):
            object.__setattr__(self, "curve", Curve.from_dict(given))
        elif not isinstance(given, Curve):
            raise SettingsError(f"curve must be a Curve, got {given!r:.80}")

    def cut(self, scores: Sequence[float], intent: IntentKind) -> float:
        """Return the lowest score with that probability; it is the same for every question."""
        lowest = self.curve.lowest_score(self.probability)
        return UNREACHABLE if lowest is None else lowest


Threshold = float | Quantile | Gap | PerIntent | Calibrated
_RULES: dict[str, type[Quantile | Gap | PerIntent | Calibrated]] = {
    rule.kind: rule for rule in (Quantile, Gap, PerIntent, Calibrated)
}


def cut(threshold: Threshold, scores: Sequence[float], intent: IntentKind) -> float:
    """Return the lowest score kept, in [0, 1]."""
    if isinstance(threshold, ThresholdRule):
        return threshold.cut(scores, intent)
    return float(threshold)


def calibration_differences(threshold: Threshold, name: str, about: Mapping[str, Any]) -> list[str]:
    """Say how a backend differs from the one a `Calibrated` threshold was fitted for, and warn.

    The warning goes to this module's logger, in one line.

    Args:
        threshold: Any; only a `Calibrated` one can differ.
        name: Of the backend.
        about: Of the backend.
    """
    if not isinstance(threshold, Calibrated):
        return []
    found = threshold.curve.differences(name, about)
    if found:
        _log.warning(
            "calibrated for another judge, so the threshold may be off: %s; fit the curve again",
            "; ".join(found),
        )
    return found


def threshold_to_plain(threshold: Threshold) -> float | dict[str, Any]:
    """Return a number, or the rule as ``{"kind": ..., **options}``."""
    if isinstance(threshold, int | float):
        return float(threshold)
    if isinstance(threshold, Calibrated):
        curve = threshold.curve.to_dict()
        return {"kind": threshold.kind, "probability": threshold.probability, "curve": curve}
    return {"kind": threshold.kind, **asdict(threshold)}


def threshold_from_plain(value: object) -> Threshold:
    """Read what `threshold_to_plain` wrote.

    Raises:
        SettingsError: *value* is neither a number nor a known rule.
    """
    if isinstance(value, Mapping):
        options = dict(value)
        kind = options.pop("kind", None)
        if not isinstance(kind, str) or kind not in _RULES:
            raise SettingsError(f"threshold kind must be one of {sorted(_RULES)}, got {kind!r}")
        try:
            return _RULES[kind](**options)
        except TypeError as error:
            raise SettingsError(f"threshold of kind {kind!r}: {error}") from error
    if isinstance(value, Quantile | Gap | PerIntent | Calibrated):
        return value
    check_share("threshold", value)
    return float(value)  # type: ignore[arg-type]  # checked to be a number just above
