"""Scripted judges over a planted world: what a selector of some accuracy is worth."""

import importlib.util
import json
from dataclasses import replace
from math import comb

import pytest

from deepera_graph.errors import SettingsError
from deepera_graph.lab.studies.papers.judges import judge_run, study_judges
from deepera_graph.lab.studies.papers.runs import QueryRun, read_queries
from deepera_graph.lab.studies.papers.scores import PaperBench
from support.bioasq import SHARED
from support.planted_papers import grade, plant_queries, plant_world, write_world

PLANTED = SHARED / "data" / "papers" / "planted"


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    queries = read_queries(write_world(tmp_path_factory.mktemp("planted"))[1])
    return PaperBench(queries=queries, n_resamples=20)


@pytest.fixture(scope="module")
def everything(bench):
    """A run that returns all that the world has, in order of ids."""
    return all_of(bench, [one["id"] for one in plant_world()])


def all_of(bench, ids):
    return {one.id: QueryRun(ranked=tuple(ids)) for one in bench.queries}


def means(result, system="all"):
    return {
        row[1]: [getattr(one, "mean", one) for one in row[2:]]
        for row in result.grids[0].rows
        if row[0] == system
    }


def test_a_perfect_judge_keeps_the_answers_alone(bench, everything):
    judged = judge_run(everything, bench.queries, 1.0)
    for one in bench.queries:
        assert {*judged[one.id].kept} == one.gold
        assert {*judged[one.id].ranked} == {*everything[one.id].ranked}
        assert judged[one.id].ranked[: len(one.gold)] == judged[one.id].kept


def test_worse_judges_are_worse_in_all(bench, everything):
    found = means(study_judges(bench, {"all": everything}))
    assert list(found) == ["none", "1", "0.9", "0.8"]
    n, recall, right, f1, first = zip(*[found[one] for one in ("1", "0.9", "0.8")], strict=True)
    assert n == (96, 96, 96)
    assert (recall[0], right[0], f1[0], first[0]) == (1, 1, 1, 0)
    assert recall[0] > recall[1] > recall[2]
    assert f1[0] > f1[1] > f1[2]
    assert first[0] < first[1] < first[2]


def test_a_judge_is_right_as_often_as_it_is_told(bench, everything):
    judged = judge_run(everything, bench.queries, 0.9)
    right = sum(
        (paper in one.gold) is (paper in judged[one.id].kept)
        for one in bench.queries
        for paper in judged[one.id].ranked
    )
    n = 96 * len(bench.queries)
    assert abs(right - 0.9 * n) < 2.576 * (n * 0.9 * 0.1) ** 0.5  # the 99 % interval


def binomial(n, share):
    """The chance of each number of successes."""
    return [comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]


def analyze_f1(n_gold, n_violating, accuracy):
    """Mean and variance of F1, if every paper is judged rightly with this probability."""
    kept, wrong = binomial(n_gold, accuracy), binomial(n_violating, 1 - accuracy)
    cases = [
        (p * q, 2 * right / (right + false + n_gold))
        for right, p in enumerate(kept)
        for false, q in enumerate(wrong)
    ]
    mean = sum(chance * f1 for chance, f1 in cases)
    return mean, sum(chance * (f1 - mean) ** 2 for chance, f1 in cases)


@pytest.mark.parametrize("accuracy", [0.9, 0.8])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_f1_under_a_judge_of_known_accuracy_is_its_analytic_value(
    bench, everything, accuracy, seed
):
    bench = replace(bench, seed=seed)
    expected = [
        analyze_f1(len(one.gold), len(one.violating), accuracy)
        for one in bench.queries
        if one.violating
    ]
    mean = sum(one for one, _ in expected) / len(expected)
    error = sum(one for _, one in expected) ** 0.5 / len(expected)
    found = means(study_judges(bench, {"all": everything}, accuracies=(accuracy,)))
    f1 = found[f"{accuracy:g}"][3]
    assert abs(f1 - mean) < 2.576 * error  # the 99 % interval
    assert 2.576 * error < 0.06


def test_a_better_judge_errs_nowhere_else(bench, everything):
    better, worse = (judge_run(everything, bench.queries, one) for one in (0.9, 0.8))
    for one in bench.queries:
        wrong = ({*each[one.id].kept} ^ one.gold for each in (better, worse))
        assert next(wrong) <= next(wrong)


def test_the_truth_may_be_graded(bench, everything):
    papers = {one["id"]: one for one in plant_world()}
    conditions = {one["id"]: one["condition"] for one in plant_queries([*papers.values()])}

    def truth(query, paper):
        return grade(papers[paper], conditions[query.id]) == 2

    by_truth = judge_run(everything, bench.queries, 0.8, truth=truth)
    assert by_truth == judge_run(everything, bench.queries, 0.8)


def test_an_accuracy_is_a_share(bench, everything):
    with pytest.raises(SettingsError, match=r"must be in \[0, 1\], got 2"):
        judge_run(everything, bench.queries, 2)


@pytest.mark.full
@pytest.mark.skipif(not PLANTED.is_dir(), reason="the larger planted world is not here")
def test_a_judge_of_the_shared_world_agrees_with_its_truth():
    path = PLANTED.parent / "make_planted.py"
    spec = importlib.util.spec_from_file_location("make_planted", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    lines = (PLANTED / "attributes.jsonl").read_text(encoding="utf-8").split("\n")
    papers = {one["id"]: one for one in map(json.loads, filter(None, lines))}
    lines = (PLANTED / "queries.jsonl").read_text(encoding="utf-8").split("\n")
    conditions = {one["id"]: one["condition"] for one in map(json.loads, filter(None, lines))}
    bench = PaperBench(queries=read_queries(PLANTED / "queries.jsonl"), n_resamples=20)
    run = all_of(bench, papers)

    def truth(query, paper):
        return made.truth(papers[paper], conditions[query.id]) == 2

    found = means(study_judges(bench, {"all": run}, truth=truth))
    assert found["1"][1:] == [pytest.approx(1, abs=0.1), 1, 1, 0]
    assert found == means(study_judges(bench, {"all": run}))
