"""What calls cost, added up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph import Usage
from deepera_graph.usage import merge_usage

usages = st.builds(Usage, *[st.integers(0, 1000)] * 3)
stages = st.dictionaries(st.sampled_from("abc"), usages.map(Usage.record))


@pytest.mark.full
@given(usages, usages, usages)
def test_usages_add_up_in_any_order(one, two, three):
    assert (one + two) + three == three + (two + one)
    assert one + Usage() == one


@given(usages)
def test_a_usage_survives_its_record(usage):
    assert Usage.of(usage.record()) == usage


@pytest.mark.full
@given(st.lists(stages))
def test_merging_adds_stage_by_stage(parts):
    merged = {}
    for part in parts:
        merged = merge_usage(merged, part)
    for stage in "abc":
        found = [Usage.of(part[stage]) for part in parts if stage in part]
        assert sum(found, Usage()) == Usage.of(merged.get(stage, Usage().record()))


def test_none_starts_again():
    assert merge_usage({"a": Usage(1).record()}, None) == {}
    assert merge_usage(None, {"a": Usage(1).record()}) == {"a": Usage(1).record()}


def test_what_is_merged_stays_as_it_was():
    old, new = {"a": Usage(1).record()}, {"a": Usage(2).record()}
    assert merge_usage(old, new)["a"]["calls"] == 3
    assert (old["a"]["calls"], new["a"]["calls"]) == (1, 2)
