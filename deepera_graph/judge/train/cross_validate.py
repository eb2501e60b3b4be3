"""Scores of pools by judges that never saw their question, nor one of its group."""

from collections.abc import Collection, Sequence

from deepera_graph.judge.train.folds import N_FOLDS, folds
from deepera_graph.judge.train.learn import Learn
from deepera_graph.judge.train.log import Log, silent
from deepera_graph.judge.train.look_alikes import varied
from deepera_graph.judge.train.pool import Pool
from deepera_graph.judge.train.scored import Scored, score


def cross_validated(
    pools: Sequence[Pool],
    learn: Learn,
    *,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    variants: Collection[str] = (),
    without: Collection[str] = (),
    train_on: Collection[Pool] | None = None,
    log: Log = silent,
) -> list[Scored]:
    """Return each pool with the scores of a judge fitted on the other folds.

    Pools of weight 0 are measured and never trained on.

    Args:
        pools: What is measured, and trained on.
        learn: Fits a judge.
        n_folds: >= 2.
        seed: Of the folds and the fits.
        variants: Kinds of variants that training pools get, see `look_alikes`.
        without: Signals that the judges do without.
        train_on: What is trained on instead, of the same groups; for ablations.
        log: Told of each fold.

    Raises:
        SettingsError: There are too few groups for the folds.
    """
    fold_of = dict(
        zip((pool.group for pool in pools), folds(pools, n_folds=n_folds, seed=seed), strict=True)
    )
    material = [one for one in (pools if train_on is None else train_on) if one.weight]
    scored: dict[tuple[str, str], Scored] = {}
    for fold in range(n_folds):
        train = [one for one in material if fold_of[one.group] != fold]
        test = [one for one in pools if fold_of[one.group] == fold]
        log({"step": "fold", "fold": fold, "train": len(train), "test": len(test)})
        scorer = learn(
            varied(train, kinds=variants, seed=seed), seed=seed, log=log, without=without
        )
        scored.update({(one.pool.set, one.pool.id): one for one in score(test, scorer, log)})
    return [scored[pool.set, pool.id] for pool in pools]
