"""Fits whether all passages of a question are of one paper."""

from collections.abc import Sequence

import numpy as np

from deepera_graph.judge.ranking import N_POOL, OnePaper, pool_numbers
from deepera_graph.judge.train.near import Near
from deepera_graph.judge.train.regress import regress

NEVER = OnePaper((0.0,) * N_POOL, -20.0)


def fit_one_paper(pools: Sequence[Near]) -> OnePaper | None:
    """Fit it to questions; None if those over one paper or those over several are missing.

    Both kinds count the same in all, however many there are of each.
    """
    asked = [one for one in pools if not one.row.looked.is_claim and one.has_others]
    kinds = [one.row.pool.of_one_paper for one in asked]
    if len(set(kinds)) < 2:
        return None
    numbers = np.stack([pool_numbers(one.around) for one in asked])
    return OnePaper(*regress(numbers, kinds, balanced=True))
