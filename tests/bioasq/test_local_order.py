"""How the local judge orders documents: every part counts, and whatever fails is told."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepera_graph import EvidenceReranker
from deepera_graph.bioasq.phase_a.ordering import (
    FoundDocument,
    find_local_judge,
    logit,
    value_of,
    weigh_with,
)
from deepera_graph.bioasq.phase_a.search import DocumentSearch
from deepera_graph.judges.trained.reading.vectors import Alignment
from support.moths import ABSTRACTS, QUESTION, Library
from support.scripted import Script

pytestmark = pytest.mark.full

shares = st.floats(0, 1)


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[shares] * 5), st.integers(0, 4), st.floats(0.01, 0.5))
def test_more_of_anything_is_never_worse(parts, place, more):
    def value(one):
        return value_of(one[0], one[1], Alignment(*one[2:]))

    better = [one + more if n == place else one for n, one in enumerate(parts)]
    assert value(better) >= value(parts)


@settings(max_examples=40, deadline=None)
@given(shares)
def test_log_odds_are_finite_and_symmetric(probability):
    assert abs(logit(probability)) < 10
    assert abs(logit(probability) + logit(1 - probability)) < 1e-6


def test_who_judges_locally_is_found():
    assert find_local_judge(EvidenceReranker("local")) is not None
    assert find_local_judge(EvidenceReranker("rules")) is None
    assert find_local_judge(EvidenceReranker(Script({}).backend())) is None


def test_sentences_of_a_document_that_is_behind_weigh_less():
    judge = find_local_judge(EvidenceReranker("local"))
    text = "Blood pressure fell by 12 mmHg within an hour."
    near = FoundDocument("1", "Wax moth venom lowers blood pressure in rats", text).window()
    far = FoundDocument("2", "Notes on the harvest of beets", text).window()
    [[one], [other]] = weigh_with(judge)(QUESTION, [near, far])
    assert one > other
    assert weigh_with(judge)(QUESTION, []) == []


def test_weights_that_cannot_be_loaded_are_told(tmp_path):
    (tmp_path / "SHA256SUMS").write_text("")
    backend = {"kind": "local", "weights": str(tmp_path)}
    result = DocumentSearch(Library(), judge=backend).search(QUESTION)
    assert result.outcome == "degraded"
    assert "the local judge cannot be loaded" in result.unusable
    assert len(result.documents) == 10
    assert {one.pmid for one in result.documents} <= {*ABSTRACTS}
