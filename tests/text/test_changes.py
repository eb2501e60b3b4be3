"""Changes that a summary turns around."""

import pytest

from deepera_graph.text.drift import turned_changes

TEA = "In the tea group fasting glucose fell by 12 mg/dL."
TROUT = "Trout numbers rose after liming, while perch declined."
NOT = "Liming did not reduce the number of trout in any lake."


@pytest.mark.parametrize(
    ("summary", "passage", "turned"),
    [
        ("Fasting glucose rose by 12 mg/dL.", TEA, ["rose, where the passage has fell"]),
        ("Fasting glucose was reduced by 12 mg/dL.", TEA, []),
        ("Tea increased fasting glucose.", TEA, ["increased, where the passage has fell"]),
        ("The perch rose.", TROUT, ["rose, where the passage has declined"]),
        ("Perch declined.", TROUT, []),
        ("Trout numbers rose after liming.", TROUT, []),
        ("Trout declined after liming.", TROUT, ["declined, where the passage has rose"]),
        ("Liming reduced the number of trout.", NOT,
         ["reduced, where the passage has “did not reduce”"]),
        ("Liming did not reduce the number of trout.", NOT, []),
        ("Liming failed to reduce the trout.", NOT, []),
        ("Mortality was lower with the drug.", "Mortality was higher with placebo.", []),
        ("Survival increased.", "Reduced glucose increased survival.", []),
        ("Coating reduced colony growth.",
         "Coating reduced bee density, nesting, and colony growth.", []),
        ("Coating increased colony growth.", "Coating reduced colony growth.",
         ["increased, where the passage has reduced"]),
        ("Liming reduced the trout.", "No trout were reduced by liming, and perch fell.",
         ["reduced, where the passage has “no trout were reduced”"]),
        ("Boats rose.", TEA, []),
        ("Nothing of the kind.", TEA, []),
        ("", TEA, []),
    ],
)  # fmt: skip
def test_a_change_is_turned_if_the_passage_has_the_other_one_alone(summary, passage, turned):
    assert turned_changes(summary, passage) == turned


def test_words_of_a_passage_turn_nothing_around():
    text = f"{TEA} {TROUT} {NOT}"
    for sentence in (TEA, TROUT, NOT, text):
        assert turned_changes(sentence, text) == []
