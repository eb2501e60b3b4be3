"""How far grades and labels agree: published figures, libraries, intervals, several raters."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from deepera_graph.lab.quest.audit.agreement import (
    compare_raters,
    count_confusion,
    estimate_share,
    find_majority,
    fleiss_kappa,
    measure_agreement,
    measure_precision,
    resample_rows,
    weigh_by_build,
)
from support.quest_build import PUBLISHED

MATRIX = np.array(PUBLISHED)


@pytest.fixture(scope="module")
def measured():
    return measure_agreement(MATRIX, n_resamples=2000)


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        ("Pearson", 0.86686),
        ("Spearman", 0.86669),
        ("exact", 0.84222),
        ("unweighted kappa", 0.76333),
        ("linear kappa", 0.81469),
        ("quadratic kappa", 0.86622),
    ],
)
def test_the_published_audit_is_measured_to_five_digits(measured, measure, value):
    assert round(measured[measure].mean, 5) == value
    assert measured[measure].low < value < measured[measure].high


def test_the_published_precisions_have_wilsons_intervals():
    strict, relaxed = measure_precision(MATRIX)
    assert (round(strict.mean, 5), round(relaxed.mean, 5)) == (0.86, 0.98667)
    assert strict.low < 0.86 < strict.high < relaxed.low


@pytest.mark.parametrize(
    ("times", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611)],
)
def test_an_interval_of_a_share_is_that_of_newcombes_table(times, n, low, high):
    found = estimate_share(times, n)  # Newcombe (1998), table I, method 3
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)
    assert estimate_share(150, 150).low < 0.98  # and not 1, however often it held


def test_resampled_measures_are_those_of_the_libraries():
    from deepera_graph.lab.quest.audit.agreement import _measure_many

    drawn = resample_rows(MATRIX, n_resamples=5, seed=3)
    assert (drawn.sum(axis=2) == 150).all()  # each grade keeps its number of pairs
    found = _measure_many(drawn)
    for place, matrix in enumerate(drawn):
        rows, columns = (np.repeat(one.ravel(), matrix.ravel()) for one in np.indices((3, 3)))
        assert found["Pearson"][place] == pytest.approx(stats.pearsonr(rows, columns)[0])
        assert found["Spearman"][place] == pytest.approx(stats.spearmanr(rows, columns)[0])
        for weights in (None, "linear", "quadratic"):
            kappa = cohen_kappa_score(rows, columns, weights=weights)
            assert found[f"{weights or 'unweighted'} kappa"][place] == pytest.approx(kappa)


def test_the_same_seed_gives_the_same_intervals(measured):
    assert measure_agreement(MATRIX, n_resamples=2000) == measured
    assert measure_agreement(MATRIX, n_resamples=2000, seed=1) != measured


@pytest.mark.parametrize("pairs", [[], [(1, 1)] * 5, [(0, 2), (1, 2), (2, 2)]])
def test_what_is_not_defined_is_not_a_number(pairs):
    found = measure_agreement(count_confusion(pairs), n_resamples=10)
    assert np.isnan(found["Pearson"].mean)
    assert np.isnan(found["Spearman"].mean)
    assert np.isnan(found["quadratic kappa"].mean) == (len(set(pairs)) < 2)


def test_a_grade_that_is_none_is_refused():
    with pytest.raises(ValueError, match="must be 0, 1 or 2, got 3 and 1"):
        count_confusion([(3, 1)])


@pytest.mark.parametrize(
    ("labels", "majority"),
    [
        ((2,), 2),
        ((0, 2), None),
        ((0, 1, 2), None),  # not 1, which is their average
        ((0, 2, 2), 2),
        ((0, 0, 2, 2), None),
        ((0, 1, 2, 2), None),  # half is not more than half
        ((0, 1, 2, 2, 2), 2),
        ((), None),
    ],
)
def test_a_majority_is_more_than_half_and_never_an_average(labels, majority):
    assert find_majority(labels) == majority


def test_figures_of_the_build_weigh_each_grade_by_its_share():
    # by hand: 9000 x 133/150 + 700 x 117/150 + 300 x 129/150 of 10 000
    found = weigh_by_build(MATRIX, (9000, 700, 300), n_resamples=500)
    assert found["exact"].mean == pytest.approx((7980 + 546 + 258) / 10_000)
    strict = 9000 / 150 + 700 * 12 / 150 + 258
    assert found["share of 2"].mean == pytest.approx(strict / 10_000)
    assert found["recall"].mean == pytest.approx(258 / strict)
    assert found["recall"].low < 258 / strict < found["recall"].high
    same = weigh_by_build(MATRIX, (50, 50, 50), n_resamples=10)
    assert same["exact"].mean == pytest.approx(379 / 450)


def test_a_grade_without_labels_leaves_no_figure_of_the_build():
    matrix = np.array([[5, 0, 0], [0, 0, 0], [0, 0, 5]])
    assert np.isnan(weigh_by_build(matrix, (9, 9, 9), n_resamples=10)["exact"].mean)
    assert weigh_by_build(matrix, (9, 0, 9), n_resamples=10)["exact"].mean == 1


# Krippendorff (2011), section C: 4 observers, 12 units, five nominal values, some missing.
OBSERVERS = (
    "1 2 3 3 2 1 4 1 2 . . .", "1 2 3 3 2 2 4 1 2 5 . 3", ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)  # fmt: skip


def test_alpha_is_that_of_krippendorffs_example():
    labels = {
        str(name): {str(n): int(one) for n, one in enumerate(row.split()) if one != "."}
        for name, row in enumerate(OBSERVERS)
    }
    found = compare_raters(labels)
    assert round(found.alpha_nominal, 3) == 0.743
    assert round(found.alpha_ordinal, 3) == 0.815


def test_fleiss_kappa_is_that_of_a_hand_count():
    table = np.array([[0, 0, 1, 2], [0, 1, 1, 2], [0, 0, 2, 2]], dtype=float)
    # P_i are 1, 1/3, 1/3, 1; the shares of the labels 5/12, 3/12, 4/12
    by_chance = (25 + 9 + 16) / 144
    assert fleiss_kappa(table) == pytest.approx((2 / 3 - by_chance) / (1 - by_chance))


def test_raters_who_share_no_pair_or_one_label_have_no_agreement():
    assert np.isnan(compare_raters({"a": {"1": 0}, "b": {"2": 1}}).alpha_ordinal)
    same = compare_raters({"a": {"1": 2, "2": 2}, "b": {"1": 2, "2": 2}})
    assert np.isnan(same.alpha_nominal)
    assert np.isnan(same.fleiss)
    assert same.n_by_all == 2
