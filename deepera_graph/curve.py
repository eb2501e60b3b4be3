"""From the raw score of one judge to the probability that a passage is evidence."""

import json
import math
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Self, get_args

from deepera_graph.errors import SettingsError

Method = Literal["isotonic", "platt"]
FORMAT = 1
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
        if self.method not in get_args(Method):
            raise SettingsError(f"curve method must be isotonic or platt, got {self.method!r}")
        object.__setattr__(self, "x", _numbers("x", self.x))
        object.__setattr__(self, "y", _numbers("y", self.y))
        _numbers("a and b", (self.a, self.b))
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

        Args:
            name: Of the backend.
            about: Of the backend.

        Returns:
            Nothing if model, prompts and judge are the same. The package version may differ.
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
        beside = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(path)
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
    """Return what names the judge in the `about` of a backend, or in a manifest: model, prompts.

    Who summarizes and answers has no part in scores and is left out.
    """
    whole = about if "roles" in about else {"backend": name, **about}
    return {key: str(value) for key, value in _flat(whole) if _last(key) in _NAMES_THE_JUDGE}


def _flat(about: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in about.items():
        if key in _NO_PART_IN_SCORES:
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _last(key: str) -> str:
    return key.rpartition(".")[2]


def _numbers(name: str, values: Any) -> tuple[float, ...]:
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
        raise SettingsError(f"curve needs as many y as x, and one at least, got {len(x)}, {len(y)}")
    if any(left >= right for left, right in pairwise(x)):
        raise SettingsError("curve x must rise")
    if any(low > high for low, high in pairwise(y)) or not 0 <= y[0] <= y[-1] <= 1:
        raise SettingsError("curve y must be in [0, 1] and not fall")
