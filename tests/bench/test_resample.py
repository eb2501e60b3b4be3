import math
from itertools import product

import numpy as np
import pytest

from deepera_graph.calibration.instance import MetricError
from deepera_graph.calibration.statistics import (
    Values,
    bootstrap,
    bootstrap_ratios,
    bootstrap_sums,
    bootstraps,
    mean_std,
    paired_bootstraps,
    permutation_tests,
    pool_runs,
)


def coins(n, share, seed=0):
    return Values.of(np.random.default_rng(seed).random(n) < share)


def test_a_metric_without_spread_has_an_interval_of_one_point():
    assert bootstrap(Values.of([0.5] * 10)) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize("values", [Values.of([0.5]), Values.of([0.5, 1.0, 0.0], [1, 0, 0])])
def test_one_question_has_no_interval(values):
    found = [
        bootstrap(values),
        *paired_bootstraps([(values, values)]),
        *bootstrap_ratios(
            (values.values * values.weights)[:, None], values.weights[:, None], n_resamples=10
        ),
    ]
    assert [one.mean for one in found] == [0.5, 0.0, 0.5]
    assert all(math.isnan(one.low) and math.isnan(one.high) for one in found)


@pytest.mark.full
def test_the_interval_of_a_share_is_near_the_normal_one():
    values = coins(1000, 0.3)
    mean, low, high = bootstrap(values)
    half = 1.96 * math.sqrt(mean * (1 - mean) / 1000)
    assert (low, high) == pytest.approx((mean - half, mean + half), abs=0.003)


@pytest.mark.full
def test_intervals_cover_the_true_share_about_as_often_as_they_say():
    intervals = [
        bootstrap(coins(200, 0.4, seed), n_resamples=500, seed=seed) for seed in range(200)
    ]
    covered = sum(low <= 0.4 <= high for _, low, high in intervals)
    assert 180 <= covered <= 199


def test_a_seed_gives_the_same_interval_again_and_another_seed_another():
    values = Values.of(np.random.default_rng(0).random(50))
    assert bootstrap(values, seed=1) == bootstrap(values, seed=1)
    assert bootstrap(values, seed=1)[1:] != bootstrap(values, seed=2)[1:]


def test_columns_resampled_together_equal_columns_resampled_alone():
    columns = [coins(80, 0.2, 1), coins(80, 0.6, 2)]
    assert bootstraps(columns) == [pytest.approx(bootstrap(one)) for one in columns]


@pytest.mark.full
def test_more_questions_than_fit_at_once_are_drawn_in_pieces():
    assert bootstrap(coins(3000, 0.5), n_resamples=1500).low == pytest.approx(0.48, abs=0.02)


def test_weights_make_the_mean_a_ratio():
    values = Values.of([1, 0, 0], [2, 1, 0])
    mean, low, high = bootstrap(values)
    assert mean == pytest.approx(2 / 3)
    assert (low, high) == (0, 1)


def test_nothing_to_weigh_gives_no_interval():
    assert all(math.isnan(number) for number in bootstrap(Values.of([0, 0], [0, 0])))


@pytest.mark.full
def test_the_same_resamples_make_a_paired_interval_narrow():
    worse = coins(300, 0.5)
    better = Values.of(worse.values + 0.1)
    assert paired_bootstraps([(better, worse)])[0] == pytest.approx((0.1, 0.1, 0.1))


def test_the_permutation_test_equals_counting_all_permutations():
    first, second = np.array([1, 0.5, 1, 0, 1, 1, 0.2, 1]), np.array([0, 0.4, 1, 1, 0, 0, 0, 0.5])
    difference = first - second
    sums = [abs(np.dot(signs, difference)) for signs in product([1, -1], repeat=8)]
    exact = np.mean([one >= abs(difference.sum()) - 1e-9 for one in sums])
    (found,) = permutation_tests([(Values.of(first), Values.of(second))], n_resamples=50_000)
    assert found == pytest.approx(exact, abs=0.01)


