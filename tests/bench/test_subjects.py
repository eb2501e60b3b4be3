"""A corpus of ten subjects from OpenAlex, as a server of our own plays it."""

import pytest

from deepera_graph.calibration.instance import write_rows
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.lab.data.documents import (
    SUBJECTS,
    find_by_subject,
    pick_subjects,
    read_documents,
)
from deepera_graph.papers.sources.citing import OpenAlex
from support.literature import ABSTRACTS, TRIAL, Literature

TWO = {"biology": "C86803240", "physics": "C121332964"}


@pytest.fixture
def world(monkeypatch):
    with Literature() as running:
        monkeypatch.setenv("DEEPERA_OPENALEX_URL", running.url("openalex"))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.delenv("OPENALEX_API_KEY", raising=False)
        yield running


def test_ten_subjects_are_the_default_and_have_the_five_of_scirerankbench():
    assert len(SUBJECTS) == len(set(SUBJECTS.values())) == 10
    assert {"biology", "chemistry", "geography", "mathematics", "physics"} <= SUBJECTS.keys()
    assert pick_subjects([]) == dict(SUBJECTS)
    assert pick_subjects(["physics", "biology"]) == {
        name: TWO[name] for name in ("physics", "biology")
    }


def test_works_come_under_the_first_subject_that_has_them(world):
    found = list(find_by_subject(2, subjects=TWO, seed=7))
    assert [one.subject for one in found] == ["biology", "biology"]  # the server has the same twice
    assert (found[0].title, found[0].text) == (TRIAL, ABSTRACTS[TRIAL])
    assert found[0].metadata["year"] == 2015
    asked = [one.parameters for one in world.of("openalex")]
    assert [one["filter"] for one in asked] == [
        f"concepts.id:{concept},has_abstract:true" for concept in TWO.values()
    ]
    assert {(one["sample"], one["seed"], one["per_page"]) for one in asked} == {("2", "7", "2")}


def test_they_can_be_read_as_the_documents_of_a_build(world, tmp_path):
    path = tmp_path / "works.jsonl"
    assert write_rows(path, find_by_subject(3, subjects=TWO)) == 3
    assert list(read_documents(path)) == list(find_by_subject(3, subjects=TWO))


def test_a_service_that_fails_says_so_and_leaves_no_half_corpus(world, tmp_path):
    world.faults["openalex"] = "hours"
    with pytest.raises(BackendError, match="no works on biology: openalex: rate limited"):
        write_rows(tmp_path / "works.jsonl", find_by_subject(3, subjects=TWO))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("concept", "k", "named"),
    [("biology", 3, "got 'biology'"), ("C1", 10_001, "got 10001"), ("C1", 0, "got 0")],
)
def test_what_openalex_cannot_draw_is_named(concept, k, named):
    with pytest.raises(SettingsError, match=named):
        OpenAlex().sample(concept, k)


def test_an_unknown_subject_is_named_with_the_nearest():
    with pytest.raises(SettingsError, match="got 'phisics'; did you mean 'physics'"):
        pick_subjects(["phisics"])
    with pytest.raises(SettingsError, match=r"n_each must be .* got 0"):
        list(find_by_subject(0))
