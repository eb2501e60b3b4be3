"""Pools of questions whose snippets experts marked."""

import gzip
import json

import pytest

from deepera_graph.errors import SettingsError
from deepera_graph.lab.training.lessons.pools import read_pools
from deepera_graph.lab.training.lessons.snippets import SNIPPETS, is_held_out, read_questions

CROPS = ("wheat", "barley", "oats", "rye", "maize", "millet", "rice", "teff", "spelt", "sorghum")


def row(crop, n, paper):
    text = f"Roots of {crop} grew {n} cm longer in warm soil."
    asked = f"Do roots of {crop} grow longer in warm soil?"
    return {"qid": crop, "query": asked, "passage": text, "pmid": paper, "label": 1}


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "pretrain"
    folder.mkdir()
    rows = [row(crop, n, f"{crop} {n}") for crop in CROPS for n in range(2)]
    rows += [row("oats", 9, "wheat 1")]  # of a paper that answers the question on wheat
    with gzip.open(folder / f"{SNIPPETS}.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(one) + "\n" for one in rows)
    return tmp_path


def test_marked_snippets_stand_among_the_nearest_of_other_questions(data):
    pools = read_pools([data], sets=[SNIPPETS])
    assert {pool.id for pool in pools} == {crop for crop in CROPS if not is_held_out(crop)}
    for pool in pools:
        assert {f" {pool.id} " in one.text for one in pool.passages if one.label} == {True}
        assert {f" {pool.id} " in one.text for one in pool.passages if not one.label} == {False}


def test_no_other_passage_is_of_a_paper_that_answers(data):
    [wheat] = [one for one in read_questions(data / "pretrain") if one.id == "wheat"]
    assert "Roots of oats grew 9 cm longer in warm soil." in wheat.near
    assert "Roots of oats grew 9 cm longer in warm soil." not in wheat.strange


def test_the_same_pools_are_read_again(data):
    assert read_pools([data], sets=[SNIPPETS]) == read_pools([data], sets=[SNIPPETS])


def test_a_folder_without_snippets_has_no_such_set(tmp_path, data):
    (data / "pretrain" / f"{SNIPPETS}.jsonl.gz").unlink()
    (data / "pubmedqa_dev").mkdir()
    (data / "pubmedqa_dev" / "base.jsonl").write_text("")
    with pytest.raises(SettingsError, match="set must be one of base, got 'bioasq_snippets'"):
        read_pools([data], sets=[SNIPPETS])
