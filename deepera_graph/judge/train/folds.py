"""Splits that keep every group on one side."""

from collections.abc import Sequence

import numpy as np

from deepera_graph.errors import SettingsError
from deepera_graph.judge.train.pool import Pool

N_FOLDS = 5
Split = tuple[list[Pool], list[Pool]]


def folds(pools: Sequence[Pool], *, n_folds: int = N_FOLDS, seed: int = 0) -> list[int]:
    """Return the fold, from 0, of each pool; all pools of a group have the same one.

    Groups are shuffled and dealt out set by set, so that every fold has its share of each set.

    Args:
        pools: At least as many groups as folds.
        n_folds: >= 2.
        seed: The same seed and groups give the same folds, whatever the order of the pools.

    Raises:
        SettingsError: There are too few groups, or fewer than two folds.
    """
    if n_folds < 2:
        raise SettingsError(f"folds must be >= 2, got {n_folds}")
    first_set: dict[str, str] = {}
    for pool in pools:
        name = first_set.get(pool.group)
        first_set[pool.group] = pool.set if name is None else min(name, pool.set)
    if len(first_set) < n_folds:
        raise SettingsError(
            f"{n_folds} folds need as many groups of questions, got {len(first_set)}"
        )
    names = sorted(first_set)
    shuffled = [names[place] for place in np.random.default_rng(seed).permutation(len(names))]
    dealt = sorted(shuffled, key=lambda group: first_set[group])  # stable: shuffled within a set
    fold_of = {group: place % n_folds for place, group in enumerate(dealt)}
    return [fold_of[pool.group] for pool in pools]


def held_out(pools: Sequence[Pool], share: float, *, seed: int = 0) -> Split:
    """Return the pools to train on, and those to choose by; no group is in both.

    Args:
        pools: What is split.
        share: Of the groups that are held out, in (0, 1); at least one is, and one is not.
        seed: The same seed gives the same split.

    Raises:
        SettingsError: The share is out of range, or there are fewer than two groups.
    """
    if not 0 < share < 1:
        raise SettingsError(f"the share held out must be in (0, 1), got {share}")
    names = sorted({pool.group for pool in pools})
    if len(names) < 2:
        raise SettingsError(f"two groups of questions are needed to hold one out, got {len(names)}")
    n_out = min(max(round(share * len(names)), 1), len(names) - 1)
    drawn = np.random.default_rng(seed).permutation(len(names))[:n_out]
    out = {names[place] for place in drawn}
    return (
        [pool for pool in pools if pool.group not in out],
        [pool for pool in pools if pool.group in out],
    )
