"""Fits what ranks the passages of a question, and turns ranks into probabilities."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judge.head import Ranking, Scale, seen
from deepera_graph.judge.measures import Measures
from deepera_graph.judge.surroundings import ALONE, SURROUNDINGS
from deepera_graph.judge.train.grow import grow
from deepera_graph.judge.train.log import Log, silent
from deepera_graph.judge.train.packages import needed
from deepera_graph.judge.train.row import Row
from deepera_graph.judge.train.signals import FOR_CLAIMS
from deepera_graph.judge.trees import Trees, mean

Floats = NDArray[np.float64]
RANK_ROUNDS = 350
N_SEEDS = 3  # ensembles whose mean ranks
TOGETHER = (*Measures._fields, *SURROUNDINGS)
_DIGITS = 6


def fit_ranking(
    rows: Sequence[Row],
    around: Sequence[Floats],
    *,
    claims: bool,
    seed: int,
    log: Log,
    without: Collection[str],
) -> Ranking | None:
    """Fit what ranks the passages of questions, or of claims; None if nothing teaches it."""
    places = [
        place
        for place, row in enumerate(rows)
        if row.looked.is_claim == claims and 0 < row.looked.labels.sum() < len(row.looked.labels)
    ]
    if not places:
        return None
    chosen = [rows[place] for place in places]
    if claims:
        without = {*without, *(name for name in (*TOGETHER, *ALONE) if name not in FOR_CLAIMS)}
    rising = [claims and name in FOR_CLAIMS for name in TOGETHER]
    rising_alone = [claims and name in FOR_CLAIMS for name in ALONE]
    together = [
        _masked(np.column_stack([rows[p].company.measures, around[p]]), TOGETHER, without)
        for p in places
    ]
    alone = [_masked(rows[place].company.alone(), ALONE, without) for place in places]
    kind = "claim" if claims else "question"
    return Ranking(
        _rank(chosen, together, seed, rising, _told(log, kind, "together")),
        _rank(chosen, alone, seed, rising_alone, _told(log, kind, "alone")),
        _scale(chosen, together, seed, rising, log, alone=False),
        _scale(chosen, alone, seed, rising_alone, log, alone=True),
    )


def _masked(rows: Floats, names: Sequence[str], without: Collection[str]) -> Floats:
    """Return rows in which some signals say nothing."""
    kept = np.array([name not in without for name in names])
    return np.asarray(np.where(kept[None], rows, 0.0), np.float64)


def _rank(
    rows: Sequence[Row],
    numbers: Sequence[Floats],
    seed: int,
    rising: Sequence[bool] | None,
    log: Log = silent,
) -> Trees:
    return mean(
        [
            grow(
                np.concatenate(numbers),
                np.concatenate([row.looked.labels for row in rows]),
                weights=np.concatenate(
                    [np.full(len(row.looked.labels), row.pool.weight) for row in rows]
                ),
                sizes=[len(row.looked.labels) for row in rows],
                rounds=RANK_ROUNDS,
                seed=N_SEEDS * seed + number,
                rising=rising,
                log=log,
            )
            for number in range(N_SEEDS)
        ]
    )


def _scale(
    rows: Sequence[Row],
    numbers: Sequence[Floats],
    seed: int,
    rising: Sequence[bool],
    log: Log,
    *,
    alone: bool,
) -> Scale:
    """Fit probabilities to ranks that models of the other half gave."""
    found: list[Floats] = []
    labels: list[Any] = []
    weights: list[Any] = []
    halves = {row.half for row in rows}
    for half in sorted(halves):
        train = [place for place, row in enumerate(rows) if row.half != half or len(halves) < 2]
        trees = _rank([rows[p] for p in train], [numbers[p] for p in train], seed, rising)
        for row, its in zip(rows, numbers, strict=True):
            if row.half == half:
                ranks = trees.log_odds(its)
                found.append(_lone(ranks) if alone else seen(ranks))
                labels.append(row.looked.labels)
                weights.append(np.full(len(ranks), row.pool.weight))
    model = needed("sklearn.linear_model").LogisticRegression(C=100.0, max_iter=2000)
    model.fit(np.concatenate(found), np.concatenate(labels), np.concatenate(weights))
    log({"step": "scale", "weights": [round(float(x), 3) for x in model.coef_[0]]})
    return Scale(tuple(_rounded(model.coef_[0]).tolist()), round(float(model.intercept_[0]), 6))


def _lone(ranks: Floats) -> Floats:
    return np.column_stack([ranks, np.zeros((len(ranks), 2))])


def _told(log: Log, kind: str, what: str) -> Log:
    def told(event: Mapping[str, Any]) -> None:
        log({**event, "kind": kind, "ranks": what})

    return told


def _rounded(values: Any) -> Floats:
    return np.asarray(np.round(values, _DIGITS), np.float64)
