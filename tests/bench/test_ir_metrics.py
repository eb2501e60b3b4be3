import re
from importlib.resources import files
from inspect import isfunction, signature
from pathlib import Path

import ir_measures
import numpy as np
import pytest

from bench.lakes import make_judged
from deepera_graph.calibration.instance import MetricError
from deepera_graph.lab.metrics import ranking
from deepera_graph.lab.metrics.ranking import (
    METRIC_NAMES,
    check_same_questions,
    compute,
    evaluate_run,
    hit_rate,
    ndcg,
    recall,
    reciprocal_rank,
    to_run,
)
from deepera_graph.lab.studies.base import StudyConfig


@pytest.mark.parametrize(
    ("ranked", "golden", "hit_1", "hit_3", "rp"),
    [
        pytest.param("abcd", "a", 1, 1, 1, id="first"),
        pytest.param("abcd", "c", 0, 1, 1 / 3, id="third"),
        pytest.param("abcd", "d", 0, 0, 1 / 4, id="fourth"),
        pytest.param("abcd", "bd", 0, 1, 1 / 2, id="any-of-several"),
        pytest.param("abc", "z", 0, 0, 0, id="filtered-out-is-a-miss"),
        pytest.param("", "z", 0, 0, 0, id="nothing-returned"),
    ],
)
def test_hit_rate_and_reciprocal_rank(ranked, golden, hit_1, hit_3, rp):
    judged = [make_judged(ranked, golden, n=4)]
    assert hit_rate(judged, 1).mean() == hit_1
    assert hit_rate(judged, 3).mean() == hit_3
    assert reciprocal_rank(judged).mean() == pytest.approx(rp)


def test_values_stay_in_the_order_of_the_questions():
    judged = [make_judged("", "a", n=2), make_judged("ba", "a"), make_judged("ab", "a")]
    assert list(reciprocal_rank(judged).values) == [0, 0.5, 1]


def test_questions_with_one_id_are_told_apart():
    assert hit_rate([make_judged("ab", "a"), make_judged("ba", "a")], 1).mean() == 0.5


@pytest.mark.parametrize("metric", ["HitRate@1", "MRR", "nDCG@3", "Recall@3", "AP@3", "RP-linear"])
def test_what_nothing_answers_does_not_count_for_where_answers_are(metric):
    judged = [make_judged("ab", "a"), make_judged("ab", "")]
    assert compute(metric, judged).mean() == compute(metric, judged[:1]).mean() == 1


def test_abstention_and_false_keeps_are_over_questions_that_nothing_answers():
    judged = [make_judged("ab", "a"), make_judged("", "", n=4), make_judged("abc", "", n=4)]
    assert compute("Abstention", judged).mean() == 0.5
    assert compute("FalseKeeps", judged).mean() == 0.375


def test_ndcg_uses_grades_and_golden_passages_outside_the_pool():
    judged = [make_judged("ab", {"b": 2, "outside": 1})]
    ideal = 2 + 1 / np.log2(3)
    assert ndcg(judged, 10).mean() == pytest.approx(2 / np.log2(3) / ideal)


def test_recall_counts_golden_passages_outside_the_pool():
    assert recall([make_judged("abc", {"a": 1, "c": 1, "outside": 1})], 2).mean() == 1 / 3


def test_average_precision_is_divided_by_what_the_first_k_could_hold():
    judged = [make_judged("a1b2c3d4e5", dict.fromkeys("abcdefghijklmno", 1), n=10)]
    assert compute("AP@10", judged).mean() == pytest.approx(0.3393650794)
    run = ir_measures.calc_aggregate(
        [ir_measures.AP @ 10],
        {"q": dict(judged[0].golden)},
        to_run({"q": judged[0].ranked}),
    )
    assert run[ir_measures.AP @ 10] == pytest.approx(0.2262433862)  # over all fifteen


def test_the_geometric_mean_of_average_precision_is_that_of_bioasq():
    judged = [make_judged("ab", "a"), make_judged("ab", "b")]
    found = compute("GMAP@10", judged)
    assert found.mean() == pytest.approx(np.exp((np.log(1.00001) + np.log(0.50001)) / 2))
    assert list(found.values) == [1, 0.5]


def test_passages_with_one_score_are_refused_because_ties_lose_the_golden_one():
    run = {"q": {"a1": 0.9, "b2": 0.9, "c3": 0.9}}
    judgements = {"q": {"a1": 1}}
    assert ir_measures.calc_aggregate([ir_measures.RR], judgements, run)[ir_measures.RR] == (
        pytest.approx(1 / 3)
    )
    with pytest.raises(MetricError, match="two passages have the same score"):
        evaluate_run(ir_measures.RR, judgements, run)
    assert evaluate_run(ir_measures.RR, judgements, to_run({"q": ["a1", "b2", "c3"]})) == {"q": 1}