def test_equal_rankers_have_p_1():
    assert permutation_tests([(coins(40, 0.5), coins(40, 0.5))]) == [1]


def test_p_is_never_0():
    ones, zeros = Values.of([1.0] * 100), Values.of([0.0] * 100)
    assert permutation_tests([(ones, zeros)], n_resamples=999) == [0.001]


def test_p_values_are_about_uniform_where_nothing_differs():
    pairs = [(coins(60, 0.5, seed), coins(60, 0.5, seed + 1000)) for seed in range(200)]
    below = sum(p < 0.1 for p in permutation_tests(pairs, n_resamples=1000))
    assert 5 <= below <= 35


def test_where_nothing_counts_there_is_no_p():
    nothing = Values.of([0.0, 0.0], [0, 0])
    known, unknown = permutation_tests([(Values.of([0, 0]), Values.of([1, 0])), (nothing, nothing)])
    assert 0 < known <= 1
    assert math.isnan(unknown)


@pytest.mark.parametrize("function", [paired_bootstraps, permutation_tests])
def test_rankers_with_other_questions_are_refused(function):
    with pytest.raises(MetricError, match=r"same questions, got \[2, 3\]"):
        function([(Values.of([0, 1]), Values.of([0, 1, 1]))])


def test_resampling_nothing_is_refused():
    with pytest.raises(MetricError, match="at least one question"):
        bootstrap(Values.of([]))


@pytest.mark.parametrize(
    ("values", "weights", "message"),
    [
        ([1, 2], [1], "one shape"),
        ([[1, 2]], None, "one shape"),
        ([math.nan], None, "finite"),
        ([1], [math.inf], "finite"),
    ],
)
def test_values_that_cannot_be_averaged_are_refused(values, weights, message):
    with pytest.raises(MetricError, match=message):
        Values.of(values, weights)


def test_spread_divides_by_one_less_than_the_repeats():
    assert mean_std([0.1, 0.2, 0.3]) == pytest.approx((0.2, 0.1))
    assert mean_std([0.4]) == (0.4, 0.0)
    with pytest.raises(MetricError, match="at least one repeat"):
        mean_std([])


def test_repeats_are_averaged_question_by_question():
    found = pool_runs([Values.of([0, 1]), Values.of([1, 1])])
    assert list(found.values) == [0.5, 1]


def test_repeats_over_other_questions_are_refused():
    with pytest.raises(MetricError, match="over the same questions"):
        pool_runs([Values.of([0, 1]), Values.of([0, 1, 1])])


def test_a_statistic_of_sums_is_resampled_as_a_mean_is():
    values = coins(60, 0.3)
    table = np.column_stack([values.values, values.weights])
    [found] = bootstrap_sums([(table, lambda sums: sums[..., 0] / sums[..., 1])], n_resamples=500)
    assert found == pytest.approx(bootstrap(values, n_resamples=500))


def test_statistics_of_sums_need_the_same_questions():
    with pytest.raises(MetricError, match=r"the same questions, got \[2, 3\]"):
        bootstrap_sums([(np.ones((n, 1)), lambda sums: sums[..., 0]) for n in (2, 3)])


def test_a_geometric_mean_has_an_interval_and_differences():
    low, high = (Values.of([share] * 9 + [0.0], added=1e-5) for share in (0.5, 0.9))
    mean, below, above = bootstrap(low, n_resamples=300)
    assert mean == pytest.approx(math.exp((9 * math.log(0.50001) + math.log(1e-5)) / 10))
    assert below < mean < above <= 0.50001 + 1e-9
    [difference] = paired_bootstraps([(high, low)], n_resamples=300)
    assert difference.mean == pytest.approx(high.mean() - low.mean())
    assert permutation_tests([(high, low)], n_resamples=999)[0] < 0.05
    assert pool_runs([low, low]).mean() == pytest.approx(low.mean())
