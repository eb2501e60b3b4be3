"""Fits what ranks the passages of a question, and turns ranks into probabilities."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial as partial_of
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepera_graph.calibration.statistics import fit_logistic
from deepera_graph.judges.trained.pool_features import RANK, RANKING_FEATURES, SINGLE_FEATURES
from deepera_graph.judges.trained.scorer import (
    AnswerabilityModel,
    PassageRanker,
    PlattScaling,
    SinglePassageScorer,
    list_answerability_inputs,
    rank_value,
)
from deepera_graph.judges.trained.trees import Trees, average_trees
from deepera_graph.lab.training.fitting.features import ContextPool, FeaturedPool
from deepera_graph.lab.training.weights import Event, Log, import_package, log_nothing

Floats = NDArray[np.float64]
Rows = Sequence[FeaturedPool]

LEAF = 40  # fewest passages, or pairs of them, in a leaf
RANK_ROUNDS = 350
SHARE_WITHOUT = 0.2  # of questions for which nothing that was found is evidence; an assumption
LEAVES = 15  # of a tree, at most
_LEAST_SHARE = 0.2  # of the features that one of its trees may look at
WITHOUT_WEIGHT = SHARE_WITHOUT / (1 - SHARE_WITHOUT)  # of what a pool with evidence counts
PARAMETERS: Mapping[str, Any] = {
    "learning_rate": 0.05,
    "min_data_in_leaf": LEAF,
    "lambda_l2": 5.0,
    "lambdarank_truncation_level": 5,
    # the same every time
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbose": -1,
}
_POINTS = tuple(step / 50 for step in range(5, 46))
NEARLY_BEST = 0.99  # of the best F1, that of an operating point at least
_DIGITS = 6
_LEAST = 1e-6  # standard deviation that a number is divided by at least
# A claim may be about anything, a method or an aim too: no results role, and nothing that tells an
# abstract from a paragraph. More of any of these may only help.
FOR_CLAIMS = frozenset(
    (
        *("cosine", "match", "match_least", "match_least3", "found", "sentence_cosine"),
        *("sentence_match", "strength", "names", "words_here", "words"),
        *("lead", "lead_second", "words_lead"),
        *("telling", "telling_near", "telling_z", "telling_near_z", "telling_sentence"),
        *("telling_near_sentence", "telling_near_lead", "telling_sentence_lead"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionKind:
    """A kind of question that has a ranking of its own."""

    name: str  # for the log
    includes: Callable[[FeaturedPool], bool]
    # Of the features that a tree may look at, in (0, 1]: the fewer, the more trees differ.
    share: float
    n_ensembles: int = 3  # whose mean ranks, >= 1
    leaves: int = LEAVES
    # features to use, of which more may only help; None uses all
    only: Collection[str] | None = None

    def uses(self, name: str, without: Collection[str] = ()) -> bool:
        """Tell whether this kind uses a feature of `SINGLE_FEATURES` or `RANKING_FEATURES`."""
        feature, _, relative = name.partition(", ")
        if feature in without:
            return False
        return self.only is None or (feature in self.only and relative != RANK)

    def find_monotone(self, names: Sequence[str]) -> list[bool] | None:
        """Tell which of some features may only help; None if that goes for none of them."""
        return None if self.only is None else [self.uses(name) for name in names]


QUESTION = QuestionKind(
    name="question",
    includes=lambda row: not row.matched.is_claim and not row.pool.of_one_paper,
    share=0.1,
    leaves=31,
)
ARTICLE = QuestionKind(
    name="article",
    includes=lambda row: not row.matched.is_claim and row.pool.of_one_paper,
    share=0.2,
)
CLAIM = QuestionKind(
    name="claim", includes=lambda row: row.matched.is_claim, share=0.3, only=FOR_CLAIMS
)
ONE_CLAIM = replace(CLAIM, n_ensembles=1)
# of a passage alone; in an article most results are on another outcome, which says little elsewhere
ONE_QUESTION = replace(QUESTION, share=0.7, n_ensembles=1, leaves=LEAVES)
ONE_OF_ARTICLE = replace(ARTICLE, share=0.7, n_ensembles=1)


def fit_ranker(
    pools: Sequence[ContextPool],  # of all kinds
    kind: QuestionKind,
    *,
    merged: Sequence[ContextPool],  # some of them with more evidence
    altered: Sequence[ContextPool],  # some of them with fewer or other wrong passages
    bare: Sequence[ContextPool],  # without evidence: taken out, or the passages are of others
    seed: int,
    log: Log,
    without: Collection[str] = (),  # features to do without
) -> "FittedRanker | None":
    """Fit what ranks the passages of one kind of question; None if nothing teaches it."""
    if not any(kind.includes(one.row) and _teaches(one.row) for one in pools):
        return None
    whole = [one for one in (*pools, *merged) if kind.includes(one.row) and _teaches(one.row)]
    short, empty = ([one for one in some if kind.includes(one.row)] for some in (altered, bare))
    kept = [kind.uses(name, without) for name in RANKING_FEATURES]
    every = [*whole, *short, *empty]
    numbers = [_mask(one.ranking_features, kept) for one in every]
    rows = [one.row for one in every]
    n = len(whole)
    monotone = kind.find_monotone(RANKING_FEATURES)
    rank, classify = (
        partial_of(_fit, kind=kind, ranks=ranks, seed=seed, monotone=monotone)
        for ranks in (True, False)
    )
    order = rank(rows[:n], numbers[:n], log=_name_events(log, kind.name, "order"))
    absolute = classify(rows, numbers, log=_name_events(log, kind.name, "absolute"))
    orders = _fit_halves(rows[:n], lambda at: rank(*_pick(at, rows, numbers)))
    absolutes = _fit_halves(rows, lambda at: classify(*_pick(at, rows, numbers)))
    found = [
        (absolutes[row.half].predict(its), orders[row.half].predict(its))
        for row, its in zip(rows, numbers, strict=True)
    ]
    ranker = PassageRanker(
        order,
        absolute,
        _fit_platt(rows, [rank_value(*one) for one in found], log),
        fit_answerability(rows, found, log),
    )
    measured = [at for at, row in enumerate(rows) if at < n or not row.labels.any()]
    point = find_operating_point(
        [rows[at].pool.set for at in measured],
        [rows[at].labels for at in measured],
        [ranker.combine(*found[at]) for at in measured],
    )
    return FittedRanker(ranker, point)


class FittedRanker(NamedTuple):
    """A ranker, and the probability from which on keeping passages has the best F1."""

    ranker: PassageRanker
    operating_point: float


def find_operating_point(
    sets: Sequence[str], labels: Sequence[Any], scores: Sequence[Floats]
) -> float:
    """Return the probability from which on keeping has the best F1, the mean over the sets.

    F1 hardly changes around its best: of the probabilities that are nearly as good, the highest is
    returned, as who reads what is kept is misled by a wrong passage. What is kept of pools without
    evidence counts against it, as if `SHARE_WITHOUT` of the questions of each set had such a pool.
    Sets that have no others are left out.
    """
    there = [bool(its.any()) for its in labels]
    n_pools = Counter(zip(sets, there, strict=True))
    names = sorted({name for name, has in n_pools if has})

    def weigh(name: str, *, has: bool) -> float:
        return 1.0 if has else WITHOUT_WEIGHT * n_pools[name, True] / n_pools[name, False]

    def measure(threshold: float) -> float:
        right, named = dict.fromkeys(sets, 0.0), dict.fromkeys(sets, 0.0)
        for name, has, its, found in zip(sets, there, labels, scores, strict=True):
            kept = found >= threshold
            right[name] += float((its * kept).sum())
            named[name] += float(its.sum()) + weigh(name, has=has) * float(kept.sum())
        return float(np.mean([2 * right[name] / max(1.0, named[name]) for name in names]))

    measured = {point: measure(point) for point in _POINTS}
    least = NEARLY_BEST * max(measured.values())
    return max(point for point, found in measured.items() if found >= least)


def fit_single_passage(
    rows: Rows, kind: QuestionKind, *, seed: int, log: Log, without: Collection[str] = ()
) -> SinglePassageScorer | None:
    """Fit what judges a passage that has no other beside it; None if nothing teaches it."""
    chosen = [row for row in rows if kind.includes(row) and _teaches(row)]
    if not chosen:
        return None
    kept = [kind.uses(name, without) for name in SINGLE_FEATURES]
    numbers = [_mask(row.features.single_features(), kept) for row in chosen]
    monotone = kind.find_monotone(SINGLE_FEATURES)
    rank = partial_of(_fit, kind=kind, ranks=True, seed=seed, monotone=monotone)
    halves = _fit_halves(chosen, lambda at: rank(*_pick(at, chosen, numbers)))
    trees = rank(chosen, numbers, log=_name_events(log, kind.name, "alone"))
    values = [halves[row.half].predict(its) for row, its in zip(chosen, numbers, strict=True)]
    return SinglePassageScorer(trees, _fit_platt(chosen, values, log))


def fit_answerability(
    rows: Rows, found: Sequence[tuple[Floats, Floats]], log: Log
) -> AnswerabilityModel:
    """Fit it to pools with evidence and without, of which *found* are both predictions."""
    # Pools without evidence, found none or taken out, count `WITHOUT_WEIGHT` as much.
    inputs = np.stack([list_answerability_inputs(*one) for one in found])
    there = [bool(row.labels.any()) for row in rows]
    weights = [
        row.pool.weight * (1 if has else WITHOUT_WEIGHT)
        for row, has in zip(rows, there, strict=True)
    ]
    if len(set(there)) < 2:
        return AnswerabilityModel((0.0,) * inputs.shape[1], 20.0)  # nothing to tell apart
    model = AnswerabilityModel(*fit_scaled_logistic(inputs, there, weights))
    log({"step": "presence", "pools": len(inputs), "with evidence": sum(there)})
    return model


def fit_scaled_logistic(
    numbers: Floats,
    labels: Sequence[bool],
    weights: Sequence[float] | None = None,
    *,
    balanced: bool = False,
) -> tuple[tuple[float, ...], float]:
    """Return what each number, shape (n, k), weighs, and the intercept, in log odds."""
    # Divided by their deviations, so that the penalty (L2, of strength 1) is the same for all.
    spread = np.maximum(numbers.std(axis=0), _LEAST)
    found = fit_logistic(
        numbers / spread, labels, weights, C=1.0, class_weight="balanced" if balanced else None
    )
    rounded = np.round(found.weights / spread, _DIGITS).tolist()
    return tuple(rounded), round(found.intercept, _DIGITS)


def fit_trees(
    rows: Floats,  # shape (n_rows, n_features); NaN where a number is missing
    labels: NDArray[np.int64],  # 0 or 1, shape (n_rows,)
    *,
    rounds: int,  # number of trees
    seed: int,
    n_ensembles: int = 1,  # whose mean is returned, each of its own seed; >= 1
    share: float = 0.7,  # of the features that a tree may look at, in (0, 1]
    weights: Floats | None = None,  # what each row counts; all the same if None
    leaves: int = LEAVES,
    # Rows of each question: fit what ranks them (LambdaMART, Burges 2010); None: log odds of 1.
    sizes: Sequence[int] | None = None,
    monotone: Sequence[bool] | None = None,  # which features may only raise what is predicted
    log: Log = log_nothing,
) -> Trees:
    """Fit an ensemble of boosted trees, or several and take their mean."""
    lightgbm = import_package("lightgbm")
    objective = "binary" if sizes is None else "lambdarank"
    given = {**PARAMETERS, "objective": objective, "feature_fraction": share, "num_leaves": leaves}
    if monotone is not None:
        given["monotone_constraints"] = [int(one) for one in monotone]
    ensembles = []
    for number in range(n_ensembles):
        data = lightgbm.Dataset(rows, labels, weight=weights, group=sizes)
        model = lightgbm.train({**given, "seed": n_ensembles * seed + number}, data, rounds)
        log({"step": "trees", "objective": objective, "rows": len(rows), "rounds": rounds})
        ensembles.append(convert_trees(model.dump_model(), rounds))
    return average_trees(ensembles)


def convert_trees(model: Mapping[str, Any], n_trees: int) -> Trees:
    """Return the trees of a LightGBM model, as it dumps itself."""
    # LightGBM leaves out trees that find nothing to split; a leaf of 0 stands for each.
    roots: list[int] = []
    nodes: list[tuple[int, float, bool, int, int, float]] = []
    deepest = 0

    def add(node: Mapping[str, Any], depth: int) -> int:
        nonlocal deepest
        deepest = max(deepest, depth)
        place = len(nodes)
        if "split_feature" not in node:
            nodes.append((0, 0.0, False, place, place, round(float(node["leaf_value"]), _DIGITS)))
            return place
        nodes.append((0, 0.0, False, 0, 0, 0.0))
        left = add(node["left_child"], depth + 1)
        right = add(node["right_child"], depth + 1)
        missing = bool(node["default_left"]) if node["missing_type"] == "NaN" else None
        limit = float(node["threshold"])
        # without missing numbers at training, LightGBM takes one for 0
        to_left = missing if missing is not None else limit >= 0
        nodes[place] = (int(node["split_feature"]), limit, to_left, left, right, 0.0)
        return place

    for tree in model["tree_info"]:
        roots.append(add(tree["tree_structure"], 0))
    if len(roots) < n_trees:
        roots += [add({"leaf_value": 0.0}, 0)] * (n_trees - len(roots))
    feature, limit, missing_left, left, right, value = zip(*nodes, strict=True)
    return Trees(
        roots=np.array(roots),
        feature=np.array(feature),
        limit=np.array(limit, np.float64),
        missing_left=np.array(missing_left),
        left=np.array(left),
        right=np.array(right),
        value=np.array(value, np.float64),
        depth=deepest,
        start=0.0,
    )


def _mask(numbers: Floats, kept: Sequence[bool]) -> Floats:
    """Return numbers of which some say nothing."""
    return np.asarray(np.where(np.array(kept)[None], numbers, 0.0), np.float64)


def _teaches(row: FeaturedPool) -> bool:
    return bool(0 < row.labels.sum() < len(row.labels))


def _fit(
    rows: Rows,
    numbers: Sequence[Floats],
    *,
    kind: QuestionKind,
    ranks: bool,  # the rows of each question; or gives the log odds of each
    seed: int,
    monotone: Sequence[bool] | None,
    log: Log = log_nothing,
) -> Trees:
    return fit_trees(
        np.concatenate(numbers),
        np.concatenate([row.labels for row in rows]),
        weights=np.concatenate([row.weights for row in rows]),
        sizes=[len(row.labels) for row in rows] if ranks else None,
        rounds=RANK_ROUNDS,
        leaves=kind.leaves,
        seed=seed,
        n_ensembles=kind.n_ensembles if ranks else min(2, kind.n_ensembles),
        share=kind.share if ranks else max(_LEAST_SHARE, kind.share),
        monotone=monotone,
        log=log,
    )


def _pick(places: Sequence[int], *columns: Sequence[Any]) -> list[list[Any]]:
    """Return the items of each column at some places."""
    return [[column[place] for place in places] for column in columns]


def _fit_halves(rows: Rows, fit: Callable[[Sequence[int]], Trees]) -> dict[int, Trees]:
    """Return what was fitted without each half of the pools, or to all if there is no other."""
    every = range(len(rows))
    return {
        half: fit([place for place in every if rows[place].half != half] or every)
        for half in (0, 1)
    }


def _fit_platt(rows: Rows, values: Sequence[Floats], log: Log) -> PlattScaling:
    """Fit probabilities to values that models of the other half gave; to pools with evidence."""
    taught = [(row, its) for row, its in zip(rows, values, strict=True) if row.labels.any()]
    found = fit_logistic(
        np.concatenate([its for _, its in taught])[:, None],
        np.concatenate([row.labels for row, _ in taught]),
        np.concatenate([row.weights for row, _ in taught]),
        C=100.0,
    )
    log({"step": "scale", "weights": [round(float(x), 3) for x in found.weights]})
    weights = tuple(np.round(found.weights, _DIGITS).tolist())
    return PlattScaling(weights, round(found.intercept, _DIGITS))


def _name_events(log: Log, kind: str, what: str) -> Log:
    def log_named(event: Event) -> None:
        log({**event, "kind": kind, "ranks": what})

    return log_named
