import time

import pytest

from deepera_graph.judges.heuristic.topicality import find_acronyms, spell_out


def test_acronyms_are_found_in_order_without_their_plural():
    text = "Six RCTs compared HRQoL, BMI and T2DM in Kenya; We saw Beetles."
    assert find_acronyms(text) == ["RCT", "HRQoL", "BMI", "T2DM"]


@pytest.mark.parametrize(
    ("acronym", "text", "words"),
    [
        ("HRQoL", "does it change health-related quality of life?", 5),
        ("GERD", "is gastroesophageal reflux disease common", 3),
        ("BP", "low blood pressure", 2),
        ("LOS", "the length of stay", 3),
        ("VLBW", "very low birth weight infants", 4),
        ("IL", "influence of life", 0),
        ("MRI", "mostly red ink", 3),
        ("XYZ", "blood pressure", 0),
        ("BMI", "", 0),
        ("TB", "tuberculosis", 0),
    ],
)
def test_an_acronym_is_spelled_out_by_neighbouring_words(acronym, text, words):
    assert len(spell_out(acronym, text)) == words


def test_a_repetitive_text_takes_no_time():
    before = time.process_time()
    spell_out("AAAAAAAB", "aaaaaaaaaaaaaaaaaaaa " * 400)
    assert time.process_time() - before < 2
