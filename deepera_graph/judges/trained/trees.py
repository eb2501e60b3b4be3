"""Ensembles of decision trees: what they say of many rows at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Mask = NDArray[np.bool_]
Bits = NDArray[np.unsignedinteger[Any]]

MAX_LEAVES = 64  # of a tree: each is a bit
_ROWS_AT_ONCE = 64  # so that what is made of them stays in the processor's cache
_TYPES: tuple[tuple[str, type], ...] = (
    *((name, np.int64) for name in ("roots", "feature", "left", "right")),
    *((name, np.float64) for name in ("limit", "value")),
    ("missing_left", np.bool_),
)


@dataclass(frozen=True)
class Trees:
    """An ensemble of decision trees, of up to 64 leaves each; all nodes lie in one row."""

    roots: Places  # node each tree begins with, shape (n_trees,)
    # number that a node asks for, shape (n_nodes,); a leaf leads to itself, whatever it asks for
    feature: Places
    limit: Floats  # at most this goes left
    missing_left: Mask  # whether a missing number goes left
    left: Places  # node on the left
    right: Places  # node on the right
    value: Floats  # what a leaf adds, in log odds
    depth: int  # of the deepest tree
    start: float  # log odds before the first tree

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the ensemble that `to_dict` gave."""
        arrays: dict[str, Any] = {name: np.array(plain[name], type) for name, type in _TYPES}
        return cls(**arrays, depth=int(plain["depth"]), start=float(plain["start"]))

    def to_dict(self) -> dict[str, Any]:
        """Return the ensemble as lists and numbers."""
        lists = {name: getattr(self, name).tolist() for name, _ in _TYPES}
        missing = self.missing_left.astype(int).tolist()
        return {**lists, "missing_left": missing, "depth": self.depth, "start": self.start}

    def predict(self, rows: Floats) -> Floats:
        """Return the log odds of each row, of shape (n_rows, n_features); NaN where missing."""
        parts = [
            self._tests.sum_leaves(rows[start : start + _ROWS_AT_ONCE])
            for start in range(0, len(rows), _ROWS_AT_ONCE)
        ]
        return np.asarray(self.start + np.concatenate([*parts, np.zeros(0)]), np.float64)

    @cached_property
    def _tests(self) -> "_Tests":
        """What is made of the nodes at first use; a `ValueError` for a tree of too many leaves."""
        is_inner = self.left != np.arange(len(self.left))
        levels = [self.roots]
        for _ in range(self.depth):
            above = levels[-1][is_inner[levels[-1]]]
            levels.append(np.concatenate([self.left[above], self.right[above]]))
        tree, first, n_leaves = self._number_leaves([one[is_inner[one]] for one in levels])
        most = int(n_leaves[self.roots].max())
        if most > MAX_LEAVES:
            raise ValueError(f"a tree has {most} leaves, more than {MAX_LEAVES}")
        nodes = np.concatenate(levels)
        leaves, inner = nodes[~is_inner[nodes]], nodes[is_inner[nodes]]
        values = np.zeros((len(self.roots), most))
        values[tree[leaves], first[leaves]] = self.value[leaves]
        n_on_left, n_before = (one.astype(np.uint64) for one in (n_leaves[self.left], first))
        struck = ((_ONE << n_on_left[inner]) - _ONE) << n_before[inner]
        place, n_places = _place_tests(tree[inner], len(self.roots))

        def lay_out(of_tests: NDArray[Any], kind: Any) -> NDArray[Any]:
            table = np.zeros(n_places, kind)
            table[place] = of_tests
            return table

        limit = lay_out(self.limit[inner], np.float64)[:, None]
        return _Tests(
            feature=lay_out(self.feature[inner], np.int64),
            limit=limit,
            limit_of_many=np.repeat(limit, _ROWS_AT_ONCE, axis=1),
            missing_left=lay_out(self.missing_left[inner], np.bool_)[:, None],
            stay=~lay_out(struck, np.min_scalar_type((1 << most) - 1))[:, None],
            values=values,
        )

    def _number_leaves(self, levels: Sequence[Places]) -> tuple[Places, Places, Places]:
        """Return of each node its tree, its first leaf counted from the left, and how many it has.

        *levels* are the inner nodes, from the roots downwards.
        """
        tree, first, n_leaves = (np.zeros(len(self.left), np.int64) for _ in range(3))
        tree[self.roots] = np.arange(len(self.roots))
        n_leaves += 1
        for inner in reversed(levels):
            n_leaves[inner] = n_leaves[self.left[inner]] + n_leaves[self.right[inner]]
        for inner in levels:
            left, right = self.left[inner], self.right[inner]
            tree[left] = tree[right] = tree[inner]
            first[left], first[right] = first[inner], first[inner] + n_leaves[left]
        return tree, first, n_leaves


@dataclass(frozen=True, slots=True)
class _Tests:
    """All tests of all trees, each made of every row, whether the row comes by or not.

    The leaves of a tree are numbered from the left, a bit each. A test that fails strikes out those
    on its left; of the leaves that stay after all tests, the first is where the row ends. There is
    one test of each tree after the other, then the next of each; a tree with fewer has some that
    strike out nothing.

    Source:
        Lucchese et al. (2015), QuickScorer, section 3.
    """

    feature: Places  # number that is asked for, shape (n_tests,)
    limit: Floats  # at most this passes, shape (n_tests, 1)
    limit_of_many: Floats  # the same for each of the rows read at once, as broadcasting is slow
    missing_left: Mask  # whether a missing number passes, shape (n_tests, 1)
    stay: Bits  # leaves that stay if it fails, shape (n_tests, 1)
    values: Floats  # what each leaf adds, shape (n_trees, n_leaves)

    def sum_leaves(self, rows: Floats) -> Floats:
        """Return the sum of the leaves that each row ends in."""
        n_trees, n_leaves = self.values.shape
        cells = np.ascontiguousarray(rows.T)
        limit = self.limit_of_many if len(rows) == _ROWS_AT_ONCE else self.limit
        passes = cells.take(self.feature, axis=0) <= limit
        missing = np.isnan(cells)
        if missing.any():
            passes |= missing.take(self.feature, axis=0) & self.missing_left
        bits = self.stay.dtype.type
        stay = self.stay | (passes * ~bits(0))
        left = np.bitwise_and.reduce(stay.reshape(-1, n_trees, len(rows)), axis=0)
        first = np.bitwise_count((left & -left) - bits(1))  # zeros below the lowest bit
        ends = first.T + np.arange(n_trees) * n_leaves
        return np.asarray(self.values.take(ends).sum(axis=1), np.float64)


_ONE = np.uint64(1)


def _place_tests(tree: Places, n_trees: int) -> tuple[Places, int]:
    """Return where each test of a tree goes, and how many places there are."""
    order = np.argsort(tree, kind="stable")
    n_tests = np.bincount(tree, minlength=n_trees)
    number = np.empty_like(tree)
    number[order] = np.arange(len(tree)) - np.repeat(np.cumsum(n_tests) - n_tests, n_tests)
    return number * n_trees + tree, max(1, int(n_tests.max())) * n_trees


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
