import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph.text.words import LONGEST, drop_label, split_sentences


def texts(text):
    return [sentence.text for sentence in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("One. Two.", ["One.", "Two."], id="plain"),
        pytest.param("Frost killed buds (P=.03). Yield fell.", 2, id="bracketed-statistic"),
        pytest.param("Lee et al. (2001) agree. So do we.", 2, id="et-al-before-a-year"),
        pytest.param("This was seen by Lee et al. The rest differs.", 2, id="et-al-at-the-end"),
        pytest.param("See Fig. 3 and Eq. 4. Then stop.", 2, id="figure"),
        pytest.param("Lime vs. Gypsum was tested, i.e. Two soils.", 1, id="versus"),
        pytest.param("Cultures of E. coli K-12 grew. Others died.", 2, id="species"),
        pytest.param("J. Moss counted 3.5 ticks, p < 0.05. None bit.", 2, id="initial-decimals"),
        pytest.param("Rats got vitamin C. The rest got none.", 2, id="single-letter-ends"),
        pytest.param("It rose with vitamin D. Earlier work differs.", 2, id="letter-of-a-vitamin"),
        pytest.param("No cure of hepatitis B. Harms were rare.", 2, id="letter-of-a-virus"),
        pytest.param("It was seen by J. Moss and A. B. Lee. Others differ.", 2, id="initials"),
        pytest.param("It lasted 5 min. Then it rained.", 2, id="unit"),
        pytest.param("Snow melted early.In the valley it stayed.", 2, id="space-missing"),
        pytest.param("Does ice float? Yes! It does.", 3, id="question-and-exclamation"),
        pytest.param("a line that\nwraps here. Next one.", 2, id="line-break"),
        pytest.param("Heading\n\nText below it", ["Heading", "Text below it"], id="empty-line"),
        pytest.param("1. First point\n2. Second point", 2, id="numbered-list"),
        pytest.param("no full stop at all", ["no full stop at all"], id="no-end"),
        pytest.param("12.5 3.4, 7", ["12.5 3.4, 7"], id="no-letters"),
        pytest.param("alpha; beta; gamma", ["alpha; beta; gamma"], id="short-semicolons"),
        pytest.param(" \n\t ", [], id="blank"),
        pytest.param("", [], id="empty"),
    ],
)
def test_sentences_of_scientific_prose(text, expected):
    found = texts(text)
    assert (len(found) if isinstance(expected, int) else found) == expected


def test_an_endless_sentence_is_cut_at_semicolons():
    found = texts("; ".join(f"plot {number} stayed bare" for number in range(90)))
    assert len(found) > 1
    assert all(len(sentence) <= LONGEST for sentence in found)
    assert all(sentence.endswith(";") for sentence in found[:-1])


@given(st.text(alphabet="aB.?! \n;,1()é", max_size=300))
def test_each_sentence_is_a_slice_in_order_and_nothing_but_space_is_lost(text):
    found = split_sentences(text)
    assert all(text[s.start : s.end] == s.text == s.text.strip() != "" for s in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert "".join("".join(s.text.split()) for s in found) == "".join(text.split())


@pytest.mark.full
@pytest.mark.parametrize("unit", ["word ", "A. b. ", ".", ".x", "\n \t", "(.')", "no. 5 "])
def test_two_hundred_thousand_characters_take_no_time(unit):
    text = unit * (200_000 // len(unit)) + "x"
    before = time.process_time()
    split_sentences(text)
    assert time.process_time() - before < 2


def test_a_list_that_is_changed_does_not_change_the_next():
    first = split_sentences("Ice melts. Snow does too.")
    first.clear()
    assert texts("Ice melts. Snow does too.") == ["Ice melts.", "Snow does too."]


@pytest.mark.parametrize(
    ("sentence", "bare"),
    [
        ("Conclusions: Shade cut rust.", "Shade cut rust."),
        ("CONCLUSION AND RELEVANCE: Shade cut rust.", "Shade cut rust."),
        ("METHODS/PRINCIPAL FINDINGS: Rust fell.", "Rust fell."),
        ("Main outcome measures: Rust, and yield.", "Rust, and yield."),
        *((one, one) for one in ("Rust and shade: a trial.", "Results:", "results: rust fell.")),
        *((one, one) for one in ("Shade: results of a trial.", "Results showed: rust fell.")),
    ],
)
def test_the_label_of_a_part_of_an_abstract_is_dropped_and_nothing_else(sentence, bare):
    assert drop_label(sentence) == bare
