"""Thresholds chosen on some questions and measured on the others."""

import pytest

from bench.study_lakes import Judge, Writer, answered, column, fixed, lab, lakes
from deepera_graph.calibration.instance import Dataset
from deepera_graph.lab.studies.rerank.filtering import study_threshold
from deepera_graph.lab.studies.rerank.tuned import find_groupings
from deepera_graph.settings.thresholds import Calibrated, Curve, PerIntent

pytestmark = pytest.mark.full

SETUP = {"thresholds": (0.55, 0.7, 0.9), "rules": {}}


def mixed(n=60, name="mixed"):
    """Every second question is of another subject, whose scores are on another scale."""
    found = []
    for number, one in enumerate(lakes(n)):
        found.append(one.model_copy(update={"subject": "ponds" if number % 2 else "limnology"}))
    return Dataset(name, lambda: found, "by hand")


def by_subject(question, place):
    """Golden (the second) at 0.6 of odd lakes, at 0.95 of even ones; others just below."""
    even = int(question.split()[-1].rstrip("?")) % 2 == 0
    return (0.95 if even else 0.6) if place == 2 else (0.85 if even else 0.5)


class Reading(Judge):
    """Reads what a question asks for, too."""

    def rank_many(self, jobs):
        self.intents = [
            {"intent": "mechanism" if self.score(question, 2) > 0.9 else "definition"}
            for question, _ in jobs
        ]
        return super().rank_many(jobs)


def tuned(judge, data, **changes):
    found = study_threshold(lab([judge], data, **{**SETUP, **changes}))
    (grid,) = (one for one in found.grids if one.name == "tuned")
    return grid


def test_a_threshold_for_each_subject_is_better_than_one_for_all():
    grid = tuned(Judge(by_subject), [mixed()])
    rows = dict(zip(column(grid, "rule"), column(grid, "precision of the kept"), strict=True))
    kept = dict(zip(column(grid, "rule"), column(grid, "golden kept"), strict=True))
    assert rows["by subject"] == kept["by subject"] == 1
    assert rows["one threshold"] < 1 or kept["one threshold"] < 1
    told = dict(zip(column(grid, "rule"), column(grid, "thresholds"), strict=True))
    assert told["by subject"] == "limnology 0.55, ponds 0.9"


def test_what_chose_the_threshold_does_not_measure_it():
    grid = tuned(Judge(by_subject), [mixed()], tune_share=0.3)
    (chosen_on, measured_on), *_ = zip(
        column(grid, "chosen on"), column(grid, "measured on"), strict=True
    )
    assert chosen_on + measured_on == 60
    assert 8 <= chosen_on <= 28


def test_versions_of_a_question_are_on_one_side():
    rows = tuned(Judge(by_subject), [mixed(), mixed(name="again")]).rows
    first, second = (next(row for row in rows if row[0] == name) for name in ("mixed", "again"))
    assert first[2:] == second[2:]


def test_questions_are_grouped_by_intent_and_by_difficulty():
    grid = tuned(Reading(by_subject), [lakes(60)])
    rules = column(grid, "rule")
    assert "by intent" in rules
    assert "by subject" not in rules  # there is one
    told = dict(zip(rules, column(grid, "thresholds"), strict=True))
    assert told["by intent"] == "definition 0.55, mechanism 0.9"
    assert "by difficulty, oracle" not in rules  # the golden passage is second everywhere
    data = Dataset(
        "two", lambda: [*lakes(30), *(
            one.model_copy(update={"id": f"x{one.id}", "question": f"And {one.question}"})
            for one in lakes(30, n=8, golden=(7,)))]
    )  # fmt: skip
    high = Judge(lambda question, place: 0.95 if place in (2, 7) else 0.2)
    grid = tuned(high, [data])
    told = dict(zip(column(grid, "rule"), column(grid, "thresholds"), strict=True))
    assert set(told["by difficulty, oracle"].split(" 0.")[0:1]) == {"golden second to fifth"}
    assert "golden sixth or later" in told["by difficulty, oracle"]


