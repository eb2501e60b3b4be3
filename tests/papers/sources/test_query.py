"""What services are asked for, made of a question."""

import pytest

from deepera_graph.papers.sources import SourceQuery


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Does green tea lower fasting glucose?", "(green AND tea) OR (fasting AND glucose)"),
        (
            "What mechanism links gut microbiota to depression?",
            "(gut AND microbiota) OR depression",
        ),
        ("popularity bias", "popularity AND bias"),
        (
            "software maintenance tools, excluding static analysis",
            "software AND maintenance AND tools",
        ),
        ('say "x" OR (y', "say OR x OR y"),
        ("AND OR NOT", "and OR or OR not"),
        ("β-catenin", "β AND catenin"),
    ],
)
def test_a_question_becomes_groups_without_operators_and_exclusions(question, asked):
    assert SourceQuery.of(question).join() == asked


def test_a_long_group_becomes_pairs_as_all_of_its_words_find_nothing():
    query = SourceQuery.of("How do language model citation hallucinations arise?")
    assert query.groups == (
        ("language", "model"),
        ("model", "citation"),
        ("citation", "hallucinations"),
    )


def test_an_intent_that_is_known_says_what_is_asked_for():
    intent = {
        "topic": "medicine",
        "entity_type": "drug: metformin; outcome: HbA1c",
        "intent": "other",
        "expected_answer_type": "other",
    }
    assert SourceQuery.of("Does it work?", intent).groups == (("metformin",), ("hba1c",))
