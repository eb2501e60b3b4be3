"""Measurements that fit judges: none sees a question it is measured on."""

import numpy as np
import pytest

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.training.ablate import Removal, ablate, ablation_table, removals
from deepera_graph.training.curves import learning_curve
from deepera_graph.training.evaluate import cross_validate
from deepera_graph.training.train import choose_recipe
from support.pools import pool

POOLS = [
    pool(f"q{n}", [0, 1, 0], group=f"g{n // 2}", kinds=["methods", "", "background"])
    for n in range(12)
]
LAMPS = [pool(f"lamp{n}", [0, 1], group=f"l{n}", set="lamps", weight=0) for n in range(4)]


class Notes:
    """Learns which kinds of passages are no evidence; remembers what it was given."""

    def __init__(self):
        self.given = []
        self.scored = []

    def __call__(self, pools, *, seed, log, without=()):
        self.given.append(pools)
        self.scored.append([])
        known = {one.kind for its in pools for one in its.passages if not one.label}
        known -= set(without)

        def scorer(one):
            self.scored[-1].append(one)
            return [0.2 if passage.kind in known else 0.9 for passage in one.passages]

        return scorer


def test_no_group_is_trained_on_and_measured_by_one_judge():
    notes = Notes()
    found = cross_validate([*POOLS, *LAMPS], notes, n_folds=3)
    assert [one.pool for one in found] == [*POOLS, *LAMPS]
    for train, test in zip(notes.given, notes.scored, strict=True):
        assert not {one.group for one in train} & {one.group for one in test}
        assert all(one.weight for one in train)


def test_variants_are_trained_on_and_never_measured():
    notes = Notes()
    found = cross_validate(POOLS, notes, n_folds=3, variants=("without evidence",))
    assert [one.pool for one in found] == POOLS
    assert all(len(train) == 16 for train in notes.given)


def test_what_a_removed_part_was_worth_is_its_loss():
    parts = {"setting": ("background",), "wording": ("nothing",)}
    found = ablate(POOLS, Notes(), signals=parts, n_folds=3)
    lost = {one: its["roofs"].mean for one, its in found.changes.items()}
    assert found.whole == {"roofs": 1.0}
    assert lost == {
        Removal("signals", "setting"): 0.0,  # what is wrong then comes after what is right
        Removal("signals", "wording"): 0.0,
        Removal("negatives", "methods"): -1.0,
        Removal("negatives", "background"): 0.0,
    }
    assert "| without negatives: methods | -100.0 (-100.0 to -100.0) |" in ablation_table(found)


def test_a_part_without_which_nothing_can_be_fitted_is_named():
    def picky(pools, *, seed, log, without=()):
        if without:
            raise InputError("nothing tells them apart")
        return lambda one: one.labels

    found = ablate(POOLS, picky, signals={"all": ("all",)}, kinds=("signals",), n_folds=2)
    assert found.impossible == {Removal("signals", "all"): "nothing tells them apart"}
    assert "all: cannot be fitted, as nothing tells them apart" in ablation_table(found)


def test_only_data_that_is_trained_on_can_be_removed():
    two = [*POOLS, pool("dew", [1, 0], set="dew")]
    found = [one.name for one in removals([*two, *LAMPS], {}, ("data",))]
    assert found == ["roofs", "dew"]
    assert list(removals([*POOLS, *LAMPS], {}, ("data",))) == []


def test_a_learning_curve_grows_by_questions_and_keeps_them():
    notes = Notes()
    points = learning_curve(POOLS, notes, shares=(0.5, 1.0), n_folds=2)
    assert [one.size for one in points] == [4, 6]
    assert points[1].metrics["roofs"]["HitRate@1"].mean == 1.0
    for small, large in zip(notes.given[:2], notes.given[2:], strict=True):
        assert {one.id for one in small} < {one.id for one in large}


def test_the_judge_that_ranks_held_out_questions_best_is_chosen():
    def ordered(*scores):
        return lambda one: np.array(scores)

    some = [pool("a", [0, 1]), pool("b", [0, 1])]
    found = choose_recipe({"wrong": ordered(0.9, 0.1), "right": ordered(0.1, 0.9)}, some)
    assert found == ("right", {"wrong": 0.5, "right": 1.0})
    assert choose_recipe({"one": ordered(0, 1), "same": ordered(0.1, 0.9)}, some)[0] == "one"
    with pytest.raises(SettingsError, match="no judge to choose from"):
        choose_recipe({}, some)