def by_ease(question, place):
    """Golden, the second, is far ahead of the others of an easy question, and little of a hard."""
    if int(question.split()[-1].rstrip("?")) % 2 == 0:
        return 0.95 if place == 2 else 0.68
    return {2: 0.65, 4: 0.2, 5: 0.2}.get(place, 0.6)


def test_a_threshold_by_difficulty_needs_no_label_and_can_be_better_than_one_for_all():
    grid = tuned(Judge(by_ease), [lakes(60)], thresholds=(0.62, 0.7, 0.9))
    rules = column(grid, "rule")
    precision = dict(zip(rules, column(grid, "precision of the kept"), strict=True))
    kept = dict(zip(rules, column(grid, "golden kept"), strict=True))
    assert precision["by difficulty"] == kept["by difficulty"] == 1
    assert precision["one threshold"] < 1 or kept["one threshold"] < 1
    told = dict(zip(rules, column(grid, "thresholds"), strict=True))
    assert told["by difficulty"] == "middle lead 0.7, small lead 0.62"


def test_the_questions_that_measure_do_not_say_where_a_difficulty_ends():
    (run,) = lab([Judge(by_ease)], [lakes(12)], **SETUP).runs()
    groups = dict(find_groupings(run, [0, 1, 2, 3]))["by difficulty"]
    before = [groups(at) for at in range(4)]
    (longer,) = lab([Judge(by_ease)], [lakes(40)], **SETUP).runs()
    groups = dict(find_groupings(longer, [0, 1, 2, 3]))["by difficulty"]
    assert [groups(at) for at in range(4)] == before


def test_a_curve_is_fitted_on_the_questions_that_choose():
    grid = tuned(Judge(fixed(0.1, 0.8, 0.2, 0.1, 0.3)), [lakes(60)])
    rows = dict(zip(column(grid, "rule"), column(grid, "precision of the kept"), strict=True))
    assert rows["calibrated:0.5"] == 1


def test_with_a_generator_its_f1_chooses():
    gold = "Passage 3 of lake"
    data = answered(lakes(40), lambda one: gold)
    # The highest score is a passage without the answer; the third passage has it.
    judge = Judge(fixed(0.6, 0.8, 0.95, 0.1, 0.1))
    writer = Writer(lambda question, passages: " ".join(passages[-1].split()[:4]) if passages
                    else "")  # fmt: skip
    grid = tuned(judge, [data], generator=writer)
    assert column(grid, "thresholds")[0] == "0.9"
    assert column(grid, "F1")[0] == 1


def test_without_a_reference_answer_evidence_chooses_and_that_is_told():
    setup = {"generator": Writer(lambda question, passages: "warm")}
    found = study_threshold(lab([Judge(by_subject)], [mixed()], **{**SETUP, **setup}))
    (grid,) = (one for one in found.grids if one.name == "tuned")
    told = dict(zip(column(grid, "rule"), column(grid, "thresholds"), strict=True))
    assert told["by subject"] == "limnology 0.55, ponds 0.9"
    assert found.findings[0].startswith("mixed: no question has a reference answer")
    assert [one.name for one in found.drawings] == ["threshold-1"]


def test_too_few_questions_are_told():
    found = study_threshold(lab([Judge(by_subject)], [lakes(6)], **SETUP))
    assert [one.name for one in found.grids] == ["threshold"]
    drawn = "as each is drawn by its text with a chance of 50 %; each side takes at least 5, so no "
    assert f"{drawn}threshold was chosen." in found.findings[0]


def test_rules_may_go_by_intent_or_by_a_curve():
    rules = {
        "mechanism=0.9+default=0.55": PerIntent(values={"mechanism": 0.9}, default=0.55),
        "calibrated": Calibrated(
            curve=Curve(method="isotonic", x=(0.0, 0.9), y=(0.0, 0.9)), probability=0.8
        ),
    }
    setup = {"thresholds": (0.7,), "rules": rules}
    grid = study_threshold(lab([Reading(by_subject)], [lakes(4)], **setup)).grids[0]
    assert column(grid, "threshold") == [0.7, *rules]
    precision = dict(
        zip(column(grid, "threshold"), column(grid, "precision of the kept"), strict=True)
    )
    assert precision["mechanism=0.9+default=0.55"] == 1
    assert precision["calibrated"] == pytest.approx(1 / 5)
