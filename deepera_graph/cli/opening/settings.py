"""The settings of a run, over those of a preset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.declaring import given
from deepera_graph.errors import SettingsError
from deepera_graph.settings import Preset, preset

if TYPE_CHECKING:
    from deepera_graph.thresholds import PerIntent, Threshold

_NO_PRESET = Preset(name="", about="")
_THRESHOLDS = "a number from 0 to 1, gap[:FLOOR], quantile:SHARE[:FLOOR] or KIND=T,...,default=T"


def settings_of(
    judge: options.JudgeOptions,
    kept: options.FilterOptions,
    budget: options.BudgetOptions | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the settings that were given, over those of a preset."""
    chosen = given(kept) | {name: value for name, value in more.items() if value}
    if judge.max_concurrency is not None:
        chosen["max_concurrency"] = judge.max_concurrency
    if budget is not None and given(budget):
        chosen["budget"] = given(budget)
    return {**preset_of(judge).settings, **_with_threshold(chosen)}


def preset_of(judge: options.JudgeOptions) -> Preset:
    """Return the preset that was given, or one that sets nothing."""
    return _NO_PRESET if judge.preset is None else preset(judge.preset)


def _with_threshold(chosen: dict[str, Any]) -> dict[str, Any]:
    """Read the threshold from its text, or draw it on a curve if one is given."""
    curve, probability = chosen.pop("curve", None), chosen.pop("probability", None)
    if curve is None:
        if probability is not None:
            raise SettingsError("--probability goes with --curve")
        if "threshold" in chosen:
            chosen["threshold"] = read_threshold(chosen["threshold"])
        return chosen
    if "threshold" in chosen:
        raise SettingsError("give --threshold or --curve, not both")
    from deepera_graph.thresholds import Calibrated, Curve

    more = {} if probability is None else {"probability": probability}
    return {**chosen, "threshold": Calibrated(curve=Curve.load(curve), **more)}


def read_threshold(text: str) -> Threshold:
    """Read ``0.8``, ``gap:0.5``, ``quantile:0.1:0.5`` or ``mechanism=0.7,default=0.8``."""
    from deepera_graph.thresholds import Gap, Quantile

    name, *numbers = text.split(":")
    if "=" in text:
        return _read_per_intent(text)
    if name == "gap" and len(numbers) < 2:
        return Gap(**_read_numbers(text, ("floor",), numbers))
    if name == "quantile" and 1 <= len(numbers) < 3:
        return Quantile(**_read_numbers(text, ("share", "floor"), numbers))
    return _read_number(text, text)


def _read_per_intent(text: str) -> PerIntent:
    from deepera_graph.thresholds import PerIntent

    pairs = (part.partition("=") for part in text.split(","))
    values: dict[Any, float] = {kind.strip(): _read_number(text, value) for kind, _, value in pairs}
    default = {"default": values.pop("default")} if "default" in values else {}
    return PerIntent(values=values, **default)


def _read_numbers(text: str, names: tuple[str, ...], numbers: list[str]) -> dict[str, float]:
    pairs = zip(names, numbers, strict=False)
    return {name: _read_number(text, number) for name, number in pairs}


def _read_number(text: str, number: str) -> float:
    try:
        return float(number)
    except ValueError as error:
        raise SettingsError(f"--threshold must be {_THRESHOLDS}, got {text!r}") from error
