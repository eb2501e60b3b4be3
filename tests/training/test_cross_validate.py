"""Measurements that fit judges: none sees a question it is measured on."""

import numpy as np
import pytest

from deepera_graph.errors import SettingsError
from deepera_graph.lab.training.measure import cross_validate
from deepera_graph.lab.training.train import choose_recipe
from support.learner import LAMPS, POOLS, Notes
from support.pools import pool


def test_no_group_is_trained_on_and_measured_by_one_judge():
    notes = Notes()
    found = cross_validate([*POOLS, *LAMPS], notes, n_folds=3)
    assert [one.pool for one in found] == [*POOLS, *LAMPS]
    for train, test in zip(notes.given, notes.scored, strict=True):
        assert not {one.group for one in train} & {one.group for one in test}
        assert all(one.weight for one in train)


def test_the_judge_that_ranks_held_out_questions_best_is_chosen():
    def ordered(*scores):
        return lambda one: np.array(scores)

    some = [pool("a", [0, 1]), pool("b", [0, 1])]
    found = choose_recipe({"wrong": ordered(0.9, 0.1), "right": ordered(0.1, 0.9)}, some)
    assert found == ("right", {"wrong": 0.5, "right": 1.0})
    assert choose_recipe({"one": ordered(0, 1), "same": ordered(0.1, 0.9)}, some)[0] == "one"
    with pytest.raises(SettingsError, match="no judge is given to choose from"):
        choose_recipe({}, some)
