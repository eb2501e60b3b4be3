"""Boosted trees in plain arrays, without the library that fitted them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Trees:
    """An ensemble of decision trees; all nodes of all trees lie in one row.

    Attributes:
        roots: Node each tree begins with, shape (n_trees,).
        feature: Number that a node asks for, shape (n_nodes,); a leaf leads to itself, whatever it
            asks for.
        limit: At most this goes left.
        missing_left: Whether a missing number goes left.
        left: Node on the left.
        right: Node on the right.
        value: What a leaf adds, in log odds.
        depth: Of the deepest tree.
        start: Log odds before the first tree.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    limit: Floats
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: Floats
    depth: int
    start: float

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the ensemble that `to_dict` gave."""
        return cls(
            roots=np.array(plain["roots"], np.int64),
            feature=np.array(plain["feature"], np.int64),
            limit=np.array(plain["limit"], np.float64),
            missing_left=np.array(plain["missing_left"], np.bool_),
            left=np.array(plain["left"], np.int64),
            right=np.array(plain["right"], np.int64),
            value=np.array(plain["value"], np.float64),
            depth=int(plain["depth"]),
            start=float(plain["start"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the ensemble as lists and numbers."""
        return {
            "roots": self.roots.tolist(),
            "feature": self.feature.tolist(),
            "limit": self.limit.tolist(),
            "missing_left": self.missing_left.astype(int).tolist(),
            "left": self.left.tolist(),
            "right": self.right.tolist(),
            "value": self.value.tolist(),
            "depth": self.depth,
            "start": self.start,
        }

    def predict(self, rows: Floats) -> Floats:
        """Return the log odds of each row, of shape (n_rows, n_features); NaN where missing."""
        cells = np.ascontiguousarray(rows).ravel()
        missing = np.isnan(cells)
        has_missing = bool(missing.any())
        below = np.column_stack([self.right, self.left]).ravel()
        is_inner = self.left != np.arange(len(self.left))
        leaves = np.tile(self.roots, len(rows))  # to be, of each row's trees one after the other
        path, node = np.arange(len(leaves)), leaves
        row = np.repeat(np.arange(len(rows)) * rows.shape[1], len(self.roots))
        for _ in range(self.depth):
            cell = self.feature.take(node) + row
            to_left = cells.take(cell) <= self.limit.take(node)
            if has_missing:
                to_left |= missing.take(cell) & self.missing_left.take(node)
            node = below.take(2 * node + to_left)
            leaves[path] = node
            goes_on = is_inner.take(node)
            path, node, row = path[goes_on], node[goes_on], row[goes_on]
        found = self.value[leaves.reshape(len(rows), len(self.roots))].sum(axis=1)
        return np.asarray(self.start + found, np.float64)


def average_trees(ensembles: Sequence[Trees]) -> Trees:
    """Return one ensemble that gives the mean of what several give; at least one."""
    sizes = np.cumsum([0, *(len(one.feature) for one in ensembles)])
    shifts = list(zip(ensembles, sizes, strict=False))
    return Trees(
        roots=np.concatenate([one.roots + shift for one, shift in shifts]),
        feature=np.concatenate([one.feature for one in ensembles]),
        limit=np.concatenate([one.limit for one in ensembles]),
        missing_left=np.concatenate([one.missing_left for one in ensembles]),
        left=np.concatenate([one.left + shift for one, shift in shifts]),
        right=np.concatenate([one.right + shift for one, shift in shifts]),
        value=np.concatenate([one.value for one in ensembles]) / len(ensembles),
        depth=max(one.depth for one in ensembles),
        start=sum(one.start for one in ensembles) / len(ensembles),
    )
