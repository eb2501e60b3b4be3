"""The trained judge misses a word only if no passage has anything like it."""

import pytest

from deepera_graph import EvidenceReranker
from deepera_graph.judges.base import as_judge
from deepera_graph.judges.trained import local_backend

pytestmark = pytest.mark.full

CANCER = "Does vitamin D cause cancer?"
PASSAGES = [
    "In 24 trials vitamin D lowered the risk of a respiratory infection by 19% (p = 0.003).",
    "Of 120 children given vitamin D, 31 caught a cold, and 33 of those given none (p = 0.8).",
]


@pytest.fixture(scope="module")
def judge():
    return as_judge(local_backend().judge)


def find(judge, question, texts=PASSAGES):
    return judge.missing_words(question, [{"title": "", "section": "", "text": t} for t in texts])


def test_the_outcome_that_no_passage_names_is_missed(judge):
    assert find(judge, CANCER) == ["cancer"]
    assert find(judge, "Does vitamin D prevent respiratory infections?") == []


def test_another_word_for_it_is_enough(judge):
    tumours = "Vitamin D lowered the risk of malignant tumours by 4% (p = 0.4)."
    assert find(judge, CANCER, [*PASSAGES, tumours]) == []


def test_a_passage_without_a_text_is_no_trouble(judge):
    assert find(judge, CANCER, [*PASSAGES, " "]) == ["cancer"]


def test_with_a_word_missing_nothing_is_evidence_and_no_direction_is_given():
    found = EvidenceReranker("local", threshold=0.0, answer=True).rerank(CANCER, PASSAGES)
    assert found.missing_words == ("cancer",)
    assert 'no passage names "cancer"' in found.warnings[0]
    assert {(one.band, one.direction) for one in found.kept} == {("possible", None)}
    assert found.answer["cause"] == "only possible evidence was kept"


APPLES = [
    "Wax coating kept apples firm: firmness had fallen by 6% in coated apples (p < 0.001).",
    "Orchards with two hives of bees a hectare set 19% more fruit than orchards without hives.",
]
CHEMISTRY = "Does 2,4-D at 0,0005 mg/l or 12,5 % of 1,2-dichloroethane harm bees?"


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        (CHEMISTRY, ["dichloroethane", "2,4-D"]),
        ("Does IL-6 rise in waxed apples?", ["IL-6"]),
        ("Do orchards with hives set more fruit?", []),
        ("Does iron worsen asthma in apples?", ["iron", "asthma"]),
        ("Do mice on apples get diabetes?", ["mice", "diabetes"]),
        ("Does zinc firm apples?", []),  # a short word alone may have other forms
        ("Does wax worsen asthma in apples?", ["asthma"]),
    ],
)
def test_a_name_or_short_word_that_no_passage_has_is_missed(judge, question, missing):
    assert find(judge, question, APPLES) == missing


def test_a_question_on_other_chemistry_finds_no_direction_and_no_evidence():
    found = EvidenceReranker("local", threshold=0.0).rerank(CHEMISTRY, APPLES)
    assert 'no passage names "dichloroethane" or "2,4-D"' in found.warnings[0]
    assert {(one.band, one.direction) for one in found.kept} == {("possible", None)}