def test_run_and_judgements_must_have_the_same_questions():
    with pytest.raises(MetricError, match=r"missing \['b'\], extra \['c'\]"):
        check_same_questions(["a", "c"], ["a", "b"])
    with pytest.raises(MetricError, match="same questions"):
        evaluate_run(ir_measures.RR, {"a": {"x": 1}, "b": {"x": 1}}, {"a": {"x": 1.0}})


@pytest.mark.full
def test_hit_rate_and_reciprocal_rank_equal_a_count_on_1000_random_runs():
    rng = np.random.default_rng(7)
    judged, ranks = [], []
    for number in range(1000):
        ids = [f"p{place}" for place in rng.permutation(30)]
        golden = set(rng.choice(ids, size=rng.integers(1, 4), replace=False))
        returned = ids[: rng.integers(0, 31)]
        judged.append(make_judged(returned, golden, n=30, id=f"q{number}"))
        ranks.append(min((returned.index(one) + 1 for one in golden & set(returned)), default=0))
    reciprocal = [1 / rank if rank else 0 for rank in ranks]
    assert reciprocal_rank(judged).values == pytest.approx(reciprocal)
    for k in (1, 3, 10):
        assert list(hit_rate(judged, k).values) == [0 < rank <= k for rank in ranks]


@pytest.mark.full
def test_hit_rate_and_reciprocal_rank_equal_ir_measures_on_1000_random_runs():
    """Among them cut and empty ones, several golden passages, and golden ones that are missing."""
    rng = np.random.default_rng(8)
    measures = {"HitRate@1": ir_measures.Success @ 1, "HitRate@3": ir_measures.Success @ 3,
                "MRR": ir_measures.RR}  # fmt: skip
    judged, judgements, run = [], [], []
    for number in range(1000):
        order = [f"p{place}" for place in rng.permutation(30)][: rng.integers(0, 31)]
        golden = [f"p{place}" for place in rng.choice(40, size=rng.integers(1, 5), replace=False)]
        id = f"q{number}"
        judged.append(make_judged(order, golden, n=30, id=id))
        judgements += [ir_measures.Qrel(id, one, 1) for one in golden]
        run += [ir_measures.ScoredDoc(id, one, -rank) for rank, one in enumerate(order)]
    expected = {(name, f"q{number}"): 0.0 for name in measures for number in range(1000)}
    names = {measure: name for name, measure in measures.items()}
    for one in ir_measures.iter_calc(measures.values(), judgements, run):
        expected[names[one.measure], one.query_id] = one.value
    for name in measures:
        found = compute(name, judged)
        assert list(found.values) == pytest.approx(
            [expected[name, f"q{number}"] for number in range(1000)]
        )
        assert 0 < found.mean() < 1


def test_the_old_name_of_the_reciprocal_rank_is_understood():
    judged = [make_judged(["a", "b"], ["b"], n=2, id="q")]
    assert list(compute("RP", judged).values) == list(compute("MRR", judged).values) == [0.5]


@pytest.mark.parametrize(
    ("given", "name"),
    [("NDCG@5", "nDCG@5"), ("mrr", "MRR"), ("hitrate@1", "HitRate@1"), ("rp-Linear", "RP-linear")],
)
def test_the_name_of_a_metric_is_known_in_any_case(given, name):
    judged = [make_judged(["a", "b"], ["b"], n=2, id="q")]
    assert list(compute(given, judged).values) == list(compute(name, judged).values)
    assert StudyConfig(data=("a",), metrics=(given,)).metrics == (name,)


@pytest.mark.parametrize(
    "name",
    [
        "HitRate",
        "HitRate@0",
        "HitRate@",
        "@5",
        "hit rate@1",
        "mrr@3",
        "MRR@3",
        "RP@3",
        "MAP",
        "NRS@-1",
        "",
    ],
)
def test_unknown_metrics_are_refused_by_name(name):
    with pytest.raises(MetricError, match="metric must be one of MRR, "):
        compute(name, [make_judged("a", "a")])


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_a_metric_stands_in_the_help_and_in_the_docs(metric):
    docs = Path(__file__).parents[2] / "docs" / "benchmark.md"
    text = files("deepera_graph.lab.cli").joinpath("help.txt").read_text(encoding="utf-8")
    listed = re.search(r"\[bold]Metrics\[/bold] are (.*?)\. ", text, re.DOTALL)
    assert metric in re.split(r",\s+|\s+and\s+", listed.group(1))
    assert f"`{metric}`" in docs.read_text(encoding="utf-8")


def test_every_function_that_measures_rankings_has_a_name():
    named = {*ranking._WHOLE.values(), *ranking._WITH_CUT.values()}
    measures = {
        one
        for name, one in vars(ranking).items()
        if isfunction(one) and one.__module__ == ranking.__name__ and name[0] != "_"
        and next(iter(signature(one).parameters), "") == "judged"
    }  # fmt: skip
    assert measures == named
