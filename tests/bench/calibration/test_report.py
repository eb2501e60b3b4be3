"""The report: hand counts, intervals over questions, honest suggestions."""

import json
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from deepera_graph.calibration.calibrate import JudgedQuestion, cross_validate, fit_curve
from deepera_graph.calibration.report import (
    RateInterval,
    ThresholdCounts,
    build_report,
    suggest_threshold,
)
from deepera_graph.calibration.statistics import bootstrap_ratios, brier_score, calibration_error
from deepera_graph.cli.calibrate import report_lines
from deepera_graph.errors import InputError


def curve_of(questions, method="isotonic"):
    return fit_curve(
        list(chain.from_iterable(one.scores for one in questions)),
        list(chain.from_iterable(one.labels for one in questions)),
        method=method,
        judge={"backend": "scripted"},
        n_questions=len(questions),
    )


def question(id, scores, labels, **failed):
    return JudgedQuestion(id=id, scores=scores, labels=labels, **failed)


HAND = [
    question("1", (0.9, 0.8, 0.2), (1, 0, 1)),
    question("2", (0.7, 0.1), (1, 0)),
    question("3", (0.85,), (1,), n_failed=1, n_failed_relevant=1),
    question("4", (0.3,), (0,)),
]


def test_operating_numbers_of_a_hand_case():
    (point,) = ThresholdCounts(HAND, [one.scores for one in HAND], [0.8]).points()
    assert point.precision.mean == pytest.approx(2 / 3)
    assert point.recall.mean == pytest.approx(2 / 5)
    assert point.kept.mean == pytest.approx(3 / 4)
    assert point.answered.mean == pytest.approx(2 / 4)


def test_precision_is_unknown_where_nothing_is_kept():
    (point,) = ThresholdCounts(HAND, [one.scores for one in HAND], [0.95]).points()
    assert point.precision == RateInterval(None, None, None)
    assert (point.recall.mean, point.answered.mean) == (0, 0)


def test_brier_score_of_a_hand_case():
    assert brier_score([0.0, 0.5, 1.0, 0.8], [0, 1, 1, 0]) == pytest.approx(0.89 / 4)


def test_calibration_error_of_a_hand_case():
    """Two bins: 0.1 and 0.2 with share 0.5, 0.9 with share 1: (2 * 0.35 + 0.1) / 3."""
    error = calibration_error([0.1, 0.2, 0.9], [0, 1, 1], n_bins=2)
    assert error == pytest.approx(0.8 / 3)


def test_certainty_that_is_right_has_no_error():
    assert calibration_error([0.0, 1.0, 1.0], [0, 1, 1]) == 0


@pytest.mark.full
def test_the_interval_of_a_mean_is_that_of_its_normal_approximation():
    values = np.random.default_rng(0).random((400, 1))
    (found,) = bootstrap_ratios(values, np.ones_like(values), n_resamples=4000)
    half = 1.96 * values.std() / 20
    assert found.low == pytest.approx(values.mean() - half, abs=0.003)
    assert found.high == pytest.approx(values.mean() + half, abs=0.003)


def test_questions_are_drawn_not_passages():
    """100 copies of a passage in a question make it no more certain."""
    one = [question(str(n), (0.9,), (n % 2,)) for n in range(20)]
    many = [question(str(n), (0.9,) * 100, (n % 2,) * 100) for n in range(20)]
    (few_copies,) = ThresholdCounts(one, [q.scores for q in one], [0.5]).points()
    (many_copies,) = ThresholdCounts(many, [q.scores for q in many], [0.5]).points()
    assert many_copies.precision == few_copies.precision


def test_the_same_seed_gives_the_same_interval_and_another_does_not():
    values = np.random.default_rng(0).random((50, 2))
    ones = np.ones_like(values)
    first = bootstrap_ratios(values, ones, n_resamples=200, seed=1)
    assert first == bootstrap_ratios(values, ones, n_resamples=200, seed=1)
    other = bootstrap_ratios(values, ones, n_resamples=200, seed=2)
    assert [one.low for one in first] != [one.low for one in other]


def estimates(*means):
    return [RateInterval(mean, mean if mean is None else mean - 0.1, mean) for mean in means]


def test_the_lowest_threshold_that_reaches_it_is_suggested():
    found = suggest_threshold([0.1, 0.2, 0.3, 0.4], estimates(0.5, 0.8, 0.7, 0.9), 0.8)
    assert found.probability == 0.2


def test_the_lower_end_asks_for_more():
    found = suggest_threshold([0.1, 0.2, 0.3], estimates(0.5, 0.8, 0.95), 0.8, bound="low")
    assert found.probability == 0.3


def test_an_unreachable_precision_is_not_suggested():
    found = suggest_threshold([0.1, 0.2, 0.3], estimates(0.5, 0.7, None), 0.8)
    assert found.probability is None
    assert found.why_not == "the best precision is 0.700, at probability 0.20; wanted 0.8"


