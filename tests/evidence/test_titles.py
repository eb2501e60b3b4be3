"""A title that states nothing, or counts falls, says the opposite of no claim."""

import pytest

from deepera_graph.text.drift import turned_changes, turned_findings
from evidence.test_verdict import judge

CLAIM = "Vitamin D did not reduce falls."
TEXT = "Vitamin D did not reduce falls in 200 adults (p = 0.5)."


@pytest.mark.full
@pytest.mark.parametrize(
    "title",
    [
        "Vitamin D and falls in adults",
        "Falls in adults with vitamin D",
        "Vitamin D with calcium and falls: a trial",
        "Effect of reduced doses of vitamin D on falls",
        "Risk of falls with vitamin D",
        "Vitamin D for the prevention of falls",
        "Does vitamin D reduce falls? A trial",
        "Fall prevention with vitamin D",
        "Recurrent falls and vitamin D",
    ],
)
def test_a_title_that_states_nothing_gives_no_note(tmp_path, title):
    pair = judge(tmp_path, CLAIM, TEXT, title)
    assert (pair.verdict, pair.notes) == ("supported", ())


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Vitamin D did not reduce falls", "Vitamin D and falls in adults"),
        ("Vitamin D had no effect on falls", "Vitamin D changed the rate of falls in adults"),
        ("Exercise prevents declines in memory", "Exercise and declines in memory"),
        ("Falls were not reduced by exercise", "Recurrent falls in the exercise group"),
        ("Vitamin D did not reduce falls", "Supplemental vitamin D and incident falls in VITAL"),
        ("Training did not raise the risk of falls", "Training and falls among the old"),
        ("Coffee limits the rise of glucose", "A rate of rise of glucose with coffee"),
        ("Shading did not slow the decline of kelp", "Shading and decline of kelp"),
    ],
)
def test_a_noun_that_looks_like_a_verb_of_change_turns_nothing(claim, text):
    assert not turned_changes(claim, text)
    assert not turned_findings(claim, text)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Glucose rises in mice after tea", "Glucose falls in mice after tea"),
        ("Biochar reduced pulses of peat", "Biochar increases pulses of peat"),
        ("Glucose did not fall in mice", "In mice glucose falls"),
        ("Vitamin D increased falls in adults", "Vitamin D reduced falls in adults"),
        ("There was evidence of a rise in glucose", "There was evidence of a decline in glucose"),
        ("Pressure drops and rises in deep water", "Pressure does not drop in deep water"),
    ],
)
def test_a_verb_of_change_is_still_turned(claim, text):
    assert turned_changes(claim, text)


@pytest.mark.full
def test_what_stands_behind_the_colon_of_a_title_counts(tmp_path):
    title = "Effect of vitamin D on falls: vitamin D reduces falls"
    pair = judge(tmp_path, CLAIM, TEXT, title)
    assert pair.notes == ("its title may say the opposite: “did not reduce”, where it has reduces",)
