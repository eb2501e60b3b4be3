"""The figures of a judge on the questions by which trees and reader are weighed: `held_out.json`.

Neither trees nor reader knows these questions; what the two weigh is fitted on one half of them and
measured on the other. All shares are in percent. The pages that show figures are held to this file.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from deepera_graph.calibration.statistics import fit_logistic
from deepera_graph.judges.trained.features import sigmoid
from deepera_graph.lab.training.fitting.features import assign_split
from deepera_graph.lab.training.lessons.pools import Pool

HELD_OUT: Final = "held_out.json"
THRESHOLDS: Final = (0.2, 0.4, 0.5, 0.6, 0.7, 0.8)
Floats = NDArray[np.float64]


def score_halves(
    pools: Sequence[Pool],
    rows: Sequence[Floats],  # what is weighed, of each passage of a pool, shape (n, k)
    labels: Sequence[Floats],
    weights: Sequence[Floats],
) -> list[Floats]:
    """Return the probabilities of each pool by what was fitted on the other half of the groups."""
    halves = [assign_split(pool) % 2 for pool in pools]
    fitted = {}
    for half in (0, 1):
        others = [place for place, its in enumerate(halves) if its != half]
        if not len({bool(one) for place in others for one in labels[place]}) > 1:
            others = list(range(len(pools)))
        fitted[half] = fit_logistic(
            *(np.concatenate([some[n] for n in others]) for some in (rows, labels, weights)),
            C=10.0,
        )
    return [
        np.asarray(sigmoid(row @ fitted[half].weights + fitted[half].intercept), np.float64)
        for row, half in zip(rows, halves, strict=True)
    ]


def describe_held_out(
    pools: Sequence[Pool], scores: Sequence[Floats], operating_point: float
) -> dict[str, Any]:
    """Return the figures of each set as JSON values.

    Pools without evidence, which are those of a set that it was taken out of, tell in how many
    something is kept. `thresholds` has precision, recall and the share of pools nothing is kept of.
    """
    sets: dict[str, list[tuple[NDArray[np.bool_], Floats]]] = defaultdict(list)
    for pool, found in zip(pools, scores, strict=True):
        sets[pool.set].append((np.array(pool.labels, np.bool_), found))
    told = {name: _describe_set(its, operating_point) for name, its in sets.items()}
    return {"operating_point": operating_point, "sets": told}


def _describe_set(
    judged: Sequence[tuple[NDArray[np.bool_], Floats]], point: float
) -> dict[str, Any]:
    asked = [one for one in judged if one[0].any()]
    without = [found for golden, found in judged if not golden.any()]
    ranked = [golden[np.argsort(-found, kind="stable")] for golden, found in asked]
    first = np.array([int(its.argmax()) for its in ranked])
    kept = _describe_kept(asked, point)
    return {
        "questions": len(asked),
        "MAP": _percent([_average_precision(its) for its in ranked]),
        "HitRate@1": _percent(first < 1),
        "HitRate@3": _percent(first < 3),
        "MRR": _percent(1 / (1 + first)),
        **dict(zip(("precision", "recall", "empty"), kept, strict=True)),
        "kept without": _percent([bool((found >= point).any()) for found in without], None),
        "thresholds": {str(one): _describe_kept(asked, one) for one in THRESHOLDS},
    }


def _describe_kept(
    asked: Sequence[tuple[NDArray[np.bool_], Floats]], point: float
) -> list[float | None]:
    """Return precision, recall, and the share of pools of which nothing is kept."""
    kept = [found >= point for _, found in asked]
    right = sum(int((golden & its).sum()) for (golden, _), its in zip(asked, kept, strict=True))
    n_kept = sum(int(its.sum()) for its in kept)
    return [
        _percent([right / n_kept] if n_kept else [], None),
        _percent([right / sum(int(golden.sum()) for golden, _ in asked)] if asked else [], None),
        _percent([not its.any() for its in kept], None),
    ]


def _average_precision(golden: NDArray[np.bool_]) -> float:
    """Return the mean precision at the ranks of the golden passages, in (0, 1]."""
    places = np.flatnonzero(golden)
    return float(np.mean(np.arange(1, len(places) + 1) / (places + 1)))


def _percent(shares: Any, digits: int | None = 1) -> float | None:
    """Return their mean, a whole number unless *digits* is given; None without any."""
    found = np.asarray(shares, np.float64)
    return round(100 * float(found.mean()), digits) if found.size else None
