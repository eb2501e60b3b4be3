"""Measures of searches for papers, against numbers worked out by hand."""

from math import log2

import pytest

from deepera_graph.calibration.instance import MetricError
from deepera_graph.lab.studies.papers.scores import (
    bucket_of,
    by_intents,
    ndcg,
    precision,
    recall_of,
    recall_per_candidates,
    score_limits,
)

GOLD = frozenset({"a", "b", "c"})


def test_ndcg_takes_all_the_gold_for_its_ideal():
    ideal = 1 + 1 / log2(3) + 1 / 2
    assert ndcg(["a", "x", "b"], GOLD) == pytest.approx((1 + 1 / 2) / ideal)
    assert ndcg([], GOLD) == 0


def test_the_ideal_of_ndcg_ends_at_fifty():
    gold = frozenset(f"g{n}" for n in range(80))
    assert ndcg(sorted(gold)[:50], gold) == pytest.approx(1)
    assert ndcg(["x"] * 50 + ["g1"], gold) == 0


def test_precision_is_divided_by_what_was_returned():
    assert precision(["a", "x", "b", "y"], GOLD) == 0.5
    assert precision(["x"] * 50 + ["a"], GOLD) == 0
    assert precision([], GOLD) == 0


def test_recall_needs_answers():
    assert recall_of(["a", "x"], GOLD) == pytest.approx(1 / 3)
    with pytest.raises(MetricError, match="at least one answer"):
        recall_of(["a"], frozenset())


def test_recall_per_candidates_is_a_ratio_of_a_query():
    assert recall_per_candidates(0.5, 250) == 0.2
    assert recall_per_candidates(0.0, 0) == 0


def test_weights_make_the_mean_that_of_the_intents():
    values = by_intents([1.0, 0.0, 0.0, 0.5], ["a", "a", "a", "b"])
    assert values.mean() == pytest.approx((1 / 3 + 0.5) / 2)


def test_both_averages_of_the_leaderboard():
    names = ("comparison", "method", "scope", "setting")
    means = dict(zip(names, (0.408, 0.341, 0.182, 0.327), strict=True))
    counts = dict(zip(names, (272, 290, 285, 153), strict=True))
    intents = [one for one in names for _ in range(counts[one])]
    of_queries = [means[one] for one in intents]
    assert round(by_intents(of_queries, intents).mean(), 4) == 0.3145
    assert round(sum(of_queries) / len(of_queries), 3) == 0.312


@pytest.mark.parametrize(
    ("n", "name"),
    [(1, "1-4"), (5, "5-25"), (25, "5-25"), (26, "26-50"), (200, "151-200"), (201, "201+")],
)
def test_buckets_are_those_of_the_paper(n, name):
    assert bucket_of(n) == name


def test_buckets_may_begin_elsewhere():
    assert [bucket_of(n, (2, 3, 6)) for n in (1, 2, 3, 9)] == ["0-1", "2", "3-5", "6+"]


def test_limits_are_measured_against_what_breaks_them():
    ranked = ["v", "a", "x", "b", "w"]
    found = score_limits(ranked, ["a", "x", "v"], GOLD, frozenset({"v", "w"}))
    assert found.first == pytest.approx(1 / 3)  # v of v, a, x
    # a and b stand above w; c was not returned and is below all
    assert found.auc == pytest.approx(2 / 6)
    assert found.precision == 0.5
    assert found.recall == pytest.approx(1 / 3)
    assert found.f1 == pytest.approx(0.4)


def test_papers_that_were_not_returned_share_a_place():
    assert score_limits([], [], GOLD, frozenset({"v"})).auc == 0.5
    assert score_limits(["a"], ["a"], GOLD, frozenset({"v"})).auc == pytest.approx(2 / 3)


def test_limits_need_both_kinds_apart():
    with pytest.raises(MetricError, match="got 3, 1, 1 in both"):
        score_limits(["a"], [], GOLD, frozenset({"a"}))
