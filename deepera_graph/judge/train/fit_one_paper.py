"""Fits whether all passages of a question are of one paper."""

from collections.abc import Sequence

import numpy as np

from deepera_graph.judge.ranking import OnePaper, pool_numbers
from deepera_graph.judge.train.lessons import is_article
from deepera_graph.judge.train.near import Near
from deepera_graph.judge.train.packages import needed

_DIGITS = 6
_N_NUMBERS = 5
NEVER = OnePaper((0.0,) * _N_NUMBERS, -20.0)


def fit_one_paper(pools: Sequence[Near]) -> OnePaper | None:
    """Fit it to the pools of questions; None if there are not both kinds of them.

    Both kinds count the same in all, however many there are of each.
    """
    asked = [one for one in pools if not one.row.looked.is_claim and one.has_others]
    kinds = [is_article(one.row.pool) for one in asked]
    if len(set(kinds)) < 2:
        return None
    numbers = np.stack([pool_numbers(one.around) for one in asked])
    spread = np.maximum(numbers.std(axis=0), 1e-6)
    model = needed("sklearn.linear_model").LogisticRegression(
        C=1.0, max_iter=2000, class_weight="balanced"
    )
    model.fit(numbers / spread, kinds)
    found = np.round(model.coef_[0] / spread, _DIGITS).tolist()
    return OnePaper(tuple(found), round(float(model.intercept_[0]), _DIGITS))
