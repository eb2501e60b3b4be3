"""Grows boosted trees with LightGBM, and takes them out of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judge.train.log import Log, silent
from deepera_graph.judge.train.packages import needed
from deepera_graph.judge.trees import Trees, mean

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
_DIGITS = 6


def grow(
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
    log: Log = silent,
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
        grown.append(trees_of(model.dump_model(), rounds))
    return mean(grown)


def trees_of(model: Mapping[str, Any], n_trees: int) -> Trees:
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
