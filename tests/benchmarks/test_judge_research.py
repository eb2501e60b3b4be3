"""Ablation, curves and labelled directions of `benchmarks/judge`."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph.errors import InputError
from deepera_graph.judges.trained.trees import average_trees
from deepera_graph.lab.training.fitting.ranking import convert_trees
from deepera_graph.lab.training.lessons.augment import classify_negative
from deepera_graph.lab.training.lessons.pools import OTHER_PAPER
from support.learner import LAMPS, POOLS, Notes
from support.pools import pool, write_lines

FOLDER = Path(__file__).parents[2] / "benchmarks" / "judge"
KINDS = st.sampled_from([OTHER_PAPER, "methods", "background", "BODY.RESULTS", "speculative"])
PASSAGES = st.lists(st.tuples(st.sampled_from([0, 0, 0, 1]), KINDS), min_size=1, max_size=25)
NOTHING = np.zeros((1, 1))


def load(name):
    """A script of the folder as a module."""
    spec = importlib.util.spec_from_file_location(f"judge_{name}", FOLDER / f"{name}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ablation, curves, labelled = map(load, ("ablate", "curves", "labelled"))


def leaves(*values):
    """Trees of a leaf each."""
    dump = {"tree_info": [{"tree_structure": {"leaf_value": one}} for one in values]}
    return convert_trees(dump, len(values))


def test_what_a_removed_part_was_worth_is_its_loss():
    parts = {"setting": ("background",), "wording": ("nothing",)}
    found = ablation.ablate(POOLS, Notes(), signals=parts, n_folds=3)
    lost = {one: its["roofs"].mean for one, its in found.changes.items()}
    assert found.whole == {"roofs": 1.0}
    assert lost == {
        ablation.Removal("signals", "setting"): 0.0,  # what is wrong then comes after what is right
        ablation.Removal("signals", "wording"): 0.0,
        ablation.Removal("negatives", "methods"): -1.0,
        ablation.Removal("negatives", "background"): 0.0,
    }
    assert "| without negatives: methods | -100.0 (-100.0 to -100.0) |" in ablation.format_ablation(
        found
    )


def test_a_part_without_which_nothing_can_be_fitted_is_named():
    def picky(pools, *, seed, log, without=()):
        if without:
            raise InputError("nothing tells them apart")
        return lambda one: one.labels

    found = ablation.ablate(POOLS, picky, signals={"all": ("all",)}, kinds=("signals",), n_folds=2)
    assert found.impossible == {ablation.Removal("signals", "all"): "nothing tells them apart"}
    assert "all: cannot be fitted, as nothing tells them apart" in ablation.format_ablation(found)


def test_only_data_that_is_trained_on_can_be_removed():
    two = [*POOLS, pool("dew", [1, 0], set="dew")]
    found = [one.name for one in ablation.list_removals([*two, *LAMPS], {}, ("data",))]
    assert found == ["roofs", "dew"]
    assert list(ablation.list_removals([*POOLS, *LAMPS], {}, ("data",))) == []


def test_a_learning_curve_grows_by_questions_and_keeps_them():
    notes = Notes()
    points = curves.trace_questions(POOLS, notes, shares=(0.5, 1.0), n_folds=2)
    assert [one.size for one in points] == [4, 6]
    assert points[1].metrics["roofs"]["HitRate@1"].mean == 1.0
    for small, large in zip(notes.given[:2], notes.given[2:], strict=True):
        assert {one.id for one in small} < {one.id for one in large}


def test_the_first_trees_of_a_mean_are_the_first_of_each_ensemble():
    both = average_trees([leaves(1, 2, 4), leaves(10, 20, 40)])
    parts = [
        curves.slice_trees(both, *some, 2).predict(NOTHING)[0] for some in ((0, 1), (1, 3), (0, 3))
    ]
    assert parts == pytest.approx([5.5, 33, 38.5])
    assert parts[2] == pytest.approx(both.predict(NOTHING)[0])


def test_an_abstract_teaches_its_direction_with_the_sentence_that_proves_and_without(tmp_path):
    library = {
        "subject": "rust",
        "abstracts": [
            {"id": "a", "title": "Rain", "text": "We tried. It rained. It was wet. Roofs rusted."},
            {"id": "b", "title": "Sun", "text": "We tried. Lamps glowed."},
        ],
        "questions": [
            {
                "question": "Does rain rust roofs?",
                "golden": {"a": "supports"},
                "proof": {"a": ["Roofs rusted."]},
            },
            {"question": "Does rain rust bells?", "golden": {}},
            {"question": "Do lamps glow?", "golden": {"b": "supports"}},
            {"question": "Which lamps glow?", "golden": {"b": "supports"}},  # has no direction
        ],
    }
    rows = list(labelled.label_libraries([write_lines(tmp_path / "shelf.jsonl", [library])]))
    assert [(one.set, one.question, one.quote) for one in rows] == [
        ("libraries", "Does rain rust roofs?", ""),
        ("libraries, quoted", "Does rain rust roofs?", "Roofs rusted."),
        ("libraries", "Do lamps glow?", ""),
    ]
    assert {one.labels for one in rows} == {frozenset(["supports"])}
    assert {one.group for one in rows} == {"library rust"}


@pytest.mark.full
@given(PASSAGES)
def test_a_type_of_negatives_can_be_removed_and_evidence_stays(drawn):
    whole = pool("roofs", [label for label, _ in drawn], kinds=[kind for _, kind in drawn])
    left = ablation.remove_negatives([whole], "methods")
    passages = [one for its in left for one in its.passages]
    assert passages == [
        one for one in whole.passages if one.label or classify_negative(one.kind) != "methods"
    ]
