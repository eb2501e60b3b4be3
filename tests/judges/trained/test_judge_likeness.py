"""Laws of likeness, and the same numbers from plain loops."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepera_graph.judges.trained.reading import vectors as of_likeness
from deepera_graph.judges.trained.reading.vectors import (
    TokenCounts,
    count_shared_numbers,
    measure_lexical_similarity,
    measure_shared_abbreviations,
)

pytestmark = pytest.mark.full

COUNTS = TokenCounts(50, {"rust": 9, "shade": 3, "12": 1, "the": 50})
WORDS = ("rust", "shade", "the", "The", "12", "3.5", "HbA1c", "β", "leaf", ".", "!?", "咖啡", "\0")
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), max_size=7)
QUESTIONS = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)


def likeness(counts, question, texts):
    words = measure_lexical_similarity(counts, question, texts)
    return words.between, words.asked


def likeness_here(counts, question, texts):
    words = measure_lexical_similarity(counts, question, texts)
    return words.between_here, words.asked_here


BOTH = pytest.mark.parametrize("measure", [likeness, likeness_here])


@BOTH
@settings(max_examples=40, deadline=None)
@given(question=QUESTIONS, texts=TEXTS, shuffle=st.randoms(use_true_random=False))
def test_likeness_is_symmetric_in_range_and_has_no_order(measure, question, texts, shuffle):
    between, asked = measure(COUNTS, question, texts)
    n = len(texts)
    assert (between.shape, asked.shape) == ((n, n), (n,))
    assert between == pytest.approx(between.T, abs=1e-12)
    for found in (between, asked):
        assert ((found > -1e-9) & (found < 1 + 1e-9)).all()
    assert all(abs(own) < 1e-9 or abs(own - 1) < 1e-9 for own in np.diag(between))
    order = list(range(n))
    shuffle.shuffle(order)
    again, asked_again = measure(COUNTS, question, [texts[place] for place in order])
    assert again == pytest.approx(between[np.ix_(order, order)], abs=1e-12)
    assert asked_again == pytest.approx(asked[order], abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(question=QUESTIONS, texts=TEXTS)
def test_likeness_is_the_cosine_that_plain_loops_find(question, texts):
    rows = [COUNTS.weigh(text) for text in (*texts, question)]

    def cosine(a, b):
        lengths = [sqrt(sum(weight**2 for weight in row.values())) for row in (a, b)]
        product = sum(weight * b.get(token, 0) for token, weight in a.items())
        return product / (lengths[0] * lengths[1]) if all(lengths) else 0

    expected = np.array([[cosine(a, b) for b in rows] for a in rows])
    between, asked = likeness(COUNTS, question, texts)
    assert between == pytest.approx(expected[:-1, :-1], abs=1e-12)
    assert asked == pytest.approx(expected[-1, :-1], abs=1e-12)


@BOTH
def test_how_many_tokens_are_summed_at_a_time_changes_nothing(measure, monkeypatch):
    texts = ["rust in shade 12", "shade, the shade", "12 leaf rust", "咖啡", ""]
    expected = measure(COUNTS, "shade and rust?", texts)
    monkeypatch.setattr(of_likeness, "_TOKENS_AT_ONCE", 2)
    for found, known in zip(measure(COUNTS, "shade and rust?", texts), expected, strict=True):
        assert found == pytest.approx(known, abs=1e-12)


def test_a_token_weighs_more_the_rarer_it_is_and_grows_slowly():
    weights = COUNTS.weigh("The the rust leaf")
    assert weights["the"] == pytest.approx((1 + log(2)) * log(51 / 50.5))
    assert weights["leaf"] == pytest.approx(log(51 / 0.5))
    assert weights["the"] < weights["rust"] < weights["leaf"]


def test_numbers_of_two_digits_and_abbreviations_are_shared():
    texts = ["HbA1c fell by 12.5 in 30 of 7", "30 had 12.5, HbA1c and TNF", "7 had nothing"]
    assert count_shared_numbers(texts).tolist() == [[2, 2, 0], [2, 2, 0], [0, 0, 0]]
    assert measure_shared_abbreviations(texts)[0] == pytest.approx([1 / 2, 1 / 2, 0])
    assert count_shared_numbers(["x"]).tolist() == [[0]]
