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
    assert list(find_missing(question, texts)) == missing


@pytest.mark.parametrize(
    ("question", "text", "missing"),
    [
        pytest.param("Does 1,2-dichloroethane harm bees?", "Bees", ["dichloroethane"], id="rare"),
        pytest.param("Does 2,4-D harm bees?", "Bees after 24 days", ["2,4-D"], id="places"),
        pytest.param(
            "Does 2,4-D harm bees?", "Bees and 2,4-dichlorophenoxyacetic acid", [], id="2"
        ),
        pytest.param("Does IL-6 harm bees?", "Bees and IL-60", ["IL-6"], id="hyphen"),
        pytest.param("Does IL-6 harm bees?", "Bees and il6", [], id="without-its-hyphen"),
        pytest.param("Do p53 and PM2.5 harm bees?", "Bees", ["p53", "PM2.5"], id="digit"),
        pytest.param("Does SARS-CoV-2 harm bees?", "Bees", ["SARS-CoV-2"], id="several-hyphens"),
        pytest.param(
            "Are 12,5 % of 10-day-old bees of 2019 harmed at 0,0005 mg/l?", "Bees", [], id="n"
        ),
    ],
)
def test_a_name_with_digits_hyphens_or_commas_is_missed(question, text, missing):
    assert list(find_missing(question, [text])) == missing
