"""Laws that every ranking keeps to."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepera_graph.lab.metrics.answers import answer_overlaps, answer_tokens, lfs, token_overlap
from deepera_graph.lab.metrics.ranking import JudgedRanking, compute

pytestmark = pytest.mark.full

IDS = [f"p{number}" for number in range(12)]
QUICK = settings(max_examples=60, deadline=None)


@st.composite
def judged(draw, whole=False):
    order = draw(st.permutations(IDS))
    golden = draw(st.sets(st.sampled_from(IDS), min_size=1, max_size=4))
    others = sorted(set(IDS) - golden)
    distractors = draw(st.sets(st.sampled_from(others), max_size=6))
    parents = {one: draw(st.sampled_from(sorted(golden))) for one in sorted(distractors)}
    n_returned = len(IDS) if whole else draw(st.integers(0, len(IDS)))
    return JudgedRanking(
        "q", tuple(order[:n_returned]), len(IDS), dict.fromkeys(golden, 1), parents
    )


def value(metric, one):
    return compute(metric, [one]).mean()


def with_order(one, groups):
    return one.reorder([one.ranked.index(id) + 1 for group in groups for id in group])


def parts(one):
    golden = [id for id in one.ranked if id in one.golden]
    distractors = [id for id in one.ranked if id in one.parents]
    rest = [id for id in one.ranked if id not in one.golden and id not in one.parents]
    return golden, rest, distractors


@QUICK
@given(judged())
def test_reciprocal_rank_lies_between_the_bounds_of_the_hit_rates(one):
    first, third, rp = (value(name, one) for name in ("HitRate@1", "HitRate@3", "MRR"))
    assert first <= rp
    assert first + (third - first) / 3 <= rp + 1e-12
    assert rp <= first + (third - first) / 2 + (1 - third) / 4 + 1e-12


@QUICK
@given(judged())
def test_hit_rate_and_recall_never_fall_with_k(one):
    for name in ("HitRate", "Recall"):
        values = [value(f"{name}@{k}", one) for k in (1, 2, 5, 12)]
        assert values == sorted(values)


@QUICK
@given(judged())
def test_every_metric_stays_in_0_to_1(one):
    for name in ("HitRate@3", "MRR", "RP-linear", "NRS@5", "nDCG@10", "Recall@5"):
        assert 0 <= value(name, one) <= 1 + 1e-12


@QUICK
@given(judged(whole=True))
def test_an_ideal_list_is_perfect(one):
    golden, rest, distractors = parts(one)
    ideal = with_order(one, [golden, rest, distractors])
    k = len(golden) + len(rest)
    for name in ("HitRate@1", "MRR", "RP-linear", "nDCG@10", f"Recall@{len(golden)}", f"NRS@{k}"):
        assert value(name, ideal) > 1 - 1e-12
    if distractors:
        assert value("CDR", ideal) == 1


@QUICK
@given(judged(whole=True))
def test_a_reversed_ideal_list_is_as_bad_as_can_be(one):
    golden, rest, distractors = parts(one)
    worst = with_order(one, [distractors, rest, golden])
    before = len(rest) + len(distractors)
    assert value("MRR", worst) == 1 / (before + 1)
    assert value(f"HitRate@{before}", worst) == 0
    if distractors:
        assert value("CDR", worst) == 0
        assert value(f"NRS@{len(distractors)}", worst) == 0


@QUICK
@given(judged(), st.data())
def test_a_filter_never_gains_hit_rate_or_position(one, data):
    n = data.draw(st.integers(0, len(one.ranked)))
    filtered = one.reorder(range(1, n + 1))
    for name in ("HitRate@1", "HitRate@3", "MRR", "RP-linear", "nDCG@10"):
        assert value(name, filtered) <= value(name, one) + 1e-12


@QUICK
@given(judged())
def test_the_ideal_order_of_what_was_returned_is_never_worse(one):
    for name in ("HitRate@1", "MRR", "nDCG@10", "Recall@3"):
        assert value(name, one.ideal()) >= value(name, one) - 1e-12


WORDS = ["ice", "carp", "pike", "The", "2.5", "cm,", "Trout"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
SCORES = st.lists(st.none() | st.integers(1, 5), min_size=1, max_size=12)


@QUICK
@given(TEXTS, TEXTS)
def test_token_overlap_is_symmetric_and_f1_lies_between_precision_and_recall(answer, gold):
    one, other = token_overlap(answer, gold), token_overlap(gold, answer)
    assert (one.precision, one.recall, one.f1) == (other.recall, other.precision, other.f1)
    assert min(one.precision, one.recall) - 1e-12 <= one.f1
    assert one.f1 <= max(one.precision, one.recall) + 1e-12
    assert all(0 <= value <= 1 for value in one)


@QUICK
@given(TEXTS, st.randoms(use_true_random=False))
def test_token_overlap_ignores_the_order_of_words(text, random):
    words = text.split()
    random.shuffle(words)
    assert token_overlap(" ".join(words), text) == (1, 1, 1)


@QUICK
@given(TEXTS, TEXTS, TEXTS.filter(answer_tokens))
def test_more_words_never_lower_recall(answer, more, gold):
    assert token_overlap(f"{answer} {more}", gold).recall >= token_overlap(answer, gold).recall


@QUICK
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5), TEXTS)
def test_an_answer_of_weight_0_changes_no_mean(pairs, failed):
    alone = answer_overlaps(pairs)
    with_failed = answer_overlaps([*pairs, ("", failed)], [1.0] * len(pairs) + [0.0])
    for one, other in zip(alone, with_failed, strict=True):
        assert one.mean() == pytest.approx(other.mean())


@QUICK
@given(SCORES)
def test_lfs_stays_on_its_scale_and_no_failure_makes_it_better(scores):
    found = lfs(scores, low=1, high=5)
    judged = [one for one in scores if one is not None]
    if judged:
        assert 1 <= found.mean() <= 5
        assert found.mean() <= lfs(judged, low=1, high=5).mean() + 1e-9
        assert 0 <= found.std() <= 4
