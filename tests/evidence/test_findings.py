"""A finding is of one outcome, the one that is asked for, or it is left empty."""

import pytest

from deepera_graph.evidence.table.cells import find_outcome, read_cells


@pytest.mark.parametrize(
    ("said", "cells"),
    [
        (
            "Gout did not differ (p = 0.6), although weight fell by 5 kg (p = 0.01)",
            "0.6 no difference",
        ),
        (
            "Although weight fell by 5 kg (p = 0.01), gout did not differ (p = 0.6)",
            "0.6 no difference",
        ),
        ("Weight fell by 5 kg (p = 0.01), and gout fell by 4% (p = 0.02)", "4% 0.02 lower"),
        ("Weight fell by 5 kg and gout by 4% (p = 0.02)", "4% 0.02"),
        ("Gout rose by 5% and weight by 4 kg (p = 0.02)", "5% higher"),
        ("Gout fell by 5% in men and women (p = 0.02)", "5% 0.02 lower"),
        ("Gout fell by 5% (p = 0.02), but did not differ significantly later", "5% 0.02"),
        ("Gout did not differ between men and women (p = 0.6)", "0.6 no difference"),
        ("Weight fell by 5 kg (p = 0.01) and fractures by 4% (p = 0.02)", ""),
        ("Gout fell by 5% (p = 0.01) and other gout rose by 4% (p = 0.02)", ""),
        ("Weight fell less (p = 0.03), gout numbers were similar (6 v 9)", "no difference"),
        (
            "Gout cost more (difference $2,315, 95% CI $1,980 to $2,650), and falls fewer "
            "(OR 0.34, p = 0.01)",
            "2315 higher",
        ),
        ("Gout was less (95% CI 1 to 3), stay shorter (1 v 2 days, p = 0.01)", "lower"),
        ("Gout fell by 5% (p = 0.01), while high doses increased it by 3% (p = 0.03)", ""),
        ("Coffee kept gout low: it rose by 6% with it and by 31% without (p = 0.01)", "0.01 lower"),
        ("Coffee lowered gout in men, with no change in women", ""),
        (
            "There was no difference in gout (2% in each) or falls (5% v 7%, p = 0.4)",
            "no difference",
        ),
        ("Gout was less in users (5 g) than in others (6 g, p = 0.01)", "0.01 lower"),
        (
            "Falls came to 8 and 6 (p = 0.59), and gout to 12 (2%) and 3 (1%), respectively "
            "(p = 0.02)",
            "0.02",
        ),
        ("Gout and fractures were rarer, fewer and more frequent (p = 0.01)", "0.01"),
    ],
)
def test_what_the_outcome_does_not_decide_stays_empty(said, cells):
    found = read_cells(
        f"{said}. Nothing else.", (0, 9), outcome=find_outcome("Does coffee reduce gout?")
    )
    names = ("effect", "p", "direction")
    assert " ".join(found[one].value for one in names if one in found) == cells


@pytest.mark.parametrize(
    ("said", "way"),
    [
        (
            "a 2.6-fold (95% CI 1.4 to 5.0, p = 0.005) higher risk of falls",
            "2.6-fold 1.4 to 5.0 higher",
        ),
        ("a 20% (95% CI 10 to 30) greater risk of falls", "20% 10 to 30 higher"),
        ("a 20% [95% CI 10 to 30] lower risk of falls", "20% 10 to 30 lower"),
    ],
)
def test_brackets_between_a_number_and_its_word_change_nothing(said, way):
    found = read_cells(f"Adults in the lowest third of iron had {said} than those in the highest.")
    names = ("effect", "interval", "direction")
    assert " ".join(found[one].value for one in names if one in found) == way


@pytest.mark.parametrize(
    ("said", "cells"),
    [
        ("Blood loss was 705 mL, 733 mL and 1,102 mL, respectively (p < 0.001)", "<0.001"),
        (
            "Yield rose by 8%, 15% and 12%, respectively, beside the control (p < 0.05)",
            "<0.05 higher",
        ),
        ("Death was rarer, 3% and 5%, respectively (OR 0.6, 95% CI 0.5 to 0.9)", "0.6 lower"),
        ("Gout: odds ratio 1.29 for tea, 1.26 for coffee, and 1.32 for both", ""),
        ("Sprint time was faster with coffee (p = 0.01)", "0.01"),
        ("Runners were faster with coffee (p = 0.01)", "0.01 higher"),
        ("A loss of 5 kg was seen (p = 0.01)", "5 kg 0.01 lower"),
        ("Weight rose by 6.3 kg with coffee compared with 7.4 kg with tea (p = 0.01)", "0.01"),
        ("Pressure was 3.3 mm Hg lower (p = 0.01)", "3.3 mm Hg 0.01 lower"),
    ],
)
def test_what_is_told_in_turn_is_no_effect(said, cells):
    found = read_cells(f"{said}.")
    names = ("effect", "p", "direction")
    assert " ".join(found[one].value for one in names if one in found) == cells


@pytest.mark.parametrize(
    ("result", "effect"),
    [
        ("Gout was as frequent with coffee (risk ratio, 0.97; 95% CI, 0.85-1.11)", "0.97"),
        ("Gout was less frequent with coffee (risk ratio, 0.87; 95% CI, 0.80-0.95)", ""),
        ("Falls were as frequent with coffee (risk ratio, 0.97; 95% CI, 0.85-1.11)", ""),
        (
            "Gout of men had a risk ratio of 0.97 (95% CI, 0.85-1.11). Gout of women had a "
            "risk ratio of 0.99 (95% CI, 0.90-1.11)",
            "",
        ),
    ],
)
def test_a_conclusion_takes_the_only_numbers_of_its_outcome(result, effect):
    decides = "Coffee did not reduce gout."
    found = read_cells(
        f"{decides} {result}.", (0, len(decides)), outcome=find_outcome("Does coffee reduce gout?")
    )
    assert found["direction"].value == "no difference"
    assert (found["effect"].value if "effect" in found else "") == effect


def test_an_acronym_names_the_outcome_that_its_words_do():
    text = (
        "Gout arthritis attacks (GAA) were counted. Coffee did not reduce GAAs (OR 0.98, 95% CI "
        "0.93 to 1.02), but sleep was shorter (p = 0.01)."
    )
    found = read_cells(text, (50, 90), outcome=frozenset(["gout", "attack"]))
    names = ("effect", "interval", "p", "direction")
    assert [found[one].value for one in names if one in found] == [
        "0.98",
        "0.93 to 1.02",
        "no difference",
    ]


def test_where_what_decides_tells_nothing_only_the_outcome_does():
    text = "Coffee harms sleep. Effects grew with time (p = 0.01)."
    assert "p" not in read_cells(text, (0, 19), outcome=frozenset(["sleep"]))
    text = "Coffee harms us. Sleep fell by 5% (p = 0.01)."
    assert read_cells(text, (0, 16), outcome=frozenset(["sleep"]))["p"].value == "0.01"


@pytest.mark.parametrize(
    ("question", "cells"),
    [
        ("Does warming advance flowering of forbs?", ""),
        ("Does warming lower seed set?", "12% 0.09 no difference"),
        ("", "12% 0.09 no difference"),
    ],
)
def test_a_finding_of_another_outcome_than_is_asked_for_is_left_out(question, cells):
    decides = "Seed set fell by 12% (p = 0.09)."
    text = f"{decides} Warming brought flowering forward by 6.2 days (p = 0.01)."
    found = read_cells(text, (0, len(decides)), outcome=find_outcome(question))
    names = ("effect", "p", "direction")
    assert " ".join(found[one].value for one in names if one in found) == cells
