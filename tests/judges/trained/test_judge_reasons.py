"""Reasons beside scores: neither says what the other denies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph.judges.trained.model import Signs, explain

shares = st.floats(0, 1)
SIGNS = st.builds(
    Signs,
    evidence=shares,
    topic=shares,
    results=shares,
    support=st.none() | shares,
    quote=st.just(""),
)


@given(SIGNS)
def test_what_is_said_points_where_the_score_does(signs):
    told = explain(signs)
    likely = signs.evidence >= 0.5
    assert told.startswith("for it: " if likely else "against it: ")
    assert not (likely and ("hardly" in told or "no related" in told))
    numbers = [float(one.partition(")")[0]) for one in told.split("(")[1:]]
    assert all(one >= 0.5 if likely else one <= 0.5 for one in numbers)
    assert len(told) <= 104


@pytest.mark.parametrize(
    ("signs", "told"),
    [
        ({"evidence": 0.92, "results": 0.35, "topic": 0.81}, "for it: on topic (0.81)"),
        ({"evidence": 0.1, "results": 0.35, "topic": 0.81}, "against it: hardly reports results"),
        ({"evidence": 0.6, "results": 0.1, "topic": 0.2}, "for it: how its sentences match"),
        (
            {"evidence": 0.1, "results": 0.9, "topic": 0.2, "support": 0.8},
            "against it: reports results and is on topic, but hardly on this very question",
        ),
    ],
)
def test_the_strongest_sign_does_not_have_to_agree_with_the_score(signs, told):
    assert explain(Signs(**{"support": None, "quote": "", **signs})).startswith(told)
