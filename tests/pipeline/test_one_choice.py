"""Quote, summary and the extractive answer come from one choice of sentences."""

from dataclasses import replace

import pytest

from deepera_graph import EvidenceReranker, local_backend
from deepera_graph.testing import judged, scripted_backend

QUESTION = "Does rapamycin prevent seizures?"
TEXT = (
    "Seizures began after 3 h and were frequent. Rapamycin was given daily. "
    "Seizures were rare with rapamycin (2% against 40%). The peak was reached at 6 h."
)


def rerank(quote, **settings):
    """The only passage, quoted by a judge; rules summarize and answer."""
    rules = local_backend("rules")
    judge = scripted_backend(lambda task: judged(0.9, quote=quote)).judge
    reranker = EvidenceReranker(replace(rules, judge=judge), answer=True, **settings)
    return reranker.rerank(QUESTION, [{"id": "a", "text": TEXT}])


@pytest.mark.parametrize(
    "quote", ["Rapamycin was given daily.", "Seizures were rare with rapamycin"]
)
def test_summary_and_answer_begin_with_the_quote(quote):
    result = rerank(quote)
    [passage] = result.kept
    assert passage.summary.startswith(quote)
    assert result.answer["text"].startswith(quote)
    assert result.answer["citations"] == ["a"]


def test_a_quote_that_is_not_in_the_passage_begins_no_summary():
    [passage] = rerank("Rapamycin works wonders.").kept
    assert passage.quote_status == "not_found"
    assert "wonders" not in passage.summary


def test_a_quote_in_other_typography_is_summarized_in_the_words_of_the_passage():
    [passage] = rerank("Rapamycin  was given\ndaily.").kept
    assert passage.quote_status == "normalised"
    assert passage.summary.startswith("Rapamycin was given daily.")


def test_a_quote_that_names_nothing_of_the_question_is_no_answer():
    result = rerank("The peak was reached at 6 h.")
    assert result.answer == {
        "text": "insufficient evidence",
        "citations": [],
        "status": "insufficient_evidence",
        "cause": "no sentence quoted names anything that is asked about",
    }


def test_the_rules_quote_what_they_summarize_first():
    reranker = EvidenceReranker("rules", threshold=0.0, answer=True)
    result = reranker.rerank(QUESTION, [TEXT])
    [passage] = result.kept
    assert passage.summary.startswith(passage.quote)
    assert result.answer["text"].startswith(passage.quote)
