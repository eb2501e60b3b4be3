"""The settings of a run, over those of a preset."""

from __future__ import annotations

from typing import Any

from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.declaring import given
from deepera_graph.cli.shared.values import read_threshold
from deepera_graph.errors import SettingsError
from deepera_graph.settings import Preset, preset

_NO_PRESET = Preset(name="", about="")


def settings_of(judge: options.JudgeOptions, **more: Any) -> dict[str, Any]:
    """Return the settings that were given, over those of a preset."""
    chosen = given(judge, of=options.FilterOptions)
    chosen |= {name: value for name, value in more.items() if value}
    if judge.max_concurrency is not None:
        chosen["max_concurrency"] = judge.max_concurrency
    if budget := given(judge, of=options.BudgetOptions):
        chosen["budget"] = budget
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
