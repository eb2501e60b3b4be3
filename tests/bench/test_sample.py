"""The small data set of invented abstracts."""

from pathlib import Path

import pytest

from deepera_graph.calibration.instance import DatasetError
from deepera_graph.lab.data.readers import NAMES, open_dataset, sample


@pytest.mark.parametrize("hard", [False, True])
def test_both_settings_ask_the_same_questions_and_differ_in_the_look_alikes(hard):
    base, ssli = list(sample("base", hard=hard)), list(sample("ssli", hard=hard))
    assert [one.question for one in base] == [one.question for one in ssli]
    assert len(base) == 10
    for plain, mixed in zip(base, ssli, strict=True):
        assert len(plain.contexts) == len(mixed.contexts) == 30
        assert not any(one.is_distractor for one in plain.contexts)
        assert sum(one.is_distractor for one in mixed.contexts) >= 4
        golden = [{one.id for one in x.contexts if one.is_golden} for x in (plain, mixed)]
        assert golden[0] == golden[1] != set()


def test_candidates_stand_in_first_stage_order():
    for instance in sample():
        scores = [one.first_stage_score for one in instance.contexts]
        assert scores == sorted(scores, reverse=True)
        assert [one.first_stage_rank for one in instance.contexts] == list(range(1, 31))


def test_another_setting_is_refused():
    with pytest.raises(DatasetError, match="'easy'"):
        sample("easy")


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_found_by_its_name(name):
    dataset = open_dataset(Path(name))
    assert dataset.name == name
    assert {one.dataset for one in dataset} == {name}
    assert {one.setting for one in dataset} == {name.rpartition("-")[2]}
