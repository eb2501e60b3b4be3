"""Figures of scores, against what a hand gets."""

import json
import math

import numpy as np
import pytest

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.lab.training.evaluate import evaluate, format_evaluation, format_overview
from deepera_graph.lab.training.measure import (
    ScoredPool,
    compute_calibration,
    compute_prefilter_metrics,
    compute_rank_metrics,
    compute_reliability,
    compute_threshold_metrics,
    mean_average_precision,
)
from support.pools import pool


def scored(name, labels, scores, **fields):
    return ScoredPool(pool(name, labels, **fields), np.array(scores))


@pytest.fixture
def three():
    """Golden first; golden third of three, one more outside; nothing golden kept, a tie."""
    return [
        scored("a", [0, 1], [0.2, 0.9]),
        scored("b", [1, 0, 0], [0.1, 0.9, 0.8], golden_outside=1),
        scored("c", [0, 1, 0], [0.5, 0.5, 0.0]),
    ]


def test_ranks_are_those_of_a_hand(three):
    found = {name: one.mean for name, one in compute_rank_metrics(three).items()}
    ideal = 1 + 1 / math.log2(3)
    assert found == pytest.approx(
        {
            "HitRate@1": 1 / 3,
            "HitRate@3": 1,
            "MRR": (1 + 1 / 3 + 1 / 2) / 3,
            "nDCG@10": (1 + (1 / 2) / ideal + 1 / math.log2(3)) / 3,
        }
    )


def test_what_a_threshold_keeps_is_counted_inclusively(three):
    found = {name: one.mean for name, one in compute_threshold_metrics(three, 0.8).items()}
    assert found == pytest.approx(
        {"kept": 1.0, "recall": 1 / 4, "precision": 1 / 3, "any golden": 1 / 3, "empty": 1 / 3}
    )


def test_precision_is_unknown_where_nothing_is_kept(three):
    assert math.isnan(compute_threshold_metrics(three, 1.0)["precision"].mean)


def test_a_question_without_evidence_counts_as_kept_or_empty_alone():
    some = [scored("a", [1], [0.9]), scored("b", [0, 0], [0.9, 0.1])]
    found = {name: one.mean for name, one in compute_threshold_metrics(some, 0.8).items()}
    assert found == {"kept": 1.0, "recall": 1.0, "precision": 0.5, "any golden": 1.0, "empty": 0.0}
    assert compute_rank_metrics(some)["HitRate@1"].mean == 1.0


def test_ranks_of_a_set_that_nothing_answers_are_unknown_and_what_is_kept_is_measured():
    some = [scored("a", [0, 0], [0.9, 0.1]), scored("b", [0, 0, 0, 0], [0.1] * 4)]
    assert all(math.isnan(one.mean) for one in compute_rank_metrics(some).values())
    with pytest.raises(InputError, match="no question has a golden passage"):
        mean_average_precision(some)
    found = evaluate(some, how="By hand.", tau=0.8)
    [plain] = json.loads(json.dumps(found.to_dict(), allow_nan=False))["sets"].values()
    assert (plain["abstained"], plain["false_keeps"]) == (1, 0.25)
    assert plain["metrics"]["kept"]["mean"] == 0.5
    assert plain["metrics"]["MRR"]["mean"] is None
    told = "nothing is kept for 1 of them, 25.0 % of their passages are; ranks, recall and any"
    assert told in format_evaluation(found)
    assert "any golden are unknown" in format_evaluation(found)


def test_intervals_are_over_groups_not_questions():
    right = [scored(f"a{n}", [1, 0], [0.9, 0.1], group="one") for n in range(9)]
    wrong = [scored("b", [1, 0], [0.1, 0.9], group="two")]
    found = compute_rank_metrics(right + wrong)["HitRate@1"]
    assert found == pytest.approx((0.9, 0.0, 1.0))


def test_average_precision_counts_what_was_not_found(three):
    expected = (1 + (1 / 3) / 2 + 1 / 2) / 3
    assert mean_average_precision(three) == pytest.approx(expected)


def test_probabilities_are_compared_with_shares_of_evidence():
    some = [scored("a", [1, 0, 1, 0], [0.85, 0.85, 1.0, 0.0])]
    filled = {one.low: (one.n, one.mean, one.share) for one in compute_reliability(some) if one.n}
    assert filled == {0.0: (1, 0.0, 0.0), 0.8: (2, 0.85, 0.5), 0.9: (1, 1.0, 1.0)}
    found = compute_calibration(some)
    assert found["calibration error"] == pytest.approx(2 / 4 * 0.35)
    assert found["Brier"] == pytest.approx((0.15**2 + 0.85**2) / 4)


