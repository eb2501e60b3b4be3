"""Answers that failed, and passages that could not be judged, make nothing look better."""

import csv
import json

import numpy as np
import pytest

from bench.study_lakes import Judge, Marker, Writer, answered, column, fixed, lab, lakes
from deepera_graph.errors import FailedShareError
from deepera_graph.lab.rankers.base import FirstStage
from deepera_graph.lab.studies.rerank.filtering import study_cutoff, study_threshold
from deepera_graph.lab.studies.rerank.main_table import study_main_table
from deepera_graph.lab.studies.rerank.robustness import study_drift, study_stability
from deepera_graph.lab.studies.run import STUDIES, manifest, run_studies, write_study

pytestmark = pytest.mark.full

GOLD = "two degrees"


def half(question):
    return int(question.split()[-1].rstrip("?")) % 2 == 0


def works(question, passages):
    return GOLD if not half(question) else "the lake is warm"


def breaks(question, passages):
    """Fails exactly where the other gives a bad answer."""
    if half(question):
        raise ValueError("the server hung up")
    return GOLD


def data(n=8):
    return answered(lakes(n), lambda one: GOLD)


def mark(task):
    return 5 if task.answer == GOLD else 2


def measured(answer, score=mark, **changes):
    setup = {"generator": Writer(answer), "answer_judge": Marker(score), "max_failed_share": 1.0}
    return study_main_table(lab([FirstStage()], [data()], **{**setup, **changes}))


def test_answers_that_failed_count_as_empty_ones():
    whole, broken = (measured(answer).grids[0] for answer in (works, breaks))
    for name in ("F1", "P", "R", "LFS"):
        assert column(broken, name)[0] <= column(whole, name)[0]
    assert column(broken, "F1") == [0.5]
    assert column(broken, "LFS") == [3]
    assert column(broken, "answer failed") == [0.5]
    assert column(whole, "answer failed") == [0]


def test_answers_that_could_not_be_judged_have_the_lowest_score():
    def judge_of_good_answers(task):
        return 5 if task.answer == GOLD else None

    whole = measured(works).grids[0]
    broken = measured(works, judge_of_good_answers).grids[0]
    assert column(whole, "LFS") == [3.5]
    assert column(broken, "LFS") == [3]
    assert column(broken, "answer not judged") == [0.5]
    assert column(broken, "F1") == column(whole, "F1")


@pytest.mark.parametrize("study", [study_main_table, study_threshold, study_cutoff])
def test_too_many_failures_end_a_study(study):
    setup = {"generator": Writer(breaks), "answer_judge": Marker(mark)}
    judge = Judge(fixed(0.9, 0.8, 0.7, 0.6, 0.5))
    with pytest.raises(FailedShareError, match=r"4 times of 8, 50.0 %, more than 20 %: the server"):
        study(lab([judge], [data()], **setup))


def test_too_many_answers_that_could_not_be_judged_end_a_study():
    with pytest.raises(FailedShareError, match="answer not judged 8 times of 8"):
        measured(works, lambda task: None, max_failed_share=0.9)


def test_what_failed_is_in_the_table_the_csv_and_the_manifest(tmp_path):
    setup = {"generator": Writer(breaks), "max_failed_share": 0.5}
    runner = lab([FirstStage()], [data()], **setup)
    ((study, result),) = run_studies([STUDIES["main"]], runner)
    write_study(study, result, manifest(runner), tmp_path)
    text = (tmp_path / "main.md").read_text()
    assert "answer failed (%)" in text
    assert "| ssli | first stage | answer failed | 50.0 | the server hung up |" in text
    (row,) = csv.DictReader((tmp_path / "failures.csv").read_text().splitlines())
    assert (row["what"], row["share"]) == ("answer failed", "0.5")
    (plain,) = json.loads((tmp_path / "manifest.json").read_text())["failures"]
    assert plain["share"] == 0.5
    assert plain["problem"] == "the server hung up"


class HalfBroken(Judge):
    """Cannot judge some passages."""

    def rank_many(self, jobs):
        rankings = super().rank_many(jobs)
        for ranking in rankings:
            n_failed = sum(score < 0 for _, score in ranking)
            if n_failed:
                self.problems.note(n_failed, "no reply")
        return rankings


def test_a_ranker_that_fails_too_often_has_no_row_and_is_named(tmp_path):
    broken = HalfBroken(fixed(-1, -1, 0.9, 0.2, 0.3), name="broken")
    runner = lab([FirstStage(), broken], [lakes(4)])
    ((_, result),) = run_studies([STUDIES["main"]], runner)
    assert column(result.grids[0], "ranker") == ["first stage"]
    assert any("broken on ssli is left out: 40.0 % of the pass" in one for one in result.findings)


def test_passages_that_could_not_be_judged_are_told():
    broken = HalfBroken(fixed(-1, 0.8, 0.9, 0.2, 0.3), name="broken")
    ((_, result),) = run_studies([STUDIES["ranks"]], lab([broken], [lakes(4)]))
    failures = result.grids[-1]
    assert failures.name == "failures"
    assert failures.rows == (("ssli", "broken", "passages not judged", 0.2, "no reply"),)


def test_a_golden_passage_that_could_not_be_judged_does_not_pass():
    scores = fixed(0.9, -1, 0.2, 0.3, 0.4)  # the second is golden
    found = study_drift(lab([Judge(scores)], [lakes(2)])).grids[0]
    assert column(found, "golden that pass") == [0]
    assert column(found, "pass") == [1 / 5]
    assert column(found, "failed") == [2]


def test_a_failure_is_no_change_of_a_score():
    calls = iter(range(10_000))

    def score(question, place):
        return -1 if place == 1 and next(calls) % 2 else 0.5

    judge = Judge(score)
    judge.marks_failures = True
    grid = study_stability(lab([judge], [lakes(4)], n_repeats=2)).grids[0]
    assert column(grid, "std of a score") == [0]
    assert column(grid, "scores that change") == [0]
    assert column(grid, "failed") == [pytest.approx(0.1)]


def test_half_of_the_calls_failing_makes_nothing_better():
    """Every cell of the threshold study, with answers failing at random."""
    dice = np.random.default_rng(0).random(200) < 0.5
    fails = iter(dice.tolist() * 20)

    def at_random(question, passages):
        if next(fails):
            raise ValueError("the server hung up")
        return works(question, passages)

    judge = Judge(fixed(0.9, 0.8, 0.7, 0.6, 0.5))
    setup = {"answer_judge": Marker(mark), "max_failed_share": 1.0, "thresholds": (0.3, 0.75)}
    whole, broken = (
        study_threshold(lab([judge], [data(40)], generator=Writer(answer), **setup)).grids[0]
        for answer in (works, at_random)
    )
    for name in ("F1", "P", "R", "LFS"):
        pairs = zip(column(broken, name), column(whole, name), strict=True)
        assert all(bad <= good for bad, good in pairs)
    assert all(0.2 < one < 0.8 for one in column(broken, "answer failed"))
