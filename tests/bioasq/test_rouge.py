"""ROUGE as ROUGE-1.5.5 gives it."""

import json

import pytest

from deepera_graph.bioasq.measures import ROUGE, rouge, tokenize
from support.bioasq import FIXTURES

VALUES = FIXTURES / "rouge_expected.json"


def test_one_word_that_differs():
    found = rouge("the cat sat", ["the cat lay"])
    assert found == {
        **{f"rouge-2_{what}": 0.5 for what in ("precision", "recall", "f1")},
        **{f"rouge-su4_{what}": 0.6 for what in ("precision", "recall", "f1")},
    }


def test_case_and_full_stops_make_no_difference():
    assert set(rouge("Moss Holds Water", ["moss holds water."]).values()) == {1.0}


@pytest.mark.parametrize("answer", ["", "moss", "β"])
def test_an_answer_of_less_than_two_words_scores_0(answer):
    assert set(rouge(answer, [answer]).values()) == {0.0}


def test_references_are_averaged():
    both = rouge("moss holds water", ["moss holds water", "ferns need shade"])
    assert both["rouge-2_recall"] == 0.5


def test_a_reference_is_needed():
    with pytest.raises(ValueError, match="needs a reference"):
        rouge("moss", [])


def test_hyphens_separate_and_other_letters_vanish():
    assert tokenize("TGF-beta1, naïve; 45.3%") == ["tgf", "beta1", "na", "ve", "45", "3"]


@pytest.mark.skipif(not VALUES.exists(), reason="needs the values of ROUGE-1.5.5")
def test_every_value_is_that_of_rouge():
    cases = json.loads(VALUES.read_text(encoding="utf-8"))
    assert len(cases) == 15
    for one in cases.values():
        expected = one["plain"]
        assert tuple(expected) == ROUGE
        found = rouge(one["hypothesis"], one["references"])
        assert found == pytest.approx(expected, abs=1e-5)
