"""Where the line is drawn."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph import Gap, PerIntent, Quantile, SettingsError
from deepera_graph.pipeline.score import cut
from deepera_graph.settings.thresholds import threshold_from_plain, threshold_to_plain

shares = st.floats(0, 1)
scores = st.lists(st.floats(0, 1), max_size=40)
rules = st.one_of(
    st.builds(Quantile, share=shares, floor=shares),
    st.builds(Gap, floor=shares),
    st.builds(
        PerIntent,
        values=st.dictionaries(st.sampled_from(["mechanism", "other"]), shares),
        default=shares,
    ),
    shares,
)


@pytest.mark.full
@given(rules, scores, st.randoms(use_true_random=False))
def test_a_cut_is_in_range_and_does_not_depend_on_the_order_of_scores(rule, values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    found = cut(rule, values, "mechanism")
    assert 0 <= found <= 1
    assert cut(rule, shuffled, "mechanism") == found


@pytest.mark.full
@given(st.builds(Quantile, share=shares, floor=shares) | st.builds(Gap, floor=shares), scores)
def test_a_rule_that_looks_at_scores_never_goes_under_its_floor(rule, values):
    assert cut(rule, values, "other") >= rule.floor
    assert cut(rule, [], "other") == rule.floor


@pytest.mark.full
@given(st.builds(Quantile, share=shares, floor=shares) | st.builds(Gap, floor=shares), scores)
def test_a_rule_keeps_something_if_anything_reaches_its_floor(rule, values):
    found = cut(rule, values, "other")
    reaches_floor = any(value >= rule.floor for value in values)
    assert any(value >= found for value in values) == reaches_floor


@pytest.mark.full
@given(shares, scores.filter(bool))
def test_a_quantile_keeps_its_share_and_ties_of_the_last(share, values):
    found = cut(Quantile(share=share, floor=0), values, "other")
    n_inside = max(1, round(share * len(values)))
    assert sum(value > found for value in values) < n_inside
    assert sum(value >= found for value in values) >= n_inside


@given(shares, scores)
def test_no_gap_above_the_cut_is_wider_than_the_one_at_it(floor, values):
    found = cut(Gap(floor=floor), values, "other")
    above = sorted((value for value in values if value >= floor), reverse=True)
    if above:
        ordered = sorted([*values, 0.0], reverse=True)
        gaps = {high: high - low for high, low in itertools.pairwise(ordered)}
        lowest = min(value for value in values if value >= found)
        at_cut = lowest - max([0.0, *(value for value in values if value < found)])
        assert all(at_cut >= gaps[value] - 1e-12 for value in above)


@pytest.mark.parametrize(
    ("rule", "values", "expected"),
    [
        (Gap(floor=0.5), [0.95, 0.9, 0.6, 0.55, 0.1], 0.55),
        (Gap(floor=0.5), [0.95, 0.9, 0.5, 0.45], 0.9),
        (Gap(floor=0.8), [0.95, 0.85, 0.84], 0.84),
        (Gap(floor=0.5), [0.4], 0.5),
        (Gap(floor=0.5), [0.9132, 0.87314, 0.41], 0.87),
        (Gap(floor=0.5), [0.87314, 0.87308], 0.87),
        (Gap(floor=0.5), [0.5004, 0.1], 0.5004),
        (Quantile(share=0.25, floor=0.5), [0.9, 0.8, 0.7, 0.6], 0.9),
        (Quantile(share=0.5, floor=0.5), [0.9, 0.8, 0.8, 0.6], 0.8),
        (Quantile(share=0.5, floor=0.85), [0.9, 0.8, 0.8, 0.6], 0.85),
        (PerIntent(values={"mechanism": 0.6}), [], 0.6),
        (PerIntent(values={"definition": 0.6}, default=0.7), [], 0.7),
    ],
)
def test_cuts_by_hand(rule, values, expected):
    assert cut(rule, values, "mechanism") == expected


@given(rules)
def test_a_threshold_survives_its_plain_form(rule):
    assert threshold_from_plain(threshold_to_plain(rule)) == rule


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Quantile(share=2), "share .* 2"),
        (lambda: Quantile(floor=-1), "floor .* -1"),
        (lambda: Gap(floor="low"), "floor .* 'low'"),
        (lambda: PerIntent(default=9), "default .* 9"),
        (lambda: PerIntent(values={"other": 7}), r"values\['other'\] .* 7"),
        (lambda: PerIntent(values={"riddle": 0.7}), "'riddle'"),
    ],
)
def test_a_rule_out_of_range_is_named(make, named):
    with pytest.raises(SettingsError, match=named):
        make()
