"""Fits what ranks the passages of a question, and turns ranks into probabilities."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judge.ranking import Lone, Ranking, Scale, seen
from deepera_graph.judge.standing import ABOVE, SEEN
from deepera_graph.judge.surroundings import ALONE
from deepera_graph.judge.train.by_trees import BY_TREES, by_trees
from deepera_graph.judge.train.fit_presence import fit_presence
from deepera_graph.judge.train.grow import grow
from deepera_graph.judge.train.log import Log, silent
from deepera_graph.judge.train.near import Near
from deepera_graph.judge.train.packages import needed
from deepera_graph.judge.train.row import Row
from deepera_graph.judge.train.signals import FOR_CLAIMS
from deepera_graph.judge.trees import Trees

Floats = NDArray[np.float64]
RANK_ROUNDS = 350
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of question that has a ranking of its own.

    Attributes:
        name: For the log.
        takes: Tells whether a pool is of this kind.
        share: Of the numbers, those that a tree may look at, in (0, 1]. The fewer, the more the
            trees differ: that is what many numbers that say nearly the same are good for.
        n_ensembles: Whose mean ranks, >= 1.
        only: The only signals to look at, of which more may only help, as does a greater distance
            from the mean; None looks at all.
    """

    name: str
    takes: Callable[[Row], bool]
    share: float
    n_ensembles: int = 3
    only: Collection[str] | None = None

    def sees(self, name: str, without: Collection[str] = ()) -> bool:
        """Tell whether this kind looks at a number, out of `ALONE` or `SEEN`."""
        signal, _, standing = name.partition(", ")
        if signal in without:
            return False
        return self.only is None or (signal in self.only and standing != ABOVE)

    def rising(self, names: Sequence[str]) -> list[bool] | None:
        """Tell which of some numbers may only help; None if that goes for none of them."""
        return None if self.only is None else [self.sees(name) for name in names]


QUESTION = Kind(
    name="question",
    takes=lambda row: not row.looked.is_claim and not row.pool.of_one_paper,
    share=0.1,
)
ARTICLE = Kind(
    name="article", takes=lambda row: not row.looked.is_claim and row.pool.of_one_paper, share=0.2
)
CLAIM = Kind(name="claim", takes=lambda row: row.looked.is_claim, share=0.3, only=FOR_CLAIMS)
ONE_CLAIM = replace(CLAIM, n_ensembles=1)
# of a passage alone; in an article most results are on another outcome, which says little elsewhere
ONE_QUESTION = replace(QUESTION, share=0.7, n_ensembles=1)
ONE_OF_ARTICLE = replace(ARTICLE, share=0.7, n_ensembles=1)


def fit_ranking(
    pools: Sequence[Near],
    kind: Kind,
    *,
    joined: Sequence[Near],
    few: Sequence[Near],
    bare: Sequence[Near],
    seed: int,
    log: Log,
    without: Collection[str] = (),
    tells_course: bool = False,
) -> Ranking | None:
    """Fit what ranks the passages of one kind of question; None if nothing teaches it.

    Args:
        pools: Pools of all kinds.
        kind: What kind is fitted.
        joined: Some of them with more evidence; they are no part of the course.
        few: The same questions over a few passages: from them it is learned how probabilities
            depend on the number of passages, not what ranks them.
        bare: The questions, and those over few passages, without their evidence.
        seed: The same pools and seed give the same.
        log: Told of each step.
        without: Names of measures and surroundings to do without.
        tells_course: Whether the log is told how good the ranking is with fewer trees.
    """
    own, more = (
        [one for one in some if kind.takes(one.row) and _teaches(one.row)]
        for some in (pools, joined)
    )
    if not own:
        return None
    chosen = [*own, *more]
    short, empty = ([one for one in some if kind.takes(one.row)] for some in (few, bare))
    rows = [one.row for one in chosen]
    kept = [kind.sees(name, without) for name in SEEN]
    numbers, shorts, empties = (
        [_masked(one.numbers, kept) for one in some] for some in (chosen, short, empty)
    )
    rank = partial(_rank, kind=kind, seed=seed, rising=kind.rising(SEEN))
    halves = _halves(rows, numbers, rank)
    if tells_course:
        n = len(own)
        points = by_trees(rows[:n], numbers[:n], halves, n_ensembles=kind.n_ensembles, seed=seed)
        log({"step": BY_TREES, "kind": kind.name, "points": [one.plain() for one in points]})
    trees = rank(rows, numbers, log=_told(log, kind.name, "together"))
    scaled = [*rows, *(one.row for one in short)]
    return Ranking(
        trees,
        _scale(scaled, [*numbers, *shorts], halves, log, alone=False),
        fit_presence(
            [*scaled, *(one.row for one in empty)],
            [*numbers, *shorts, *empties],
            [one.around for one in (*chosen, *short, *empty)],
            halves=halves,
            log=log,
        ),
    )


