from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepera_graph.errors import SettingsError
from deepera_graph.lab.build.corpus import count_tokens, cut_chunks

pytestmark = pytest.mark.full

WORDS = st.lists(st.sampled_from(["lakes", "warm", "slowly", "trout", "ice"]), min_size=1)
SENTENCES = st.lists(WORDS.map(lambda words: " ".join(words).capitalize() + "."), max_size=12)
BREAKS = st.sampled_from([" ", "  ", "\n", "\n\n"])
LIMITS = st.integers(1, 40)


@settings(max_examples=40, deadline=None)
@given(SENTENCES, BREAKS, LIMITS)
def test_chunks_hold_all_sentences_whole_and_in_order(sentences, between, limit):
    found = cut_chunks(between.join(sentences), max_tokens=limit)
    assert " ".join(" ".join(found).split()) == " ".join(sentences)
    assert all(chunk.endswith(".") for chunk in found)


@settings(max_examples=40, deadline=None)
@given(SENTENCES, LIMITS)
def test_a_chunk_above_the_limit_is_one_sentence(sentences, limit):
    for chunk in cut_chunks(" ".join(sentences), max_tokens=limit):
        assert count_tokens(chunk) <= limit or chunk in sentences


def ways_to_cut(sentences):
    """All ways to cut a list into runs, as lists of their sizes in tokens."""
    sizes = [count_tokens(one) for one in sentences]
    for n_cuts in range(len(sizes)):
        for cuts in combinations(range(1, len(sizes)), n_cuts):
            yield [sizes[start:end] for start, end in pairwise([0, *cuts, len(sizes)])]


@settings(max_examples=40, deadline=None)
@given(st.lists(WORDS.map(lambda words: " ".join(words).capitalize() + "."), min_size=1,
                max_size=7), LIMITS)  # fmt: skip
def test_chunks_are_as_few_as_can_be_and_then_as_even_as_can_be(sentences, limit):
    fitting = [
        [sum(run) for run in way]
        for way in ways_to_cut(sentences)
        if all(sum(run) <= limit or len(run) == 1 for run in way)
    ]
    found = [count_tokens(one) for one in cut_chunks(" ".join(sentences), max_tokens=limit)]
    fewest = min(map(len, fitting))
    assert len(found) == fewest
    assert max(found) == min(max(way) for way in fitting if len(way) == fewest)


def test_no_short_remnant_is_left_at_the_end():
    text = " ".join(f"Lake {number} was cold." for number in range(12))
    assert [count_tokens(one) for one in cut_chunks(text, max_tokens=50)] == [30, 30]


@settings(max_examples=40, deadline=None)
@given(st.text(), LIMITS)
def test_any_text_gives_verbatim_slices_that_lose_no_word(text, limit):
    found = cut_chunks(text, max_tokens=limit)
    start = 0
    for chunk in found:
        start = text.index(chunk, start) + len(chunk)
    assert "".join("".join(found).split()) == "".join(text.split())


def test_a_very_long_sentence_is_not_cut():
    sentence = "The lake was " + ", ".join(["cold and deep"] * 200) + "."
    assert cut_chunks(f"Short one. {sentence} Another.", max_tokens=20) == [
        "Short one.", sentence, "Another.",
    ]  # fmt: skip


def test_a_blank_text_has_no_chunk():
    assert cut_chunks(" \n ") == []


def test_a_limit_below_one_is_refused():
    with pytest.raises(SettingsError, match="max_tokens must be >= 1, got 0"):
        cut_chunks("A lake.", max_tokens=0)