def test_an_evaluation_is_by_set_and_has_no_number_that_json_lacks(three):
    three[2] = scored("c", [0, 1, 0], [0.5, 0.5, 0.0], set="lamps")
    found = evaluate(three, how="As they are.", tau=0.95, trained_on={"lamps": 1})
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["sets"]["roofs"]["questions"] == 2
    assert plain["sets"]["roofs"]["metrics"]["HitRate@1"]["mean"] == 0.5
    assert plain["sets"]["roofs"]["metrics"]["precision"]["mean"] is None
    text = format_evaluation(found)
    assert "| lamps | 1 (1 trained on) | 0.0 | 100.0 |" in text
    assert "lamps: 1 question: no interval." in text
    assert "## roofs" in text


def test_questions_that_all_share_passages_have_no_interval():
    rows = [
        scored(name, [0, 1], scores, group="one")
        for name, scores in {"a": [0.2, 0.9], "b": [0.9, 0.2]}.items()
    ]
    found = evaluate(rows, how="By hand.")
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    [one] = plain["sets"].values()
    assert (one["groups"], one["questions"]) == (1, 2)
    assert one["metrics"]["HitRate@1"] == {"mean": 0.5, "low": None, "high": None}
    told = "roofs: 1 group of questions that share passages: no interval"
    assert plain["notes"] == [told]
    text = format_overview(found)
    assert f"\n{told}.\n" in text
    assert "| roofs | 2 | 50.0 | 100.0 |" in text


def test_the_groups_that_intervals_are_over_are_told_where_they_are_fewer_than_questions():
    groups = {"a": "one", "b": "one", "c": "two"}
    rows = [scored(name, [0, 1], [0.2, 0.9], group=group) for name, group in groups.items()]
    told = "roofs: intervals are over 2 groups of questions that share passages."
    assert told in format_overview(evaluate(rows, how="By hand."))
    apart = [scored(name, [0, 1], [0.2, 0.9]) for name in "ab"]
    assert "groups" not in format_overview(evaluate(apart, how="By hand."))


def test_an_overview_says_what_few_questions_leave_open():
    def note(n, **groups):
        rows = [scored(f"q{one}", [0, 1], [0.2, 0.9], **groups) for one in range(n)]
        return evaluate(rows, how="By hand.").to_dict()["notes"]

    assert note(8) == [
        "roofs: Where all 8 come out alike, up to 38 % of other questions may still not"
    ]
    assert note(3) == ["roofs: So few questions say nothing of others"]
    assert note(30) == []
    assert note(8, group="one") == [
        "roofs: 1 group of questions that share passages: no interval"
    ]  # fmt: skip
    rows = [scored(f"q{n}", [0, n < 6], [0.2, 0.9]) for n in range(9)]  # nothing answers three
    text = format_overview(evaluate(rows, how="By hand."))
    assert (
        "\nroofs: Where all 6 come out alike, up to 50 % of other questions may still not.\n"
        in text
    )


def test_an_overview_tells_questions_that_nothing_answers_apart():
    rows = [
        scored("yes", [1, 0], [0.9, 0.1]),
        scored("quiet", [0, 0], [0.2, 0.1]),
        scored("false", [0, 0], [0.8, 0.1]),
    ]
    found = evaluate(rows, how="By hand.", tau=0.5)
    [told] = [one for one in format_overview(found).splitlines() if "Nothing answers" in one]
    assert "Nothing answers 2 of the 3 questions" in told
    assert "nothing is kept for 1 of them, 25.0 % of their passages are" in told
    assert told.endswith("over the others.")
    [one] = found.to_dict()["sets"].values()
    assert (one["unanswerable"], one["abstained"]) == (2, 1)
    known = evaluate(rows[:1], how="By hand.")
    assert "Nothing answers" not in format_overview(known)
    assert next(iter(known.to_dict()["sets"].values()))["false_keeps"] is None


@pytest.mark.parametrize("tau", [-0.1, 1.1, float("nan")])
def test_a_threshold_out_of_range_is_refused(three, tau):
    with pytest.raises(SettingsError, match="tau must be in"):
        compute_threshold_metrics(three, tau)


@pytest.mark.parametrize(
    ("scores", "message"),
    [([0.5], "2 passages need as many"), ([0.5, 1.5], "got 1.5"), ([0.5, math.nan], "got nan")],
)
def test_scores_that_are_none_are_refused(scores, message):
    with pytest.raises(InputError, match=message):
        scored("a", [1, 0], scores)


def test_what_a_pre_filter_keeps_is_counted_over_the_candidates(three):
    found = compute_prefilter_metrics(three, (1, 2, 3))
    assert [its["golden"].mean for its in found.values()] == pytest.approx([1 / 3, 2 / 3, 1])
    assert [its["any golden"].mean for its in found.values()] == pytest.approx([1 / 3, 2 / 3, 1])
