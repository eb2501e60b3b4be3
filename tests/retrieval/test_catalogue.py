"""Collections of a store: listed, described, renamed and deleted."""

import pytest
from qdrant_client import QdrantClient, models

from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.retrieval.collections.store import Catalogue, open_store


@pytest.fixture
def folder(tmp_path, corpus, settings):
    """A store with one collection of each mode under test."""
    with open_store("papers", path=tmp_path, **settings) as store:
        store.add(corpus)
    return tmp_path


def test_a_collection_is_listed_with_its_size_and_mode(folder, settings):
    with Catalogue(folder) as catalogue:
        [info] = catalogue.list()
    assert (info.name, info.n_passages, info.mode) == ("papers", 5, settings["mode"])
    assert info.embeddings == ("" if settings["mode"] == "sparse" else "WordEmbeddings:words")


def test_a_renamed_collection_finds_the_same_as_before(folder, settings):
    found = []
    for name, other in (("papers", "essays"), ("essays", "papers")):
        with open_store(name, path=folder, must_exist=True, **settings) as store:
            found.append([(d.id, d.metadata) for d in store.search("glucose trial", k=3)])
        with Catalogue(folder) as catalogue:
            assert catalogue.rename(name, other) == 5
            assert [one.name for one in catalogue.list()] == [other]
    assert found[0] == found[1] != []


@pytest.mark.full
def test_many_passages_are_all_copied(tmp_path, corpus):
    passages = [one.model_copy(update={"id": f"{one.id}{n}"}) for n in range(120) for one in corpus]
    with open_store("papers", path=tmp_path) as store:
        store.add(passages)
    with Catalogue(tmp_path) as catalogue:
        assert catalogue.rename("papers", "essays") == 600
        assert [one.n_passages for one in catalogue.list()] == [600]


def test_a_sample_names_metadata_with_examples(tmp_path, corpus):
    corpus[0].metadata["doi"] = "10.1/tea"
    for one in corpus[:3]:
        one.metadata["source"] = "a.csv"
    with open_store("papers", path=tmp_path) as store:
        store.add(corpus)
    with Catalogue(tmp_path) as catalogue:
        sample = catalogue.sample("papers")
        assert catalogue.sample("papers", n=2).n_passages == 2
    assert sample.fields == {"year": 5, "topic": 5, "source": 3, "doi": 1}
    assert sample.examples["doi"] == "10.1/tea"
    assert sample.sources == {"a.csv": 3}


def test_a_deleted_collection_is_gone_and_the_others_stay(tmp_path, corpus):
    for name in ("old", "papers"):
        with open_store(name, path=tmp_path) as store:
            store.add(corpus)
    with Catalogue(tmp_path) as catalogue:
        assert catalogue.delete("old") == 5
        assert [one.name for one in catalogue.list()] == ["papers"]
    with open_store("papers", path=tmp_path, must_exist=True) as store:
        assert store.count() == 5


def test_a_collection_of_another_program_is_listed_as_such(tmp_path):
    client = QdrantClient(path=str(tmp_path))
    client.create_collection(
        "theirs",
        vectors_config={"v": models.VectorParams(size=2, distance=models.Distance.DOT)},
    )
    client.close()
    with Catalogue(tmp_path) as catalogue:
        assert [(one.name, one.mode) for one in catalogue.list()] == [("theirs", "")]


@pytest.mark.parametrize(
    ("name", "to", "error", "message"),
    [
        ("none", "new", StoreError, "unknown library 'none'; available: 'papers'"),
        ("papers", "papers", SettingsError, "'papers' exists already"),
        ("papers", "", SettingsError, "'' is no name"),
        ("papers", "a/b", SettingsError, "no library can be named 'a/b'"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_is_lost(
    tmp_path, corpus, name, to, error, message
):
    with open_store("papers", path=tmp_path) as store:
        store.add(corpus)
    with Catalogue(tmp_path) as catalogue:
        with pytest.raises(error, match=message):
            catalogue.rename(name, to)
        assert [(one.name, one.n_passages) for one in catalogue.list()] == [("papers", 5)]


@pytest.mark.parametrize("act", ["describe", "sample", "delete"])
def test_a_missing_collection_is_named(folder, act):
    with (
        Catalogue(folder) as catalogue,
        pytest.raises(StoreError, match="unknown library 'none'"),
    ):
        getattr(catalogue, act)("none")
