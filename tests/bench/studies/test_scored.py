"""What a filter hands on, from scores that are kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.study_lakes import Judge, fixed, lab, lakes
from deepera_graph.lab.studies.rerank.filtering import check_prefix


def question(scores, *, unproven=(), golden=(2,)):
    judge = Judge(fixed(*scores), unproven=unproven)
    (one,) = lab([judge], [lakes(1, n=len(scores), golden=golden)]).runs()
    return one.questions[0]


@pytest.mark.parametrize(
    ("scores", "threshold", "kept"),
    [
        pytest.param([0.2, 0.9, 0.5], 0.5, ("c2", "c3"), id="threshold-is-inclusive"),
        pytest.param([-1, 0.6, 0.1], 0, ("c2", "c3"), id="failure-never-kept"),
        pytest.param([0.1, 0.2, 0.3], 0.8, (), id="nothing-kept"),
        pytest.param([0.5, 0.5, 0.9], 0.5, ("c3", "c1", "c2"), id="a-tie-goes-by-first-stage"),
        pytest.param([0.1, 0.2, -1], None, ("c2", "c1", "c3"), id="no-filter-keeps-all"),
    ],
)
def test_what_is_kept(scores, threshold, kept):
    assert question(scores).keep(threshold=threshold).ranked == kept


def test_passages_without_proof_are_held_back():
    one = question([0.9, 0.8, 0.7], unproven=(1,))
    assert one.keep(threshold=0.5).ranked == ("c2", "c3")
    assert one.keep(threshold=None).ranked == ("c1", "c2", "c3")


def test_the_kept_can_stand_in_retrieval_order():
    one = question([0.6, 0.1, 0.9, 0.8])
    assert one.keep(threshold=0.5, n=2, order="retrieval").ranked == ("c3", "c4")


def test_reasons_and_quotes_are_found_by_passage():
    assert question([0.1, 0.9]).why("c1") == ("because of 1", "Passage 1")


@pytest.mark.full
@given(
    scores=st.lists(st.floats(0, 1), min_size=2, max_size=12),
    threshold=st.floats(0, 1),
    n=st.integers(1, 12),
)
def test_a_filter_never_lifts_the_golden_passage(scores, threshold, n):
    found = check_prefix([question(scores)], threshold=threshold, n=n)
    assert (found.n_prefixes, found.n_better) == (1, 0)
    assert "no HitRate@K" in found.says("judge")


def test_a_filter_that_asks_for_proof_can_lift_it():
    found = check_prefix([question([0.9, 0.8, 0.1], unproven=(1,))], threshold=0.5, n=5)
    assert (found.n_prefixes, found.n_better) == (0, 1)
    assert "holds back passages without a quote" in found.says("judge")
