"""How good a ranking is with fewer of its trees, on pools that it was not fitted on."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judge.odds import probability
from deepera_graph.judge.train.learning_curve import Point, point
from deepera_graph.judge.train.row import Row
from deepera_graph.judge.train.scored import Scored
from deepera_graph.judge.trees import Trees

Floats = NDArray[np.float64]
BY_TREES = "by trees"
SIZES = (10, 25, 50, 100, 200, 350)
_N_RESAMPLES = 200


def by_trees(
    rows: Sequence[Row],
    numbers: Sequence[Floats],
    halves: Mapping[int, Trees],
    *,
    n_ensembles: int,
    seed: int,
    sizes: Sequence[int] = SIZES,
) -> list[Point]:
    """Return a point a number of trees: ranks of each half by trees fitted on the other.

    What the trees see was in part fitted on both halves (word counts on all pools; role, topic and
    studies on all parts but a pool's own), so the course of the curve counts and not its level.

    Args:
        rows: Pools.
        numbers: What the trees see of each, shape (n_passages, n_features).
        halves: What ranks the pools of a half.
        n_ensembles: Whose mean the trees are.
        seed: Of the intervals.
        sizes: Trees of each ensemble, >= 1, rising.
    """
    starts = (0, *sizes[:-1])
    ranks = [np.zeros(len(its)) for its in numbers]
    points = []
    for start, end in zip(starts, sizes, strict=True):
        grown = {half: between(its, start, end, n_ensembles) for half, its in halves.items()}
        for place, row in enumerate(rows):
            ranks[place] = ranks[place] + grown[row.half].log_odds(numbers[place])
        scored = [Scored(row.pool, probability(its)) for row, its in zip(rows, ranks, strict=True)]
        points.append(point(float(end), scored, seed, n_resamples=_N_RESAMPLES))
    return points


def between(trees: Trees, start: int, end: int, n_ensembles: int) -> Trees:
    """Return the trees *start* to *end* of each ensemble of a mean."""
    roots = trees.roots.reshape(n_ensembles, -1)[:, start:end].ravel()
    return replace(trees, roots=roots)
