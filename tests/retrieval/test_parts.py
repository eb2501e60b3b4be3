"""Long texts cut between sentences."""

import pytest

from deepera_graph.retrieval.files import cut_text

SENTENCE = "The otters ate the urchins that had grazed the kelp."  # 10 words


def sentences(n):
    return [f"In plot {i} the otters ate most of the urchins." for i in range(n)]


def test_a_short_text_stays_as_it_is():
    assert cut_text(f"  {SENTENCE}\n") == [SENTENCE]


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_blank_text_has_no_parts(text):
    assert cut_text(text) == []


def test_parts_are_about_equal_and_hold_every_sentence_once_in_order():
    parts = cut_text(" ".join(sentences(21)), max_words=100)
    assert [len(part.split()) for part in parts] == [70, 70, 70]
    assert " ".join(parts) == " ".join(sentences(21))


def test_parts_are_verbatim_with_their_line_breaks():
    text = "\n".join(sentences(4))
    parts = cut_text(text, max_words=20)
    assert parts == ["\n".join(sentences(4)[:2]), "\n".join(sentences(4)[2:])]


def test_no_part_is_longer_than_allowed_unless_it_is_one_sentence():
    long = "The " + "very " * 60 + "old otter slept."
    parts = cut_text(" ".join([*sentences(3), long, *sentences(3)]), max_words=25)
    assert [part for part in parts if len(part.split()) > 25] == [long]


def test_a_text_without_full_stops_is_still_cut():
    parts = cut_text("kelp " * 5000, max_words=200)
    assert len(parts) >= 25
    assert sum(len(part.split()) for part in parts) == 5000
