"""The parts of a run's limits that workers have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph import SettingsError
from deepera_graph.jobs.ray import Share
from deepera_graph.settings.budget import Budget
from deepera_graph.usage import Usage


def shares(n, **more):
    return [Share(n_workers=n, place=place, **more) for place in range(n)]


@given(n=st.integers(1, 50), whole=st.integers(1, 10_000))
def test_parts_of_a_count_are_the_whole_and_differ_by_one_at_most(n, whole):
    if whole < n:
        with pytest.raises(SettingsError, match=f"{whole} cannot be divided among {n}"):
            shares(n)[0].divide_count("--max-calls", whole)
        return
    parts = [share.divide_count("--max-calls", whole) for share in shares(n)]
    assert sum(parts) == whole
    assert max(parts) - min(parts) <= 1


def test_limits_of_every_model_in_a_spec_are_divided_and_nothing_else_is():
    limits = {"calls_at_once": 5, "requests_per_minute": 300.0, "tokens_per_minute": None}
    spec = {
        "kind": "screened",
        "floor": 0.2,
        "screen": {"kind": "local"},
        "backend": {"kind": "llm", "model": "a:b", "timeout": 30, "limits": limits},
    }
    first, second = (share.divide_spec(spec) for share in shares(2))
    part = {"calls_at_once": 3, "requests_per_minute": 150.0, "tokens_per_minute": None}
    assert first == {**spec, "backend": {**spec["backend"], "limits": part}}
    assert second["backend"]["limits"]["calls_at_once"] == 2


def test_parts_of_a_budget_are_the_whole_but_prices_and_time_are_those_of_the_run():
    whole = Budget(
        max_calls=7, max_tokens=100, max_seconds=60, max_cost=3, input_price=1, output_price=2
    )
    parts = [share.divide_budget(whole) for share in shares(3, seconds=20.0)]
    assert [one.max_calls for one in parts] == [3, 2, 2]
    assert sum(one.max_cost for one in parts) == pytest.approx(3)
    assert {(one.input_price, one.output_price, one.max_seconds) for one in parts} == {(1, 2, 40)}


def test_a_worker_in_place_of_a_lost_one_has_the_rest_of_its_budget():
    meter = Share(n_workers=2, spent=Usage(calls=4)).build_meter(Budget(max_calls=10))
    meter.admit()
    with pytest.raises(Exception, match="5 calls"):
        meter.admit()
