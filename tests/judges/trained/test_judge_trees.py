"""Boosted trees against trees worked out by hand."""

import json

import numpy as np
import pytest

from deepera_graph.judges.trained.trees import Trees, average_trees

NAN = float("nan")


def trees(*, missing_left=(False, True), start=0.5, scale=1.0):
    """Two trees: number 0 above 1 and then number 1 above 0; and a single leaf of 10."""
    return Trees(
        roots=np.array([0, 5]),
        feature=np.array([0, 0, 1, 0, 0, 0]),
        limit=np.array([1.0, 0, 0, 0, 0, 0]),
        missing_left=np.array([missing_left[0], False, missing_left[1], False, False, False]),
        left=np.array([1, 1, 3, 3, 4, 5]),
        right=np.array([2, 1, 4, 3, 4, 5]),
        value=np.array([0, 1.0, 0, 2.0, 4.0, 10.0]) * scale,
        depth=2,
        start=start,
    )


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ((0.0, 9.0), 1),
        ((1.0, 9.0), 1),  # a limit itself goes left
        ((np.nextafter(1.0, 2), 0.0), 2),
        ((2.0, 0.1), 4),
        ((float("inf"), float("-inf")), 2),
        ((NAN, 0.1), 4),  # the root sends what is missing right
        ((NAN, NAN), 2),  # and the node below it left
        ((0.0, NAN), 1),
    ],
)
def test_a_row_ends_in_the_leaf_that_a_hand_finds(row, expected):
    assert trees().predict(np.array([row])) == pytest.approx([0.5 + expected + 10])


def test_where_a_missing_number_goes_is_each_nodes_own():
    row = np.array([[NAN, NAN]])
    found = [
        float(trees(missing_left=way).predict(row)[0]) - 10.5
        for way in ((True, False), (False, True), (False, False))
    ]
    assert found == [1, 2, 4]


def test_rows_do_not_touch_each_other():
    rows = np.array([[0, 9], [2, 0], [2, 1], [NAN, NAN]], float)
    together = trees().predict(rows)
    assert [float(trees().predict(rows[i : i + 1])[0]) for i in range(4)] == together.tolist()
    assert trees().predict(rows[:0]).shape == (0,)
    many = np.tile(rows, (33, 1))
    assert trees().predict(many).tolist() == together.tolist() * 33


def test_trees_come_back_from_their_file_form():
    rows = np.array([[0, 9], [2, 0], [NAN, NAN]], float)
    again = Trees.from_dict(json.loads(json.dumps(trees().to_dict())))
    assert again.predict(rows).tolist() == trees().predict(rows).tolist()
    assert again.to_dict() == trees().to_dict()


def test_the_mean_of_ensembles_gives_the_mean_of_what_they_give():
    rows = np.array([[0, 9], [2, 0], [2, 1], [NAN, NAN]], float)
    parts = [
        trees(),
        trees(scale=-3.0, start=2.0, missing_left=(True, False)),
        trees(scale=0.1, start=-9.0),
    ]
    expected = np.mean([one.predict(rows) for one in parts], axis=0)
    assert average_trees(parts).predict(rows) == pytest.approx(expected)


def chain(n_leaves):
    """One tree that asks for number 0 again and again: above 0, above 1, and so on."""
    inner = np.arange(n_leaves - 1)
    leaves = np.arange(n_leaves - 1, 2 * n_leaves - 1)
    return Trees(
        roots=np.array([0]),
        feature=np.zeros(2 * n_leaves - 1, np.int64),
        limit=np.concatenate([inner + 0.0, np.zeros(n_leaves)]),
        missing_left=np.zeros(2 * n_leaves - 1, np.bool_),
        left=np.concatenate([leaves[:-1], leaves]),
        right=np.concatenate([inner[1:], leaves[-1:], leaves]),
        value=np.concatenate([np.zeros(n_leaves - 1), np.arange(n_leaves)]),
        depth=n_leaves - 1,
        start=0.0,
    )


@pytest.mark.parametrize("n_leaves", [2, 8, 9, 33, 64])
def test_every_leaf_of_a_lopsided_tree_is_found(n_leaves):
    rows = np.arange(n_leaves, dtype=float)[:, None] - 0.5
    assert chain(n_leaves).predict(rows).tolist() == list(range(n_leaves))


def test_a_tree_of_more_leaves_than_bits_is_refused():
    with pytest.raises(ValueError, match="a tree has 65 leaves, more than 64"):
        chain(65).predict(np.zeros((1, 1)))
