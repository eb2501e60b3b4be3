"""The lowest threshold that reaches a wanted precision."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from deepera_graph.calibration.operating import FEWEST_KEPT, Estimate

Bound = Literal["mean", "low"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A threshold, or why there is none.

    Attributes:
        probability: The lowest probability that reaches the wanted precision; None if none does.
        why_not: Empty, or what comes closest.
    """

    probability: float | None
    why_not: str = ""


def suggest(
    taus: Sequence[float], precisions: Sequence[Estimate], wanted: float, *, bound: Bound = "mean"
) -> Suggestion:
    """Return the lowest threshold whose precision is at least *wanted*.

    Args:
        taus: Thresholds, rising, shape (n_taus,).
        precisions: At those thresholds, as `Kept.precisions` gives them.
        wanted: In [0, 1].
        bound: What has to reach it: the precision itself, or the lower end of its interval, which
            also holds for most other questions of the same kind.
    """
    known = [
        (tau, value)
        for tau, one in zip(taus, precisions, strict=True)
        if (value := one.mean if bound == "mean" else one.low) is not None
    ]
    reached = [tau for tau, value in known if value >= wanted]
    if reached:
        return Suggestion(probability=min(reached))
    if not known:
        return Suggestion(probability=None, why_not=f"fewer than {FEWEST_KEPT} passages to keep")
    best, tau = max((value, -tau) for tau, value in known)
    name = "precision" if bound == "mean" else "lower end of the precision"
    return Suggestion(
        probability=None,
        why_not=f"the best {name} is {best:.3f}, at probability {-tau:.2f}; wanted {wanted:g}",
    )
