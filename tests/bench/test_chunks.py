from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepera_graph.bench.build.chunks import chunks, n_tokens
from deepera_graph.errors import SettingsError

WORDS = st.lists(st.sampled_from(["lakes", "warm", "slowly", "trout", "ice"]), min_size=1)
SENTENCES = st.lists(WORDS.map(lambda words: " ".join(words).capitalize() + "."), max_size=12)
BREAKS = st.sampled_from([" ", "  ", "\n", "\n\n"])
LIMITS = st.integers(1, 40)


@settings(max_examples=40, deadline=None)
@given(SENTENCES, BREAKS, LIMITS)
def test_chunks_hold_all_sentences_whole_and_in_order(sentences, between, limit):
    found = chunks(between.join(sentences), max_tokens=limit)
    assert " ".join(" ".join(found).split()) == " ".join(sentences)
    assert all(chunk.endswith(".") for chunk in found)


@settings(max_examples=40, deadline=None)
@given(SENTENCES, LIMITS)
def test_a_chunk_above_the_limit_is_one_sentence(sentences, limit):
    for chunk in chunks(" ".join(sentences), max_tokens=limit):
        assert n_tokens(chunk) <= limit or chunk in sentences


@settings(max_examples=40, deadline=None)
@given(SENTENCES, LIMITS)
def test_no_chunk_could_have_taken_the_next_sentence(sentences, limit):
    found = chunks(" ".join(sentences), max_tokens=limit)
    for chunk, following in pairwise(found):
        first = following[: following.index(".") + 1]
        assert n_tokens(chunk) + n_tokens(first) > limit


@settings(max_examples=40, deadline=None)
@given(st.text(), LIMITS)
def test_any_text_gives_verbatim_slices_that_lose_no_word(text, limit):
    found = chunks(text, max_tokens=limit)
    start = 0
    for chunk in found:
        start = text.index(chunk, start) + len(chunk)
    assert "".join("".join(found).split()) == "".join(text.split())


def test_a_very_long_sentence_is_not_cut():
    sentence = "The lake was " + ", ".join(["cold and deep"] * 200) + "."
    assert chunks(f"Short one. {sentence} Another.", max_tokens=20) == [
        "Short one.", sentence, "Another.",
    ]  # fmt: skip


def test_a_blank_text_has_no_chunk():
    assert chunks(" \n ") == []


def test_a_limit_below_one_is_refused():
    with pytest.raises(SettingsError, match="max_tokens must be >= 1, got 0"):
        chunks("A lake.", max_tokens=0)
