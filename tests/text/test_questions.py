"""Claims as questions."""

import pytest

from deepera_graph.text.questions import ask_claim, asks_yes_or_no


@pytest.mark.parametrize(
    ("claim", "question"),
    [
        ("Vitamin C prevents colds", "Does vitamin C prevent colds?"),
        ("Statins lower mortality in adults.", "Do statins lower mortality in adults?"),
        (
            "BRCA1 loss increases the risk of cancer.",
            "Does BRCA1 loss increase the risk of cancer?",
        ),
        ("Tea is associated with sleep loss.", "Is tea associated with sleep loss?"),
    ],
)
def test_a_short_claim_of_one_clause_becomes_a_question(claim, question):
    assert ask_claim(claim) == question
    assert asks_yes_or_no(question)


@pytest.mark.parametrize(
    "claim",
    [
        "",
        "Does vitamin C prevent colds?",
        "vitamin C colds",
        "Vitamin C does not prevent colds.",
        "Vitamin C, which is cheap, prevents colds.",
        "Vitamin C prevents colds and reduces fever.",
        "Tea is a drink of the old.",
        "Vitamin C prevents",
        "Increases of dose",
    ],
)
def test_what_is_no_short_claim_is_left(claim):
    assert ask_claim(claim) == ""
