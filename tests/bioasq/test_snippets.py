"""Snippets: sentences word for word, with offsets that the official evaluator takes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepera_graph.bioasq.phase_a.ordering import (
    FoundDocument,
    Piece,
    choose_snippets,
    list_pieces,
    weigh_locally,
)
from deepera_graph.bioasq.questions import Snippet
from deepera_graph.errors import SettingsError
from deepera_graph.judges.trained.backend import local_model
from deepera_graph.text.words import split_sentences
from support.moths import ABSTRACTS, QUESTION, weigh_by_words

FOUND = [FoundDocument(name, title, text) for name, (title, text, _) in ABSTRACTS.items()]
SIX = {
    "document", "text", "beginSection", "endSection", "offsetInBeginSection", "offsetInEndSection",
}  # fmt: skip


def pieces(documents=FOUND, weigh=weigh_by_words):
    return list_pieces(QUESTION, documents, weigh=weigh)


def test_a_snippet_is_a_slice_of_its_section_with_six_keys():
    texts = {name: text for name, (_, text, _) in ABSTRACTS.items()}
    found = pieces()
    assert len(found) == sum(len(split_sentences(text)) for text in texts.values())
    for one in found:
        plain = one.snippet.to_dict()
        assert set(plain) == SIX
        text = texts[plain["document"].rpartition("/")[2]]
        begin, end = plain["offsetInBeginSection"], plain["offsetInEndSection"]
        assert text[begin:end] == plain["text"]  # the end is exclusive, as in golden files
        assert plain["beginSection"] == plain["endSection"] == "abstract"
        assert plain["document"].startswith("http://www.ncbi.nlm.nih.gov/pubmed/")


texts = st.lists(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=60), max_size=4
).map(". ".join)


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(text=texts)
def test_offsets_are_exact_in_any_text(text):
    found = list_pieces("?", [FoundDocument("1", "", text)], weigh=weigh_by_words)
    for one in found:
        assert text[one.snippet.begin : one.snippet.end] == one.snippet.text
        assert 0 <= one.probability <= 1


def test_a_document_without_an_abstract_has_its_title():
    [only] = list_pieces("?", [FoundDocument("7", "On wax moths", "  ")], weigh=weigh_by_words)
    assert (only.snippet.begin_section, only.snippet.text) == ("title", "On wax moths")
    assert (only.snippet.begin, only.snippet.end) == (0, 12)


def test_better_sentences_of_better_documents_come_first():
    same = [FoundDocument(name, "", "One. Venom lowers blood pressure in rats.") for name in "12"]
    order = [(one.snippet.document[-1], one.snippet.text[:3]) for one in pieces(same)]
    assert order[0] == ("1", "Ven")
    assert order.index(("1", "One")) < order.index(("2", "One"))
    probabilities = [one.probability for one in pieces()]
    assert probabilities == sorted(probabilities, reverse=True)


def made(*probabilities):
    return [
        Piece(
            Snippet(
                document=str(n), text="x", begin_section="abstract", begin=0,
                end_section="abstract", end=1,
            ),
            one,
        )
        for n, one in enumerate(probabilities)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("probabilities", "n"),
    [
        pytest.param([0.9, 0.05, 0.05], 1, id="one-sure"),
        pytest.param([0.9, 0.8, 0.05, 0.05], 2, id="two-sure"),
        pytest.param([0.5] * 8, 8, id="all-alike"),
        pytest.param([0.9] * 15, 10, id="never-above-ten"),
        pytest.param([0.001, 0.0], 1, id="at-least-one"),
        pytest.param([0.0, 0.0], 1, id="at-least-one-of-nothing"),
        pytest.param([], 0, id="none"),
    ],
)
def test_as_many_snippets_as_are_worth_it(probabilities, n):
    assert choose_snippets(made(*probabilities)) == made(*probabilities)[:n]


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.floats(0.001, 1), min_size=1, max_size=14))
def test_no_other_number_has_a_higher_expected_f1(values):
    ranked = sorted(values, reverse=True)
    n, total = len(choose_snippets(made(*ranked))), sum(ranked)

    def expected(k):
        return 2 * sum(ranked[:k]) / (k + total)

    assert expected(n) >= max(expected(k) for k in range(1, min(10, len(ranked)) + 1)) - 1e-12


def test_a_number_is_given_wherever_there_are_so_many():
    every = made(*[0.01] * 12)
    assert [len(choose_snippets(every, n=n)) for n in (0, 3, 10)] == [0, 3, 10]
    assert len(choose_snippets(every[:4], n=10)) == 4
    for wrong in (-1, 11):
        with pytest.raises(SettingsError, match="n_snippets"):
            choose_snippets(every, n=wrong)


def test_the_local_judge_weighs_every_sentence():
    windows = [one.window() for one in FOUND[:3]] + [FoundDocument("0", "t", " ").window()]
    weights = weigh_locally(QUESTION, windows)
    assert [len(one) for one in weights] == [len(split_sentences(w["text"])) for w in windows]
    assert max(weights[0]) == weights[0][1]  # "Blood pressure fell by 12 mmHg within an hour."
    best = pieces(FOUND[:4], weigh_locally)[0].snippet.text
    assert "pressure fell by 12 mmHg" in best


def test_documents_that_follow_the_question_closely_are_told_from_others():
    windows = [one.window() for one in FOUND] + [FoundDocument("0", "t", "").window()]
    found = local_model().align(QUESTION, windows)
    assert found[0] == max(found[:-1], key=lambda one: one.passage)
    assert found[-1] == (0, 0, 0)
    untitled = local_model().align(QUESTION, [FoundDocument("0", "", FOUND[0].abstract).window()])
    assert untitled[0].title == 0
    assert untitled[0].passage <= found[0].passage