def fit_alone(
    rows: Sequence[Row],
    kind: Kind,
    *,
    seed: int,
    log: Log,
    without: Collection[str] = (),
) -> Lone | None:
    """Fit what judges a passage that has no other beside it; None if nothing teaches it.

    For the arguments see `fit_ranking`.
    """
    chosen = [row for row in rows if kind.takes(row) and _teaches(row)]
    if not chosen:
        return None
    kept = [kind.sees(name, without) for name in ALONE]
    numbers = [_masked(row.company.alone(), kept) for row in chosen]
    rank = partial(_rank, kind=kind, seed=seed, rising=kind.rising(ALONE))
    halves = _halves(chosen, numbers, rank)
    trees = rank(chosen, numbers, log=_told(log, kind.name, "alone"))
    return Lone(trees, _scale(chosen, numbers, halves, log, alone=True))


def _masked(numbers: Floats, kept: Sequence[bool]) -> Floats:
    """Return numbers of which some say nothing."""
    return np.asarray(np.where(np.array(kept)[None], numbers, 0.0), np.float64)


def _teaches(row: Row) -> bool:
    return bool(0 < row.looked.labels.sum() < len(row.looked.labels))


def _rank(
    rows: Sequence[Row],
    numbers: Sequence[Floats],
    *,
    kind: Kind,
    seed: int,
    rising: Sequence[bool] | None,
    log: Log = silent,
) -> Trees:
    return grow(
        np.concatenate(numbers),
        np.concatenate([row.looked.labels for row in rows]),
        weights=np.concatenate([np.full(len(row.looked.labels), row.pool.weight) for row in rows]),
        sizes=[len(row.looked.labels) for row in rows],
        rounds=RANK_ROUNDS,
        seed=seed,
        n_ensembles=kind.n_ensembles,
        share=kind.share,
        rising=rising,
        log=log,
    )


def _halves(
    rows: Sequence[Row], numbers: Sequence[Floats], rank: Callable[..., Trees]
) -> dict[int, Trees]:
    """Return what ranks the pools of each half, fitted on the other, or on all if it is empty."""
    found = {}
    for half in (0, 1):
        other = [place for place, row in enumerate(rows) if row.half != half] or range(len(rows))
        found[half] = rank([rows[p] for p in other], [numbers[p] for p in other])
    return found


def _scale(
    rows: Sequence[Row],
    numbers: Sequence[Floats],
    halves: Mapping[int, Trees],
    log: Log,
    *,
    alone: bool,
) -> Scale:
    """Fit probabilities to ranks that models of the other half gave; to pools with evidence."""
    taught = [(row, its) for row, its in zip(rows, numbers, strict=True) if row.looked.labels.any()]
    ranks = [halves[row.half].log_odds(its) for row, its in taught]
    found = [_lone(one) if alone else seen(one) for one in ranks]
    labels = np.concatenate([row.looked.labels for row, _ in taught])
    weights = np.concatenate(
        [np.full(len(row.looked.labels), row.pool.weight) for row, _ in taught]
    )
    model = needed("sklearn.linear_model").LogisticRegression(C=100.0, max_iter=2000)
    model.fit(np.concatenate(found), labels, weights)
    log({"step": "scale", "weights": [round(float(x), 3) for x in model.coef_[0]]})
    return Scale(
        tuple(np.round(model.coef_[0], _DIGITS).tolist()),
        round(float(model.intercept_[0]), _DIGITS),
    )


def _lone(ranks: Floats) -> Floats:
    return np.column_stack([ranks, np.zeros((len(ranks), Scale.SEEN - 1))])


def _told(log: Log, kind: str, what: str) -> Log:
    def told(event: Mapping[str, Any]) -> None:
        log({**event, "kind": kind, "ranks": what})

    return told
