"""Threshold rules, and the calibration curve of a judge: from its scores to probabilities."""

from __future__ import annotations

import json
import logging
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import ROUND_DOWN, Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from deepera_graph.errors import SettingsError
from deepera_graph.settings.ranges import check_choice, check_share
from deepera_graph.text.jsonl import replacing

if TYPE_CHECKING:
    from deepera_graph.schema import IntentKind

Method = Literal["isotonic", "platt"]
FORMAT = 1
OPERATING_POINT = 0.8  # of a judge that names none (DeepEra, section 3)
_LARGEST_POWER = 700.0  # exp of more than 709 overflows
_NAMES_THE_JUDGE = ("backend", "model", "prompts", "judge", "judge_version", "floor")
_NO_PART_IN_SCORES = ("settings", "versions", "summarizer", "answerer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A non-decreasing map of scores to probabilities, and what it was fitted on.

    Attributes:
        method: ``isotonic``: straight lines between knots; ``platt``: ``1 / (1 + exp(-(a s + b)))``
            of a score s.
        x: Scores of the knots, rising, shape (n_knots,); empty for Platt.
        y: Probabilities of the knots in [0, 1], not falling, shape (n_knots,); empty for Platt.
        a: Slope, >= 0; 0 for isotonic.
        b: Log odds at score 0; 0 for isotonic.
        judge: Who gave the scores, as `judge_identity` names it; empty if nobody said.
        n_questions: Questions it was fitted on, >= 0; 0 if not known.
        n_passages: Passages it was fitted on, >= 0.
        version: Of this package when it was fitted.

    Raises:
        SettingsError: The numbers are not those of such a curve.
    """

    method: Method
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    a: float = 0.0
    b: float = 0.0
    judge: Mapping[str, str] = field(default_factory=dict)
    n_questions: int = 0
    n_passages: int = 0
    version: str = ""

    def __post_init__(self) -> None:
        check_choice("curve method", self.method, get_args(Method))
        object.__setattr__(self, "x", _check_numbers("x", self.x))
        object.__setattr__(self, "y", _check_numbers("y", self.y))
        _check_numbers("a and b", (self.a, self.b))
        if not isinstance(self.judge, Mapping):
            raise SettingsError(f"curve judge must be an object, got {self.judge!r:.80}")
        if self.method == "platt" and self.a < 0:
            raise SettingsError(f"curve slope a must be >= 0, got {self.a!r}")
        if self.method == "isotonic":
            _check_knots(self.x, self.y)

    def probability(self, score: float) -> float:
        """Return the probability, in [0, 1], that a passage with this score is evidence.

        Beyond the outermost knots of an isotonic curve it stays what it is there.
        """
        if self.method == "platt":
            power = -(self.a * score + self.b)
            return 1.0 / (1.0 + math.exp(min(power, _LARGEST_POWER)))
        above = bisect_right(self.x, score)
        if above in (0, len(self.x)):
            return self.y[0 if above == 0 else -1]
        (left, right), (low, high) = self.x[above - 1 : above + 1], self.y[above - 1 : above + 1]
        return min(high, low + (score - left) / (right - left) * (high - low))

    def lowest_score(self, probability: float) -> float | None:
        """Return the lowest score, in [0, 1], with at least this probability; None if none has.

        It is exact: the next lower float has less. Found by bisection, so plateaus, jumps and both
        methods are alike.
        """
        if self.probability(0.0) >= probability:
            return 0.0
        if self.probability(1.0) < probability:
            return None
        low, high = 0.0, 1.0
        while low < (middle := (low + high) / 2) < high:
            if self.probability(middle) >= probability:
                high = middle
            else:
                low = middle
        return high

    def differences(self, name: str, about: Mapping[str, Any]) -> list[str]:
        """Say, one sentence each, how a judge differs from the one the curve was fitted for.

        *name* and *about* are those of its backend. Nothing is said if model, prompts and judge are
        the same; the package version may differ.
        """
        if not self.judge:
            return ["the curve does not say which judge it was fitted for"]
        now = judge_identity(name, about)
        return [
            f"{key} was {self.judge.get(key)!r} when the curve was fitted, now it is "
            f"{now.get(key)!r}"
            for key in sorted({*self.judge, *now})
            if self.judge.get(key) != now.get(key)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values that `from_dict` reads, numbers exactly."""
        numbers: dict[str, Any] = (
            {"a": self.a, "b": self.b}
            if self.method == "platt"
            else {"x": list(self.x), "y": list(self.y)}
        )
        return {
            "format": FORMAT,
            "method": self.method,
            **numbers,
            "judge": dict(self.judge),
            "n_questions": self.n_questions,
            "n_passages": self.n_passages,
            "version": self.version,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            SettingsError: It is of another format, or not a curve.
        """
        fields = dict(plain)
        found = fields.pop("format", None)
        if found != FORMAT:
            raise SettingsError(f"curve format must be {FORMAT}, got {found!r}")
        try:
            return cls(**fields)
        except TypeError as error:
            raise SettingsError(f"not a curve: {error}") from error

    def save(self, path: Path) -> None:
        """Write the curve as JSON; a reader finds the old file or the new one, never half of one.

        Raises:
            SettingsError: The file cannot be written.
        """
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=2) + "\n"
        try:
            with replacing(path) as file:
                file.write(text.encode())
        except OSError as error:
            raise SettingsError(f"{str(path)!r} cannot be written: {error.strerror}") from error

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a file that `save` wrote.

        Raises:
            SettingsError: The file cannot be read, or holds no curve.
        """
        try:
            plain = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise SettingsError(f"{str(path)!r} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise SettingsError(f"{str(path)!r} is not JSON: {error}") from error
        if not isinstance(plain, Mapping):
            raise SettingsError(f"{str(path)!r} holds no curve, but {plain!r:.40}")
        try:
            return cls.from_dict(plain)
        except SettingsError as error:
            raise SettingsError(f"{str(path)!r}: {error}") from error


def judge_identity(name: str, about: Mapping[str, Any]) -> dict[str, str]:
    """Return what names the judge (model, prompts) in the `about` of a backend or in a manifest."""
    whole = about if "roles" in about else {"backend": name, **about}
    return {
        path: str(value)
        for path, value in _flatten(whole)
        if path.rpartition(".")[2] in _NAMES_THE_JUDGE
    }


def _flatten(about: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in about.items():
        if key in _NO_PART_IN_SCORES:
            continue
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _check_numbers(name: str, values: Any) -> tuple[float, ...]:
    if isinstance(values, str | Mapping) or not hasattr(values, "__iter__"):
        raise SettingsError(f"curve {name} must be numbers, got {values!r:.80}")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SettingsError(f"curve {name} must be numbers, got {value!r:.80}")
        if not math.isfinite(value):
            raise SettingsError(f"curve {name} must be finite, got {value!r}")
    return tuple(map(float, values))


def _check_knots(x: tuple[float, ...], y: tuple[float, ...]) -> None:
    if not x or len(x) != len(y):
        raise SettingsError(
            f"curve needs as many y as x, at least one of each, got {len(x)}, {len(y)}"
        )
    if any(left >= right for left, right in pairwise(x)):
        raise SettingsError("curve x must rise")
    if any(low > high for low, high in pairwise(y)) or not 0 <= y[0] <= y[-1] <= 1:
        raise SettingsError("curve y must be in [0, 1] and not fall")


UNREACHABLE = math.nextafter(1.0, 2.0)  # the first number above every score
_log = logging.getLogger(__name__)


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
        """Return the score just above the widest gap, at least the floor, as short as it can be.

        It is rounded down to as few digits, two or more, as stay above the next score.
        """
        ordered = sorted(scores, reverse=True)
        above = [score for score in ordered if score >= self.floor]
        if not above:
            return self.floor
        below = [*ordered[1 : len(above)], max([0.0, *ordered[len(above) :]])]
        gaps = [high - low for high, low in zip(above, below, strict=True)]
        place = gaps.index(max(gaps))
        high, low = above[place], max(below[place], self.floor)
        shown = (
            float(Decimal(repr(high)).quantize(Decimal(1).scaleb(-digits), ROUND_DOWN))
            for digits in range(2, 6)
        )
        return next((one for one in shown if low < one <= high), high)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerIntent:
    """One threshold for each kind of question, *default* for the kinds not named; all in [0, 1]."""

    kind: ClassVar[str] = "per_intent"
    values: Mapping[str, float] = field(default_factory=dict)
    default: float = 0.8

    def __post_init__(self) -> None:
        check_share("default", self.default)
        given: object = self.values
        if not isinstance(given, Mapping):
            raise SettingsError(f"values must map kinds of questions, got {given!r:.80}")
        from deepera_graph.schema import IntentKind  # noqa: PLC0415  # pydantic takes as long as all the rest

        kinds = get_args(IntentKind)
        for name, value in self.values.items():
            if name not in kinds:
                raise SettingsError(
                    f"unknown kind of question {name!r}; kinds are {', '.join(kinds)}"
                )
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


def calibration_differences(
    threshold: Threshold | None, name: str, about: Mapping[str, Any]
) -> list[str]:
    """Say how a backend differs from the one a `Calibrated` threshold was fitted for; log it."""
    if not isinstance(threshold, Calibrated):
        return []
    found = threshold.curve.differences(name, about)
    if found:
        _log.warning(
            "calibrated for another judge, so the threshold may be off: %s; fit the curve again",
            "; ".join(found),
        )
    return found


def threshold_to_plain(threshold: Threshold | None) -> float | dict[str, Any] | None:
    """Return a number, None, or the rule as ``{"kind": ..., **options}``."""
    if threshold is None:
        return None
    if isinstance(threshold, int | float):
        return float(threshold)
    if isinstance(threshold, Calibrated):
        curve = threshold.curve.to_dict()
        return {"kind": threshold.kind, "probability": threshold.probability, "curve": curve}
    return {"kind": threshold.kind, **asdict(threshold)}


def threshold_from_plain(value: object) -> Threshold | None:
    """Read what `threshold_to_plain` wrote, or raise `SettingsError`."""
    if value is None:
        return None
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
