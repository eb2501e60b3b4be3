"""What a question asks about and no passage names."""

import pytest

from deepera_graph.judges.heuristic.analysis import find_missing

INFECTION = [
    "Vitamin D reduced respiratory infections in adults (RR 0.81).",
    "Trials of vitamin D.",
]


@pytest.mark.parametrize(
    ("question", "texts", "missing"),
    [
        ("Does vitamin D cause cancer?", INFECTION, ["cancer"]),
        ("Does vitamin D cause cancer?", [*INFECTION, "Cancers were rarer."], []),
        ("Does vitamin D cause cancer?", [], []),
        ("Do adults have respiratory infections?", INFECTION, []),
        ("Is it infectious?", INFECTION, []),
        ("What lowers infarction?", ["Aspirin lowered the risk of MI."], ["infarction"]),
        ("What lowers myocardial infarction?", ["Aspirin lowered the risk of MI."], []),
        ("What is the effect on results?", INFECTION, []),
    ],
)
def test_a_word_of_a_science_is_missed_if_no_form_of_it_occurs(question, texts, missing):
    assert find_missing(question, texts) == missing
