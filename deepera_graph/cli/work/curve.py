"""From `--curve` and `--probability` to a threshold."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deepera_graph.curve import Curve
from deepera_graph.errors import SettingsError
from deepera_graph.thresholds import Calibrated


def with_curve(
    settings: Mapping[str, Any], curve: Path | None, probability: float | None
) -> dict[str, Any]:
    """Return settings whose threshold is drawn on a curve, if one is given.

    Raises:
        SettingsError: The curve cannot be read, or options do not go together.
    """
    if curve is None:
        if probability is not None:
            raise SettingsError("--probability goes with --curve")
        return dict(settings)
    if "threshold" in settings:
        raise SettingsError("give --threshold or --curve, not both")
    chosen = {} if probability is None else {"probability": probability}
    return {**settings, "threshold": Calibrated(curve=Curve.load(curve), **chosen)}
