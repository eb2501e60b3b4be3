"""How good a judge gets with more questions to learn from."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deepera_graph.bench.metrics.statistics import Interval
from deepera_graph.judges.trained.similarity import sigmoid
from deepera_graph.judges.trained.trees import Trees
from deepera_graph.training.data import Pool
from deepera_graph.training.evaluate import (
    N_FOLDS,
    N_RESAMPLES,
    FitJudge,
    ScoredPool,
    assign_folds,
    compute_rank_metrics,
    score_pools,
)
from deepera_graph.training.features import FeaturedPool
from deepera_graph.training.log import Log, log_nothing

LEARNING_CURVE = "learning curve"
SHARES = (0.1, 0.25, 0.5, 1.0)


class Point(NamedTuple):
    """What judges of one size reach: of training questions (mean over folds), or of trees."""

    size: float
    metrics: Mapping[str, Mapping[str, Interval]]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "size": self.size,
            "sets": {
                name: {metric: one._asdict() for metric, one in its.items()}
                for name, its in self.metrics.items()
            },
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the point of its plain form."""
        sets = {
            name: {metric: Interval(**one) for metric, one in its.items()}
            for name, its in plain["sets"].items()
        }
        return cls(plain["size"], sets)


def learning_curve(
    pools: Sequence[Pool],
    learn: FitJudge,
    *,
    shares: Sequence[float] = SHARES,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    log: Log = log_nothing,
) -> list[Point]:
    """Return a point a share of the training questions; each is cross-validated.

    A smaller share is part of a larger one: groups join in one order, drawn once a fold.

    Args:
        pools: What is measured, and trained on; a question counts once a set it is in.
        learn: Fits a judge.
        shares: In (0, 1], rising.
        n_folds: >= 2.
        seed: Of the folds, the order and the fits.
        log: Told of each fit.

    Raises:
        SettingsError: There are too few groups for the folds.
        InputError: No question of a set has a golden passage.
    """
    fold_of = assign_folds(pools, n_folds=n_folds, seed=seed)
    points = []
    for share in shares:
        scored: list[ScoredPool] = []
        sizes = []
        for fold in range(n_folds):
            sides = list(zip(pools, fold_of, strict=True))
            train = _part([one for one, its in sides if its != fold and one.weight], share, seed)
            sizes.append(len(train))
            log(
                {"step": "part of the questions", "share": share, "fold": fold, "train": len(train)}
            )
            scorer = learn(train, seed=seed, log=log)
            scored += score_pools([one for one, its in sides if its == fold], scorer, log)
        points.append(point(float(np.mean(sizes)), scored, seed))
    return points


def point(
    size: float, scored: Sequence[ScoredPool], seed: int, *, n_resamples: int = N_RESAMPLES
) -> Point:
    """Return the rank metrics of each set at one size."""
    by_set: dict[str, list[ScoredPool]] = {}
    for one in scored:
        by_set.setdefault(one.pool.set, []).append(one)
    metrics = {
        name: compute_rank_metrics(its, n_resamples=n_resamples, seed=seed)
        for name, its in by_set.items()
    }
    return Point(size, metrics)


def _part(pools: Sequence[Pool], share: float, seed: int) -> list[Pool]:
    names = sorted({pool.group for pool in pools})
    order = np.random.default_rng(seed).permutation(len(names))
    chosen = {names[place] for place in order[: max(1, round(share * len(names)))]}
    return [pool for pool in pools if pool.group in chosen]


Floats = NDArray[np.float64]
BY_TREES = "by trees"
SIZES = (10, 25, 50, 100, 200, 350)
_N_RESAMPLES = 200


def by_trees(
    rows: Sequence[FeaturedPool],
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
            ranks[place] = ranks[place] + grown[row.half].predict(numbers[place])
        scored = [ScoredPool(row.pool, sigmoid(its)) for row, its in zip(rows, ranks, strict=True)]
        points.append(point(float(end), scored, seed, n_resamples=_N_RESAMPLES))
    return points


def between(trees: Trees, start: int, end: int, n_ensembles: int) -> Trees:
    """Return the trees *start* to *end* of each ensemble of a mean."""
    roots = trees.roots.reshape(n_ensembles, -1)[:, start:end].ravel()
    return replace(trees, roots=roots)
