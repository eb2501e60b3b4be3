"""Splits that keep what belongs together on one side."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph.calibration.statistics import find_groups
from deepera_graph.errors import SettingsError
from deepera_graph.lab.training.lessons.pools import hash_question
from deepera_graph.lab.training.measure import assign_folds, split_held_out
from support.pools import pool

pytestmark = pytest.mark.full

ITEMS = st.lists(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=3), min_size=1, max_size=12
)
POOLS = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from(["roofs", "lamps"])), min_size=12, max_size=30
).map(
    lambda drawn: [
        pool(f"q{place}", [1, 0], group=f"g{group}", set=name)
        for place, (group, name) in enumerate(drawn)
    ]
)


@given(ITEMS)
def test_items_share_a_group_exactly_if_keys_join_them(items):
    groups = find_groups(items)
    reached = [set(one) for one in items]
    for _ in items:
        reached = [set().union(*(two for two in reached if one & two)) for one in reached]
    for one, its in zip(groups, reached, strict=True):
        assert one == min(its)


@given(POOLS, st.integers(2, 4), st.integers(0, 3))
def test_no_group_is_in_two_folds_and_folds_are_even(pools, n_folds, seed):
    groups = {one.group for one in pools}
    if len(groups) < n_folds:
        with pytest.raises(SettingsError, match=f"{n_folds} folds need as many groups"):
            assign_folds(pools, n_folds=n_folds, seed=seed)
        return
    found = assign_folds(pools, n_folds=n_folds, seed=seed)
    fold_of = {}
    for one, fold in zip(pools, found, strict=True):
        assert fold_of.setdefault(one.group, fold) == fold
    sizes = [list(fold_of.values()).count(fold) for fold in range(n_folds)]
    assert max(sizes) - min(sizes) <= 1
    backwards = assign_folds(pools[::-1], n_folds=n_folds, seed=seed)
    assert backwards[::-1] == found


@given(POOLS, st.floats(0.01, 0.99), st.integers(0, 3))
def test_no_group_is_both_trained_on_and_held_out(pools, share, seed):
    groups = {one.group for one in pools}
    if len(groups) < 2:
        return
    train, out = split_held_out(pools, share, seed=seed)
    assert train
    assert out
    assert not {one.group for one in train} & {one.group for one in out}
    assert sorted(one.id for one in train + out) == sorted(one.id for one in pools)


@pytest.mark.parametrize("share", [0, 1, -0.1, float("nan")])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(SettingsError, match="must be in"):
        split_held_out([pool("a", [1]), pool("b", [1])], share)


def test_a_question_is_the_same_whatever_its_case_and_white_space():
    assert hash_question("Do roofs  turn\ngreen?") == hash_question("do roofs turn GREEN?")
    assert hash_question("Do roofs turn green?") != hash_question("Do roofs turn black?")
