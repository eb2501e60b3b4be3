"""Look-alikes by type, and rank distribution."""

import pytest

from bench.lakes import make_instance
from bench.study_lakes import Judge, column, fixed, lab, lakes
from deepera_graph.calibration.instance import Dataset
from deepera_graph.lab.rankers.base import FirstStage
from deepera_graph.lab.studies.rerank import look_alikes
from deepera_graph.lab.studies.rerank import look_alikes as ranks

SCORES = fixed(0.2, 0.85, 0.95, 0.1, 0.3)  # c2 is golden; c3 and c5 are look-alikes
DATA = {"n": 5, "golden": (2,), "distractors": (3, 5)}


def rows(monkeypatch, rankers, *, fewest=1):
    monkeypatch.setattr(look_alikes, "FEWEST", fewest)
    found = look_alikes.study_look_alikes(lab(rankers, [lakes(3, **DATA)]))
    return found, found.grids[0]


def test_each_type_is_followed_from_the_first_stage_on(monkeypatch):
    found, grid = rows(monkeypatch, [Judge(SCORES)])
    by_type = dict(zip(column(grid, "type"), grid.rows, strict=True))
    names = [one.name for one in grid.columns]

    def cell(type, name):
        value = by_type[type][names.index(name)]
        return getattr(value, "mean", value)

    assert cell("background", "passages") == 6
    assert cell("background", "rank before") == 4
    assert cell("background", "rank after") == 2
    assert cell("background", "moved up") == 2
    assert cell("background", "first") == 0.5
    assert cell("background", "above the golden") == 0.5
    assert cell("background", "kept") == 0.5
    assert cell("golden", "moved up") == 0
    assert cell("golden", "above the golden") is None
    assert cell("no look-alike", "passages") == 6
    assert [one.name for one in found.drawings] == ["above-golden"]


def test_data_without_look_alikes_is_left_out_and_named():
    data = lakes(2, distractors=())
    found = look_alikes.study_look_alikes(lab([Judge(SCORES), FirstStage()], [data]))
    assert found.grids[0].rows == ()
    assert found.findings == ("ssli: left out, as no passage of it is labelled as a look-alike.",)


def test_moves_add_up_to_nothing(monkeypatch):
    _, grid = rows(monkeypatch, [Judge(SCORES)])
    kinds = column(grid, "type")
    total = sum(
        passages * moved
        for kind, passages, moved in zip(
            kinds, column(grid, "passages"), column(grid, "moved up"), strict=True
        )
        if kind != "all look-alikes" and kind != "rare types"
    )
    assert total == pytest.approx(0)


def test_rare_types_are_put_together(monkeypatch):
    _, grid = rows(monkeypatch, [Judge(SCORES)], fewest=20)
    assert column(grid, "type") == ["golden", "all look-alikes", "rare types", "no look-alike"]


def test_a_ranker_that_does_not_filter_has_no_keep_rate(monkeypatch):
    _, grid = rows(monkeypatch, [FirstStage()])
    assert set(column(grid, "kept")) == {None}
    assert set(column(grid, "moved up")) == {0}


def test_data_without_look_alikes_is_left_out():
    found = look_alikes.study_look_alikes(lab([FirstStage()], [lakes(2)]))
    assert found.grids[0].rows == ()
    assert found.drawings == ()


def test_ranks_are_those_of_the_questions_that_something_answers():
    some = [make_instance(1, golden=(1,)), make_instance(2, golden=(), outside={})]
    found = ranks.study_ranks(lab([FirstStage()], [Dataset("lakes", lambda: some)]))
    assert column(found.grids[0], "golden")[0] == 1
    assert found.findings == ("lakes: 1 of 2 questions are left out: nothing answers them.",)


def test_ranks_are_counted_for_every_ranker_and_data_set():
    data = [lakes(2, **DATA), lakes(2, setting="base")]
    found = ranks.study_ranks(lab([FirstStage(), Judge(SCORES)], data))
    (grid,) = found.grids
    assert len(grid.rows) == 2 * 2 * 5
    first = [row for row in grid.rows if row[:3] == ("ssli", "judge", 1)]
    assert first == [("ssli", "judge", 1, 0.0, 1.0, 0.0)]
    assert [one.name for one in found.drawings] == ["rank-map", "ranks-1", "ranks-2"]