def test_a_handful_of_lucky_passages_does_not_count_as_reached():
    few = ThresholdCounts(HAND, [one.scores for one in HAND], [0.9]).precisions()
    assert suggest_threshold([0.9], few, 0.8).why_not.startswith("fewer than 10 passages to keep")


def test_no_probability_comes_from_a_curve_that_saw_its_question(questions):
    """A question with a wild label moves the probabilities of the others, not its own."""
    usual = cross_validate(questions)
    flipped = replace(questions[0], labels=tuple(1 - label for label in questions[0].labels))
    changed = cross_validate([flipped, *questions[1:]])
    assert changed[0] == usual[0]
    assert changed[1:] != usual[1:]


def test_probabilities_keep_the_shape_of_the_questions(questions):
    probabilities = cross_validate(questions, method="platt")
    assert [len(its) for its in probabilities] == [len(one.scores) for one in questions]


def test_relevant_questions_are_spread_over_the_folds(questions):
    """Only 10 of 60 questions have evidence; every fold can still be fitted without its own."""
    barren = [replace(one, labels=(0,) * 10) for one in questions[10:]]
    assert len(cross_validate([*questions[:10], *barren])) == 60


def test_too_few_questions_are_named(questions):
    with pytest.raises(InputError, match=r"5 questions with relevant .* got 4 and 4 of 4"):
        cross_validate(questions[:4])


def test_too_few_passages_outside_a_fold_are_named(questions):
    with pytest.raises(InputError, match=r"5 folds leaves 8 relevant and 32 irr.*least 3 more rel"):
        cross_validate(questions[:5])


@pytest.mark.full
@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_calibration_makes_the_scores_better_probabilities(questions, method):
    quality = build_report(questions, curve_of(questions, method), n_resamples=50)["quality"]
    assert quality["brier"]["after"] < quality["brier"]["base_rate"] < quality["brier"]["before"]
    assert quality["calibration_error"]["after"] < quality["calibration_error"]["before"] / 3


def test_a_report_is_json_and_the_same_for_the_same_seed(questions):
    curve = curve_of(questions)
    report = build_report(questions, curve, precision=0.5, n_resamples=100, seed=4)
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert build_report(questions, curve, precision=0.5, n_resamples=100, seed=4) == report


def test_the_suggested_threshold_reaches_what_was_wanted(questions):
    report = build_report(questions, curve_of(questions), precision=0.5, n_resamples=200)
    tau = report["suggested"]["even"]["probability"]
    (point,) = [one for one in report["operating_points"] if one["tau"] == tau]
    assert point["on"] == "probability"
    assert point["precision"]["mean"] >= 0.5


@pytest.mark.full
def test_the_sure_suggestion_is_no_lower(questions):
    suggested = build_report(questions, curve_of(questions), precision=0.5)["suggested"]
    assert suggested["sure"]["probability"] >= suggested["even"]["probability"]


def test_failed_passages_are_counted(questions):
    missing = replace(questions[0], n_failed=3, n_failed_relevant=1)
    report = build_report([missing, *questions[1:]], curve_of(questions), n_resamples=20)
    assert (report["data"]["failed"], report["data"]["failed_relevant"]) == (3, 1)
    assert "; 3 could not be judged" in report_lines(report)[1]


def test_the_lines_say_what_is_not_reached(questions):
    report = build_report(questions, curve_of(questions), precision=1.0, n_resamples=50)
    lines = report_lines(report)
    (even,) = [line for line in lines if line.startswith("precision 1:")]
    assert "not reached; the best precision is 0." in even


def test_the_lines_say_where_there_are_few_data(questions):
    told = "Few data (12 questions, 24 passages of evidence): on other questions a threshold may"
    curve = curve_of(questions)
    few, all_of_them = (
        "\n".join(report_lines(build_report(some, curve, precision=0.5, n_resamples=20)))
        for some in (questions[:12], questions)
    )
    assert told in few
    assert "Few data" not in all_of_them


def test_the_lines_say_why_no_probability_is_measured(questions):
    report = build_report(questions[:5], curve_of(questions[:5]), n_resamples=20)
    lines = report_lines(report)
    told = "No probability is measured, and none suggested: cross-validation in 5 folds leaves 8 re"
    assert lines[-1].startswith(told)
    assert lines[-1].endswith("\nIntervals of 95% over 20 resamples of the questions.")
    assert lines[3].startswith("Brier score")
    assert "calibrated" not in "".join(lines[3:5])
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_the_lines_name_every_operating_point(questions):
    report = build_report(questions, curve_of(questions), precision=0.5, n_resamples=50)
    rows = [line for line in report_lines(report) if " >= " in line and "(" in line]
    assert len(rows) == len(report["operating_points"])
    assert rows[0].startswith("score >= 0.80")


def test_what_the_judge_keeps_by_itself_is_measured(questions):
    curve = curve_of(questions)
    points = build_report(questions, curve, threshold=0.28, n_resamples=20)["operating_points"]
    assert [one["tau"] for one in points if one["on"] == "score"] == [0.28, 0.8]
