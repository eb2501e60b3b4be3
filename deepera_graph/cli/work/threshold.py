"""From `--threshold`, or `--curve` and `--probability`, to a number or a rule."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deepera_graph.errors import SettingsError
from deepera_graph.thresholds import Calibrated, Curve, Gap, PerIntent, Quantile, Threshold

_FORMS = "a number from 0 to 1, gap[:FLOOR], quantile:SHARE[:FLOOR] or KIND=T,...,default=T"


def with_threshold(
    settings: Mapping[str, Any], curve: Path | None = None, probability: float | None = None
) -> dict[str, Any]:
    """Return settings whose threshold is read from its text, or drawn on a curve if one is given.

    Raises:
        SettingsError: The curve or the text cannot be read, or options do not go together.
    """
    if curve is None:
        if probability is not None:
            raise SettingsError("--probability goes with --curve")
        if "threshold" not in settings:
            return dict(settings)
        return {**settings, "threshold": read_threshold(str(settings["threshold"]))}
    if "threshold" in settings:
        raise SettingsError("give --threshold or --curve, not both")
    chosen = {} if probability is None else {"probability": probability}
    return {**settings, "threshold": Calibrated(curve=Curve.load(curve), **chosen)}


def read_threshold(text: str) -> Threshold:
    """Read ``0.8``, ``gap:0.5``, ``quantile:0.1:0.5`` or ``mechanism=0.7,default=0.8``.

    Raises:
        SettingsError: It is none of these, or a number is out of range.
    """
    name, *numbers = text.split(":")
    if "=" in text:
        return _per_intent(text)
    if name == "gap" and len(numbers) < 2:
        return Gap(**_named(text, ("floor",), numbers))
    if name == "quantile" and 1 <= len(numbers) < 3:
        return Quantile(**_named(text, ("share", "floor"), numbers))
    return _number(text, text)


def _per_intent(text: str) -> PerIntent:
    pairs = (part.partition("=") for part in text.split(","))
    values: dict[Any, float] = {kind.strip(): _number(text, value) for kind, _, value in pairs}
    default = {"default": values.pop("default")} if "default" in values else {}
    return PerIntent(values=values, **default)


def _named(text: str, names: tuple[str, ...], numbers: list[str]) -> dict[str, float]:
    pairs = zip(names, numbers, strict=False)
    return {name: _number(text, number) for name, number in pairs}


def _number(text: str, number: str) -> float:
    try:
        return float(number)
    except ValueError as error:
        raise SettingsError(f"--threshold must be {_FORMS}, got {text!r}") from error
