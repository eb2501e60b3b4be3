"""Stability over runs, and calibration drift."""

from random import Random as Dice

import numpy as np
import pytest

from bench.study_lakes import Judge, column, fixed, lab, lakes
from deepera_graph.lab.rankers.base import FirstStage, Random
from deepera_graph.lab.studies.rerank import robustness as drift
from deepera_graph.lab.studies.rerank import robustness as stability


def noisy(seed=1):
    dice = Dice(seed)
    return Judge(lambda question, place: dice.random(), name="noisy")


def test_a_ranker_that_never_changes_is_named():
    found = stability.study_stability(
        lab([FirstStage(), Judge(fixed(0.9, 0.1, 0.2, 0.3, 0.4))], [lakes(3)])
    )
    (grid,) = found.grids
    assert column(grid, "std of a score") == [0, 0]
    assert column(grid, "rank correlation") == [1, 1]
    assert column(grid, "change side of the threshold") == [None, 0]
    (finding,) = found.findings
    assert finding.startswith("first stage, judge: the same scores in all 3 runs")


def test_a_ranker_that_changes_is_measured():
    found = stability.study_stability(lab([noisy(), Random()], [lakes(20)], n_repeats=4))
    (grid,) = found.grids
    assert found.findings == ()
    assert column(grid, "runs") == [4, 4]
    assert all(0.2 < one < 0.4 for one in column(grid, "std of a score"))
    assert all(abs(one) < 0.4 for one in column(grid, "rank correlation"))
    assert all(one > 0.4 for one in column(grid, "other first passage"))
    assert column(grid, "change side of the threshold")[0] > 0.3


def test_every_run_judges_anew_and_is_kept(tmp_path):
    judge = Judge(fixed(0.9, 0.1, 0.2, 0.3, 0.4))
    for _ in range(2):
        stability.study_stability(lab([judge], [lakes(5)], n_sampled=2, keep=tmp_path))
    assert len(judge.asked) == 3 * 2


def test_a_ranker_without_a_fingerprint_is_asked_in_every_run_too():
    judge = noisy()
    judge.fingerprint = None
    (grid,) = stability.study_stability(lab([judge], [lakes(5)])).grids
    assert len(judge.asked) == 3 * 5
    assert column(grid, "scores that change") == [1]


def test_one_run_has_no_spread():
    found = stability.study_stability(lab([noisy()], [lakes(2)], n_repeats=1))
    assert found.findings == ("One run has no spread; ask for more.",)


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [([0.1, 0.2], [0.1, 0.2], 0), ([0.1, 0.2], [0.8, 0.9], 1), ([0, 1], [0, 0], 0.5)],
)
def test_the_distance_of_two_samples(first, second, apart):
    assert drift.ks_distance(np.array(first, float), np.array(second, float)) == apart


def test_subjects_are_compared_where_there_are_several():
    ponds = lakes(2, subject="ponds", name="ponds")
    found = drift.study_drift(lab([Judge(fixed(0.9, 0.85, 0.2, 0.3, 0.4))], [lakes(2), ponds]))
    quantiles, distances = found.grids
    assert column(quantiles, "subject") == ["limnology", "ponds"]
    assert column(quantiles, "pass") == [0.4, 0.4]
    assert column(quantiles, "golden that pass") == [1, 1]
    assert distances.rows == (("judge", "limnology", "ponds", 0.0, 0.0, 0.0),)


def test_data_sets_are_compared_where_there_is_one_subject():
    judge = Judge(lambda question, place: 0.9 if "lake 1" in question else 0.1)
    found = drift.study_drift(lab([judge], [lakes(1), lakes(2, name="more")]))
    assert found.grids[0].columns[1].name == "data set"
    assert found.grids[1].rows[0][3] == 0.5
    assert "data sets are compared" in found.findings[0]


def test_failed_passages_are_in_no_distribution():
    found = drift.study_drift(lab([Judge(fixed(-1, 0.9, 0.2, 0.3, 0.4))], [lakes(2)]))
    assert column(found.grids[0], "passages") == [8]
