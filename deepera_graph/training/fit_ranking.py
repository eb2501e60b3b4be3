"""Fits what ranks the passages of a question, and turns ranks into probabilities."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judges.trained.features import PassageFeatures
from deepera_graph.judges.trained.pool_features import (
    CONTEXT_FEATURES,
    RANK,
    RANKING_FEATURES,
    SINGLE_FEATURES,
)
from deepera_graph.judges.trained.scorer import (
    AnswerabilityModel,
    PassageRanker,
    PlattScaling,
    SinglePassageScorer,
    list_answerability_inputs,
    list_platt_inputs,
)
from deepera_graph.judges.trained.trees import Trees, average_trees
from deepera_graph.training.curves import BY_TREES, by_trees
from deepera_graph.training.features import ContextPool, FeaturedPool
from deepera_graph.training.log import Log, log_nothing, needed

Floats = NDArray[np.float64]


LEAF = 40  # fewest passages, or pairs of them, in a leaf
_CHOSEN: Mapping[str, Any] = {
    "learning_rate": 0.05,
    "num_leaves": 15,
    "min_data_in_leaf": LEAF,
    "lambda_l2": 5.0,
    "lambdarank_truncation_level": 5,
}
_SAME_EVERY_TIME: Mapping[str, Any] = {
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbose": -1,
}


def fit_trees(
    rows: Floats,
    labels: NDArray[np.int64],
    *,
    rounds: int,
    seed: int,
    n_ensembles: int = 1,
    share: float = 0.7,
    weights: Floats | None = None,
    sizes: Sequence[int] | None = None,
    rising: Sequence[bool] | None = None,
    log: Log = log_nothing,
) -> Trees:
    """Grow an ensemble, or several and take their mean.

    Args:
        rows: Shape (n_rows, n_features); NaN where a number is missing.
        labels: 0 or 1, shape (n_rows,).
        rounds: Number of trees.
        seed: The same rows and seed give the same trees.
        n_ensembles: Whose mean is returned, each of a seed of its own; >= 1.
        share: Of the features, those that a tree may look at, in (0, 1].
        weights: What each row counts; all count the same if None.
        sizes: Rows of each question, one after the other: grow what ranks them (LambdaMART, Burges
            2010). None: grow what gives the log odds of 1.
        rising: Which features may only raise what is predicted, shape (n_features,); none if None.
        log: Told at the end of each.
    """
    lightgbm = needed("lightgbm")
    objective = "binary" if sizes is None else "lambdarank"
    given = {**_CHOSEN, **_SAME_EVERY_TIME, "objective": objective, "feature_fraction": share}
    if rising is not None:
        given["monotone_constraints"] = [int(one) for one in rising]
    grown = []
    for number in range(n_ensembles):
        data = lightgbm.Dataset(rows, labels, weight=weights, group=sizes)
        model = lightgbm.train({**given, "seed": n_ensembles * seed + number}, data, rounds)
        log({"step": "trees", "objective": objective, "rows": len(rows), "rounds": rounds})
        grown.append(convert_trees(model.dump_model(), rounds))
    return average_trees(grown)


def convert_trees(model: Mapping[str, Any], n_trees: int) -> Trees:
    """Return the trees of a LightGBM model, as it dumps itself.

    It leaves out those that find nothing to split; a leaf of 0 stands for each, so that ensembles
    of as many rounds have as many trees.
    """
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


_LEAST = 1e-6  # standard deviation that a number is divided by at least


def fit_scaled_logistic(
    numbers: Floats,
    labels: Sequence[bool],
    weights: Sequence[float] | None = None,
    *,
    balanced: bool = False,
) -> tuple[tuple[float, ...], float]:
    """Return what each number weighs, and what is added to their sum; in log odds.

    Each number is divided by its standard deviation for the fit, so that the penalty on large
    weights (L2, of strength 1) is the same for all.

    Args:
        numbers: Shape (n, k).
        labels: Shape (n,), of both kinds.
        weights: What each row counts; all count the same if None.
        balanced: Whether both labels count the same in all.
    """
    spread = np.maximum(numbers.std(axis=0), _LEAST)
    model = needed("sklearn.linear_model").LogisticRegression(
        C=1.0, max_iter=2000, class_weight="balanced" if balanced else None
    )
    model.fit(numbers / spread, labels, weights)
    found = np.round(model.coef_[0] / spread, _DIGITS).tolist()
    return tuple(found), round(float(model.intercept_[0]), _DIGITS)


SHARE_WITHOUT = 0.1  # of questions for which nothing that was found is evidence; an assumption
WITHOUT_WEIGHT = SHARE_WITHOUT / (1 - SHARE_WITHOUT)  # of what a pool with evidence counts


def fit_answerability(
    rows: Sequence[FeaturedPool],
    numbers: Sequence[Floats],
    around: Sequence[Floats],
    *,
    halves: Mapping[int, Trees],
    log: Log,
) -> AnswerabilityModel:
    """Fit it to pools with evidence, and to pools without.

    Args:
        rows: Pools, some of which have evidence. In others the first stage found none, or it was
            taken out; both count as questions without an answer, `WITHOUT_WEIGHT` as much. (Of the
            first two passages a third of the pools has none, which is counted down so, too: at
            full weight no score of two passages reaches 0.8, though those near it are evidence.)
        numbers: What each is ranked by.
        around: Surroundings of each.
        halves: What ranks the pools of each half, fitted on the other.
        log: Told of the outcome.
    """
    seen, there, weights = [], [], []
    for row, its, near in zip(rows, numbers, around, strict=True):
        seen.append(list_answerability_inputs(halves[row.half].predict(its), row.company, near))
        has = bool(row.looked.labels.any())
        there.append(has)
        weights.append(row.pool.weight * (1 if has else WITHOUT_WEIGHT))
    if len(set(there)) < 2:
        return AnswerabilityModel(
            (0.0,) * len(seen[0]), 20.0
        )  # nothing to tell apart: always there
    found = AnswerabilityModel(*fit_scaled_logistic(np.stack(seen), there, weights))
    log({"step": "presence", "pools": len(seen), "with evidence": int(sum(there))})
    return found


# A claim may be about anything, a method or an aim too: no results role, and nothing that tells an
# abstract from a paragraph. More of any of these may only help.
FOR_CLAIMS = frozenset(
    (
        *("cosine", "match", "match_least", "match_least3", "found", "sentence_cosine"),
        *("sentence_match", "strength", "names", "words_here", "words"),
        *("lead", "lead_second", "words_lead"),
    )
)
FEATURE_GROUPS: Mapping[str, tuple[str, ...]] = {
    "cosine of passage": ("cosine", "near_cosine", "lead", "lead_second"),
    "cosines of sentences": (
        *("sentence_cosine", "sentence_cosine_mean", "first_cosine", "last_cosine"),
        "result_cosine",
    ),
    "late interaction": (
        *("match", "match_least", "match_least3", "found", "sentence_match"),
        *("sentence_match_mean", "result_match"),
    ),
    "results role": (
        *(name for name in PassageFeatures._fields if name.startswith("role")),
        *("result_cosine", "result_match", "pool_role", "by_aims_cosine", "by_aims_words"),
    ),
    "rules": (
        *("grounding", "grounding_spread", "strength", "grounded_coverage", "grounded_strength"),
        *("opening", "closing", "peak", "names"),
    ),
    "words": tuple(name for name in (*CONTEXT_FEATURES, "words_here") if "words" in name),
    "studies": (
        *("topic", "support", "support_any", "link", "linked_topic", "topic_lead"),
        *("supported_lead", "link_two", "support_aims", "pool_topic"),
    ),
    "surroundings": CONTEXT_FEATURES,
}

RANK_ROUNDS = 350
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionKind:
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
    takes: Callable[[FeaturedPool], bool]
    share: float
    n_ensembles: int = 3
    only: Collection[str] | None = None

    def sees(self, name: str, without: Collection[str] = ()) -> bool:
        """Tell whether this kind uses a feature of `SINGLE_FEATURES` or `RANKING_FEATURES`."""
        signal, _, standing = name.partition(", ")
        if signal in without:
            return False
        return self.only is None or (signal in self.only and standing != RANK)

    def rising(self, names: Sequence[str]) -> list[bool] | None:
        """Tell which of some numbers may only help; None if that goes for none of them."""
        return None if self.only is None else [self.sees(name) for name in names]


QUESTION = QuestionKind(
    name="question",
    takes=lambda row: not row.looked.is_claim and not row.pool.of_one_paper,
    share=0.1,
)
ARTICLE = QuestionKind(
    name="article", takes=lambda row: not row.looked.is_claim and row.pool.of_one_paper, share=0.2
)
CLAIM = QuestionKind(
    name="claim", takes=lambda row: row.looked.is_claim, share=0.3, only=FOR_CLAIMS
)
ONE_CLAIM = replace(CLAIM, n_ensembles=1)
# of a passage alone; in an article most results are on another outcome, which says little elsewhere
ONE_QUESTION = replace(QUESTION, share=0.7, n_ensembles=1)
ONE_OF_ARTICLE = replace(ARTICLE, share=0.7, n_ensembles=1)


def fit_ranker(
    pools: Sequence[ContextPool],
    kind: QuestionKind,
    *,
    joined: Sequence[ContextPool],
    few: Sequence[ContextPool],
    bare: Sequence[ContextPool],
    seed: int,
    log: Log,
    without: Collection[str] = (),
    tells_course: bool = False,
) -> PassageRanker | None:
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
    kept = [kind.sees(name, without) for name in RANKING_FEATURES]
    numbers, shorts, empties = (
        [_mask(one.numbers, kept) for one in some] for some in (chosen, short, empty)
    )
    rank = partial(_rank, kind=kind, seed=seed, rising=kind.rising(RANKING_FEATURES))
    halves = _fit_halves(rows, numbers, rank)
    if tells_course:
        n = len(own)
        points = by_trees(rows[:n], numbers[:n], halves, n_ensembles=kind.n_ensembles, seed=seed)
        log({"step": BY_TREES, "kind": kind.name, "points": [one.to_dict() for one in points]})
    trees = rank(rows, numbers, log=_name_events(log, kind.name, "together"))
    scaled = [*rows, *(one.row for one in short)]
    return PassageRanker(
        trees,
        _fit_platt(scaled, [*numbers, *shorts], halves, log, alone=False),
        fit_answerability(
            [*scaled, *(one.row for one in empty)],
            [*numbers, *shorts, *empties],
            [one.around for one in (*chosen, *short, *empty)],
            halves=halves,
            log=log,
        ),
    )


def fit_single_passage(
    rows: Sequence[FeaturedPool],
    kind: QuestionKind,
    *,
    seed: int,
    log: Log,
    without: Collection[str] = (),
) -> SinglePassageScorer | None:
    """Fit what judges a passage that has no other beside it; None if nothing teaches it.

    For the arguments see `fit_ranker`.
    """
    chosen = [row for row in rows if kind.takes(row) and _teaches(row)]
    if not chosen:
        return None
    kept = [kind.sees(name, without) for name in SINGLE_FEATURES]
    numbers = [_mask(row.company.alone(), kept) for row in chosen]
    rank = partial(_rank, kind=kind, seed=seed, rising=kind.rising(SINGLE_FEATURES))
    halves = _fit_halves(chosen, numbers, rank)
    trees = rank(chosen, numbers, log=_name_events(log, kind.name, "alone"))
    return SinglePassageScorer(trees, _fit_platt(chosen, numbers, halves, log, alone=True))


def _mask(numbers: Floats, kept: Sequence[bool]) -> Floats:
    """Return numbers of which some say nothing."""
    return np.asarray(np.where(np.array(kept)[None], numbers, 0.0), np.float64)


def _teaches(row: FeaturedPool) -> bool:
    return bool(0 < row.looked.labels.sum() < len(row.looked.labels))


def _rank(
    rows: Sequence[FeaturedPool],
    numbers: Sequence[Floats],
    *,
    kind: QuestionKind,
    seed: int,
    rising: Sequence[bool] | None,
    log: Log = log_nothing,
) -> Trees:
    return fit_trees(
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


def _fit_halves(
    rows: Sequence[FeaturedPool], numbers: Sequence[Floats], rank: Callable[..., Trees]
) -> dict[int, Trees]:
    """Return what ranks the pools of each half, fitted on the other, or on all if it is empty."""
    found = {}
    for half in (0, 1):
        other = [place for place, row in enumerate(rows) if row.half != half] or range(len(rows))
        found[half] = rank([rows[p] for p in other], [numbers[p] for p in other])
    return found


def _fit_platt(
    rows: Sequence[FeaturedPool],
    numbers: Sequence[Floats],
    halves: Mapping[int, Trees],
    log: Log,
    *,
    alone: bool,
) -> PlattScaling:
    """Fit probabilities to ranks that models of the other half gave; to pools with evidence."""
    taught = [(row, its) for row, its in zip(rows, numbers, strict=True) if row.looked.labels.any()]
    ranks = [halves[row.half].predict(its) for row, its in taught]
    found = [_list_single_inputs(one) if alone else list_platt_inputs(one) for one in ranks]
    labels = np.concatenate([row.looked.labels for row, _ in taught])
    weights = np.concatenate(
        [np.full(len(row.looked.labels), row.pool.weight) for row, _ in taught]
    )
    model = needed("sklearn.linear_model").LogisticRegression(C=100.0, max_iter=2000)
    model.fit(np.concatenate(found), labels, weights)
    log({"step": "scale", "weights": [round(float(x), 3) for x in model.coef_[0]]})
    return PlattScaling(
        tuple(np.round(model.coef_[0], _DIGITS).tolist()),
        round(float(model.intercept_[0]), _DIGITS),
    )


def _list_single_inputs(ranks: Floats) -> Floats:
    return np.column_stack([ranks, np.zeros((len(ranks), PlattScaling.N_INPUTS - 1))])


def _name_events(log: Log, kind: str, what: str) -> Log:
    def told(event: Mapping[str, Any]) -> None:
        log({**event, "kind": kind, "ranks": what})

    return told
