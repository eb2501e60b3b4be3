"""Fits whether there is evidence among some passages at all."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judge.ranking import Presence, best_of
from deepera_graph.judge.train.log import Log
from deepera_graph.judge.train.regress import regress
from deepera_graph.judge.train.row import Row
from deepera_graph.judge.trees import Trees

Floats = NDArray[np.float64]
SHARE_WITHOUT = 0.1  # of questions for which nothing that was found is evidence; an assumption
WITHOUT_WEIGHT = SHARE_WITHOUT / (1 - SHARE_WITHOUT)  # of what a pool with evidence counts


def fit_presence(
    rows: Sequence[Row],
    numbers: Sequence[Floats],
    around: Sequence[Floats],
    *,
    halves: Mapping[int, Trees],
    log: Log,
) -> Presence:
    """Fit it to pools with evidence, and to pools without.

    Args:
        rows: Pools, some of which have evidence. In others the first stage found none, or it was
            taken out; both count as questions without an answer, `WITHOUT_WEIGHT` as much. (Of the
            first two passages a third of the pools has none, which is counted down so, too: at
            full weight no score of two passages reaches 0.8, though those near it are evidence.)
        numbers: What each is ranked by.
        around: Surroundings of each.
        halves: What ranks the pools of each half, fitted on the other.
        log: Told of the outcome.
    """
    seen, there, weights = [], [], []
    for row, its, near in zip(rows, numbers, around, strict=True):
        seen.append(best_of(halves[row.half].log_odds(its), row.company, near))
        has = bool(row.looked.labels.any())
        there.append(has)
        weights.append(row.pool.weight * (1 if has else WITHOUT_WEIGHT))
    if len(set(there)) < 2:
        return Presence((0.0,) * len(seen[0]), 20.0)  # nothing to tell apart: always there
    found = Presence(*regress(np.stack(seen), there, weights))
    log({"step": "presence", "pools": len(seen), "with evidence": int(sum(there))})
    return found
