"""Fits what ranks the passages of a question, and turns ranks into probabilities."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judge.head import Ranking, Scale, seen
from deepera_graph.judge.measures import Measures
from deepera_graph.judge.surroundings import ALONE, SURROUNDINGS
from deepera_graph.judge.train.fit_presence import fit_presence
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
    bare: Sequence[Row],
    bare_around: Sequence[Floats],
    *,
    claims: bool,
    seed: int,
    log: Log,
    without: Collection[str],
) -> Ranking | None:
    """Fit what ranks the passages of questions, or of claims; None if nothing teaches it.

    Args:
        rows: Pools.
        around: Their surroundings.
        bare: The same pools without their evidence.
        bare_around: Their surroundings.
        claims: Whether claims are fitted, or questions.
        seed: The same pools and seed give the same.
        log: Told of each step.
        without: Names of measures to do without.
    """
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
    near = [around[place] for place in places]
    together = _together(chosen, near, without)
    alone = [_masked(rows[place].company.alone(), ALONE, without) for place in places]
    kind = "claim" if claims else "question"
    halves = _halves(chosen, together, seed, rising)
    left = [place for place, row in enumerate(bare) if row.looked.is_claim == claims]
    bare, bare_around = [bare[p] for p in left], [bare_around[p] for p in left]
    return Ranking(
        _rank(chosen, together, seed, rising, _told(log, kind, "together")),
        _rank(chosen, alone, seed, rising_alone, _told(log, kind, "alone")),
        _scale(chosen, together, halves, log, alone=False),
        _scale(chosen, alone, _halves(chosen, alone, seed, rising_alone), log, alone=True),
        fit_presence(
            [*chosen, *bare],
            [*together, *_together(bare, bare_around, without)],
            [*near, *bare_around],
            halves,
            log,
        ),
    )


def _together(
    rows: Sequence[Row], around: Sequence[Floats], without: Collection[str]
) -> list[Floats]:
    return [
        _masked(np.column_stack([row.company.measures, near]), TOGETHER, without)
        for row, near in zip(rows, around, strict=True)
    ]


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


def _halves(
    rows: Sequence[Row], numbers: Sequence[Floats], seed: int, rising: Sequence[bool]
) -> dict[int, Trees]:
    """Return what ranks the pools of each half, fitted on the other, or on all if it is empty."""
    found = {}
    for half in (0, 1):
        other = [place for place, row in enumerate(rows) if row.half != half] or range(len(rows))
        found[half] = _rank([rows[p] for p in other], [numbers[p] for p in other], seed, rising)
    return found


def _scale(
    rows: Sequence[Row],
    numbers: Sequence[Floats],
    halves: Mapping[int, Trees],
    log: Log,
    *,
    alone: bool,
) -> Scale:
    """Fit probabilities to ranks that models of the other half gave."""
    ranks = [halves[row.half].log_odds(its) for row, its in zip(rows, numbers, strict=True)]
    found = [_lone(one) if alone else seen(one) for one in ranks]
    labels = np.concatenate([row.looked.labels for row in rows])
    weights = np.concatenate([np.full(len(row.looked.labels), row.pool.weight) for row in rows])
    model = needed("sklearn.linear_model").LogisticRegression(C=100.0, max_iter=2000)
    model.fit(np.concatenate(found), labels, weights)
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
