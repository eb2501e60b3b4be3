"""How good a judge is with fewer of its trees."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from deepera_graph.judge.head import Head
from deepera_graph.judge.ranking import Lone, Ranking
from deepera_graph.judge.train.by_trees import SIZES, between
from deepera_graph.judge.train.fit import fit
from deepera_graph.judge.train.fit_ranking import RANK_ROUNDS
from deepera_graph.judge.train.folds import N_FOLDS, folds
from deepera_graph.judge.train.judge import head_scorer
from deepera_graph.judge.train.learning_curve import Point, point
from deepera_graph.judge.train.log import Log, silent
from deepera_graph.judge.train.material import Material
from deepera_graph.judge.train.pool import Pool
from deepera_graph.judge.train.scored import Scored, score

RankingT = TypeVar("RankingT", Ranking, Lone)


def tree_curve(
    pools: Sequence[Pool],
    material: Material,
    *,
    sizes: Sequence[int] = SIZES,
    base: Head | None = None,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    log: Log = silent,
) -> list[Point]:
    """Return a point a number of trees, cross-validated; each fold is fitted once.

    Probabilities are those of all trees, so only ranks are to be looked at.

    Args:
        pools: What is measured, and trained on.
        material: Looks at pools.
        sizes: Numbers of trees, >= 1, rising.
        base: See `fit`.
        n_folds: >= 2.
        seed: Of the folds and the fits.
        log: Told of each fold.

    Raises:
        SettingsError: There are too few groups for the folds.
        InputError: The pools cannot teach something.
    """
    fold_of = folds(pools, n_folds=n_folds, seed=seed)
    scored: dict[int, list[Scored]] = {size: [] for size in sizes}
    for fold in range(n_folds):
        sides = list(zip(pools, fold_of, strict=True))
        train = [one for one, its in sides if its != fold]
        test = [one for one, its in sides if its == fold]
        log({"step": "tree curve", "fold": fold, "train": len(train)})
        head = fit(train, material, seed=seed, log=log, base=base)
        for size in sizes:
            scored[size] += score(test, head_scorer(first_trees(head, size), material), log)
    return [point(float(size), found, seed) for size, found in scored.items()]


def first_trees(head: Head, size: int) -> Head:
    """Return the head with only the first so many trees of each ensemble of each ranking."""
    return replace(
        head,
        question=_first(head.question, size),
        article=_first(head.article, size),
        claim=_first(head.claim, size),
        question_alone=_first(head.question_alone, size),
        claim_alone=_first(head.claim_alone, size),
    )


def _first(ranking: RankingT, size: int) -> RankingT:
    n_ensembles = len(ranking.trees.roots) // RANK_ROUNDS
    return replace(ranking, trees=between(ranking.trees, 0, size, n_ensembles))
