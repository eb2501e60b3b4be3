"""The main table, and the change from base to look-alikes."""

import pytest

from bench.study_lakes import Judge, column, fixed, lab, lakes
from deepera_graph.calibration.instance import Dataset, MetricError, UnavailableError
from deepera_graph.lab.metrics.answers import Extractive, Verdict
from deepera_graph.lab.rankers.base import FirstStage, Random, UnavailableRanker
from deepera_graph.lab.studies.rerank import main_table


def test_every_ranker_has_a_row_a_data_set():
    data = [lakes(4, setting="base"), lakes(2, golden=(1,))]
    (grid, change) = main_table.study_main_table(lab([FirstStage(), Random()], data)).grids
    assert column(grid, "data set") == ["base", "base", "ssli", "ssli"]
    assert column(grid, "HitRate@1")[::2] == [0, 1]
    assert column(grid, "MRR")[::2] == [0.5, 1]
    assert grid.rows[1][4].std > 0
    assert column(grid, "runs") == [1, 3, 1, 3]
    assert column(change, "questions") == [2] * 6


def test_the_change_is_over_questions_that_both_have():
    data = [lakes(4, setting="base", golden=(1,)), lakes(2, golden=(2,))]
    (_, change) = main_table.study_main_table(lab([FirstStage()], data, metrics=("MRR",))).grids
    assert column(change, "before") == [1]
    assert column(change, "after") == [0.5]
    assert column(change, "difference") == [-0.5]
    assert column(change, "relative") == [-0.5]


def test_a_base_can_be_named():
    data = [lakes(2, setting="plain"), lakes(2)]
    (grid,) = main_table.study_main_table(lab([FirstStage()], data)).grids
    assert grid.name == "main"
    named = main_table.study_main_table(lab([FirstStage()], data, base="plain"))
    assert [one.name for one in named.grids] == ["main", "change"]
    with pytest.raises(MetricError, match="base must be one of"):
        main_table.study_main_table(lab([FirstStage()], data, base="plian"))


def test_what_cannot_run_is_named_and_the_others_go_on():
    made = lab([UnavailableRanker("cohere", "no key"), FirstStage()], [lakes(2)])
    (grid,) = main_table.study_main_table(made).grids
    assert column(grid, "ranker") == ["first stage"]
    assert made.missing == {("ssli", "cohere"): "no key"}
    with pytest.raises(UnavailableError, match="no key"):
        main_table.study_main_table(lab([UnavailableRanker("cohere", "no key")], [lakes(2)]))
    strict = lab([UnavailableRanker("cohere", "no key"), FirstStage()], [lakes(2)], strict=True)
    with pytest.raises(UnavailableError, match="no key"):
        main_table.study_main_table(strict)


def test_times_are_measured_once(tmp_path):
    judge = Judge(fixed(0.1, 0.2, 0.3, 0.4, 0.5))
    first, second = (
        main_table.study_cost(lab([judge], [lakes(3)], keep=tmp_path)).grids[0].rows
        for _ in range(2)
    )
    assert first == second
    assert len(judge.asked) == 3
    assert (
        column(main_table.study_cost(lab([judge], [lakes(3)], keep=tmp_path)).grids[0], "time")[0]
        > 0
    )


def test_one_name_cannot_stand_for_two():
    with pytest.raises(MetricError, match="names must differ"):
        lab([FirstStage(), FirstStage()], [lakes()])


def test_answers_add_columns_and_lfs_a_change_of_its_own():
    class Marks:
        low, high, name = 1, 5, "marks"

        def judge_many(self, tasks):
            return [Verdict(5 if one.answer == one.gold else 2, "") for one in tasks]

    def answered(data, gold):
        found = [one.model_copy(update={"gold_answer": gold}) for one in data]
        return Dataset(data.name, lambda: found)

    gold = "Passage 1 of lake 1: its water was 1 degrees warm."
    data = [answered(lakes(2, setting="base"), gold), answered(lakes(2), "")]
    made = lab([FirstStage()], data, generator=Extractive(), answer_judge=Marks())
    main, change = main_table.study_main_table(made).grids[:2]
    assert [one.name for one in main.columns[4:]] == [
        "F1", "P", "R", "LFS", "LFS std", "answer failed", "answer not judged",
        "HitRate@1", "HitRate@3", "MRR",
    ]  # fmt: skip
    assert main.columns[7].heading == "LFS 1-5"
    assert column(main, "LFS std")[0] == pytest.approx(4.5**0.5)
    assert column(main, "LFS")[0] == 3.5
    for name in ("F1", "LFS", "LFS std"):  # nothing to compare with is no number, and no spread
        assert column(main, name)[1] != column(main, name)[1]
    assert "LFS" not in column(change, "metric")
    rows = dict(zip(column(change, "metric"), column(change, "after"), strict=True))
    assert rows["F1"] != rows["F1"]


def test_recall_of_answers_without_a_judge_says_that_it_stands_alone():
    data = [lakes(2, setting="base"), lakes(2)]
    main, *_ = main_table.study_main_table(lab([FirstStage()], data, generator=Extractive())).grids
    assert [one.name for one in main.columns[4:8]] == ["F1", "P", "R without LFS", "answer failed"]


def test_data_sets_of_one_setting_stand_side_by_side_as_in_the_paper():
    data = [lakes(2, name="lmqg"), lakes(2, name="ours", golden=(1,))]
    rankers = [FirstStage(), Judge(fixed(0.1, 0.2, 0.3, 0.4, 0.5))]
    main, wide = main_table.study_main_table(lab(rankers, data, metrics=("MRR",))).grids
    assert wide.name == "setting-ssli"
    assert [one.name for one in wide.columns] == ["ranker", "lmqg MRR", "ours MRR"]
    assert column(wide, "ranker") == ["first stage", "judge"]
    assert column(wide, "lmqg MRR") + column(wide, "ours MRR") == [0.5, 0.25, 1, 0.2]
    assert sorted(column(main, "MRR")) == sorted(
        column(wide, "lmqg MRR") + column(wide, "ours MRR")
    )
