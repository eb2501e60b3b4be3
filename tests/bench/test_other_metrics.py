import pytest

from bench.lakes import make_judged
from deepera_graph.lab.metrics.answers import answer_overlaps, answer_tokens, token_overlap
from deepera_graph.lab.metrics.ranking import (
    distractor_discrimination,
    linear_position,
    non_distractor_share,
)

PARENTS = {"x": "a", "y": "a", "z": None}


@pytest.mark.parametrize(
    ("ranked", "position"),
    [
        pytest.param("abcde", 1, id="first"),
        pytest.param("bcade", 0.5, id="middle"),
        pytest.param("bcdea", 0, id="last"),
        pytest.param("bc", 0, id="not-returned"),
        pytest.param("ba", 0.75, id="second-of-a-shorter-list"),
    ],
)
def test_linear_position_counts_all_candidates(ranked, position):
    assert linear_position([make_judged(ranked, "a", n=5)]).mean() == position


def test_linear_position_of_an_only_candidate_is_1():
    assert linear_position([make_judged("a", "a")]).mean() == 1


@pytest.mark.parametrize(
    ("ranked", "k", "share"),
    [
        pytest.param("abxyz", 1, 1, id="none-at-the-top"),
        pytest.param("xabyz", 1, 0, id="one-at-the-top"),
        pytest.param("axbyz", 3, 2 / 3, id="one-of-three"),
        pytest.param("abxyz", 30, 2 / 5, id="k-beyond-the-pool"),
        pytest.param("ab", 4, 1 / 2, id="empty-places-count"),
        pytest.param("", 4, 0, id="nothing-returned"),
    ],
)
def test_share_of_places_without_distractors(ranked, k, share):
    judged = [make_judged(ranked, "a", n=5, parents=PARENTS)]
    assert non_distractor_share(judged, k).mean() == pytest.approx(share)


@pytest.mark.parametrize(
    ("ranked", "cdr"),
    [
        pytest.param("abxyz", 1, id="golden-before-both"),
        pytest.param("xaybz", 0.5, id="between"),
        pytest.param("xyzab", 0, id="behind-both"),
        pytest.param("axz", 1, id="dropped-distractors-are-behind"),
        pytest.param("x", 0.25, id="dropped-together-is-a-tie"),
        pytest.param("", 0.5, id="nothing-returned"),
    ],
)
def test_pairs_of_golden_and_its_own_distractor_in_order(ranked, cdr):
    judged = [make_judged(ranked, "a", n=5, parents=PARENTS)]
    assert distractor_discrimination(judged).mean() == cdr


def test_every_pair_has_the_same_weight():
    two_right = make_judged("axy", "a", parents={"x": "a", "y": "a"})
    one_wrong = make_judged("xa", "a", parents={"x": "a"})
    no_pair = make_judged("ab", "a")
    values = distractor_discrimination([two_right, one_wrong, no_pair])
    assert list(values.weights) == [2, 1, 0]
    assert values.mean() == pytest.approx(2 / 3)


def test_a_set_without_pairs_has_no_discrimination():
    values = distractor_discrimination([make_judged("ab", "a")])
    assert values.mean() != values.mean()


def test_a_distractor_of_another_golden_passage_is_no_pair():
    judged = make_judged("bxa", "ab", parents={"x": "b"})
    assert distractor_discrimination([judged]).mean() == 1


def test_answer_tokens_lose_case_punctuation_and_articles():
    assert answer_tokens("The  trout's an 'Animal', theatre-going!") == [
        "trouts", "animal", "theatregoing",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "gold", "precision", "recall", "f1"),
    [
        pytest.param("The cold lake", "cold lake.", 1, 1, 1, id="same-after-normalising"),
        pytest.param("cold deep lake here", "cold lake", 0.5, 1, 2 / 3, id="too-long"),
        pytest.param("lake", "cold cold lake", 1, 1 / 3, 0.5, id="too-short"),
        pytest.param("cold cold", "cold lake", 0.5, 0.5, 0.5, id="repeats-count-once"),
        pytest.param("trout", "pike", 0, 0, 0, id="nothing-shared"),
        pytest.param("", "pike", 0, 0, 0, id="no-answer"),
        pytest.param("the", "a", 1, 1, 1, id="both-empty"),
    ],
)
def test_token_overlap(answer, gold, precision, recall, f1):
    assert token_overlap(answer, gold) == pytest.approx((precision, recall, f1))


def test_mean_f1_is_the_mean_of_f1s():
    overlaps = answer_overlaps([("cold deep lake here", "cold lake"), ("lake", "cold cold lake")])
    assert overlaps.precision.mean() == 0.75
    assert overlaps.recall.mean() == pytest.approx(2 / 3)
    assert overlaps.f1.mean() == pytest.approx((2 / 3 + 0.5) / 2)


def test_no_answers_give_no_values():
    assert len(answer_overlaps([]).f1.values) == 0
