"""How good a judge gets with more questions to learn from."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from deepera_graph.bench.metrics.resample import Interval
from deepera_graph.judge.train.folds import N_FOLDS, folds
from deepera_graph.judge.train.learn import Learn
from deepera_graph.judge.train.log import Log, silent
from deepera_graph.judge.train.measure import N_RESAMPLES, rank_metrics
from deepera_graph.judge.train.pool import Pool
from deepera_graph.judge.train.scored import Scored, score

LEARNING_CURVE = "learning curve"
SHARES = (0.1, 0.25, 0.5, 1.0)


class Point(NamedTuple):
    """What judges of one size reach: of training questions (mean over folds), or of trees."""

    size: float
    metrics: Mapping[str, Mapping[str, Interval]]

    def plain(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "size": self.size,
            "sets": {
                name: {metric: one._asdict() for metric, one in its.items()}
                for name, its in self.metrics.items()
            },
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Return the point of its plain form."""
        sets = {
            name: {metric: Interval(**one) for metric, one in its.items()}
            for name, its in plain["sets"].items()
        }
        return cls(plain["size"], sets)


def learning_curve(
    pools: Sequence[Pool],
    learn: Learn,
    *,
    shares: Sequence[float] = SHARES,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    log: Log = silent,
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
    fold_of = folds(pools, n_folds=n_folds, seed=seed)
    points = []
    for share in shares:
        scored: list[Scored] = []
        sizes = []
        for fold in range(n_folds):
            sides = list(zip(pools, fold_of, strict=True))
            train = _part([one for one, its in sides if its != fold and one.weight], share, seed)
            sizes.append(len(train))
            log(
                {"step": "part of the questions", "share": share, "fold": fold, "train": len(train)}
            )
            scorer = learn(train, seed=seed, log=log)
            scored += score([one for one, its in sides if its == fold], scorer, log)
        points.append(point(float(np.mean(sizes)), scored, seed))
    return points


def point(
    size: float, scored: Sequence[Scored], seed: int, *, n_resamples: int = N_RESAMPLES
) -> Point:
    """Return the rank metrics of each set at one size."""
    by_set: dict[str, list[Scored]] = {}
    for one in scored:
        by_set.setdefault(one.pool.set, []).append(one)
    metrics = {
        name: rank_metrics(its, n_resamples=n_resamples, seed=seed) for name, its in by_set.items()
    }
    return Point(size, metrics)


def _part(pools: Sequence[Pool], share: float, seed: int) -> list[Pool]:
    names = sorted({pool.group for pool in pools})
    order = np.random.default_rng(seed).permutation(len(names))
    chosen = {names[place] for place in order[: max(1, round(share * len(names)))]}
    return [pool for pool in pools if pool.group in chosen]
