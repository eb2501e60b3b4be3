"""Pools made of others: with more evidence, and with few passages."""

from dataclasses import replace

import numpy as np

from deepera_graph.lab.training.evaluate import EvaluationPlan
from deepera_graph.lab.training.lessons.augment import (
    MAX_TRUNCATED,
    MERGED_WEIGHT,
    MIN_TRUNCATED,
    TRUNCATED_WEIGHT,
    add_variants,
    merge_evidence,
    pool_rng,
    take_first,
    truncate_pools,
)
from deepera_graph.lab.training.measure import assign_folds
from support.pools import pool


def asking(one, question="Does rain turn copper green?"):
    return replace(one, question=question)


def evidence(one):
    return {passage.text for passage in one.passages if passage.label}


def test_pools_of_one_question_are_joined_to_each_others_evidence():
    one, other = (
        asking(pool("a", [0, 1, 0])),
        asking(pool("b", [1, 0]), "does RAIN turn copper green?"),
    )
    found = merge_evidence([one, other, pool("c", [1, 0])])
    assert [each.id for each in found] == ["a (joined)", "b (joined)"]
    assert [each.labels for each in found] == [(0, 1, 1, 0), (1, 1, 0)]
    for own, each in zip((one, other), found, strict=True):
        assert evidence(each) == evidence(one) | evidence(other)
        assert [passage for passage in each.passages if passage in own.passages] == list(
            own.passages
        )
        assert (each.group, each.weight) == (own.group, MERGED_WEIGHT)


def test_evidence_in_other_words_is_what_is_joined_and_no_copy():
    one = asking(pool("a", [0, 1, 0]))
    assert merge_evidence([one, replace(one, id="b", set="other")]) == []


def test_evidence_that_is_elsewhere_or_was_taken_out_is_not_joined():
    whole, missed = asking(pool("a", [0, 1])), asking(pool("b", [1, 0], golden_outside=1))
    assert merge_evidence([whole, missed]) == []
    pools = [pool(f"q{number}", [0, 1, *[0] * 9]) for number in range(5)]
    assert merge_evidence(add_variants(pools)) == []


def test_passages_of_one_paper_are_never_joined_nor_cut():
    article = asking(pool("a", [0, 1, *[0] * 30], of_one_paper=True))
    assert merge_evidence([article, asking(pool("b", [1, 0]))]) == []
    assert list(truncate_pools([article])) == list(take_first([article], 4)) == []


def test_few_passages_are_the_first_ones_and_no_evidence_is_forgotten():
    pools = [pool(f"q{number}", [0, 0, 0, 1, *[0] * 26]) for number in range(60)]
    found = list(truncate_pools(pools))
    sizes = [len(one.passages) for one in found]
    small = [size for size in sizes if size <= MAX_TRUNCATED]
    assert (min(small), max(small)) == (MIN_TRUNCATED, MAX_TRUNCATED)
    assert np.median(small) <= 7
    assert set(sizes).issuperset(range(MAX_TRUNCATED + 1, 29))
    for number, one in enumerate(found):
        whole = pools[number // 3]
        assert one.passages == whole.passages[: len(one.passages)]
        assert one.n_golden == 1
        assert one.weight == TRUNCATED_WEIGHT
    assert {sum(one.labels) for one in found} == {0, 1}


def test_the_first_passages_of_a_short_pool_are_all_and_what_is_outside_stays_counted():
    short, missed = pool("a", [0, 1]), pool("b", [0, 0, 1], golden_outside=2)
    assert list(take_first([short], 4)) == [short]
    assert [one.n_golden for one in take_first([missed], 2)] == [3]


def test_a_pool_is_cut_in_the_same_way_whatever_the_others_are():
    one, two = pool("a", [0, 1, *[0] * 20]), pool("b", [1, *[0] * 20], set="caf\udce9")
    assert list(truncate_pools([one, two]))[3:] == list(truncate_pools([two]))
    assert pool_rng(0, two).random() != pool_rng(0, two, "few").random()


def test_what_is_measured_besides_moves_no_question_to_another_fold():
    pools = [asking(pool(f"q{n}", [0, 1, 0, 0]), f"Is it {n // 2}?") for n in range(24)]
    pools = [replace(one, group=one.question) for one in pools]
    measured = EvaluationPlan(data=(), first=(2, 9), joined=True).add_measured(pools)
    assert {one.set for one in measured} == {
        "roofs", "roofs, first 2", "roofs, first 9", "roofs, joined",
    }  # fmt: skip
    assert {one.weight for one in measured[24:]} == {0}
    found = assign_folds(measured, n_folds=4)
    assert found[:24] == assign_folds(pools, n_folds=4)
    assert len({(one.group, fold) for one, fold in zip(measured, found, strict=True)}) == 12
