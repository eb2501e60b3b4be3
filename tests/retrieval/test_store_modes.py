"""What a collection was indexed with, and what it can be opened with."""

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_qdrant import QdrantVectorStore
from qdrant_client import QdrantClient, models

from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.retrieval.collections.store import open_store


def test_the_default_needs_nothing():
    with open_store("default") as store:
        assert (store.mode, store.count()) == ("sparse", 0)


def test_a_new_collection_with_embeddings_is_hybrid(make_embeddings):
    with open_store("new", embeddings=make_embeddings()) as store:
        assert store.mode == "hybrid"


def test_a_collection_opens_as_it_was_indexed(tmp_path, settings):
    open_store("c", path=tmp_path, **settings).close()
    with open_store("c", path=tmp_path, embeddings=settings["embeddings"]) as store:
        assert store.mode == settings["mode"]


@pytest.mark.parametrize("mode", ["sparse", "dense", "hybrid"])
def test_another_mode_is_an_error(tmp_path, settings, mode, make_embeddings):
    if mode == settings["mode"]:
        return
    open_store("c", path=tmp_path, **settings).close()
    embeddings = None if mode == "sparse" else make_embeddings()
    with pytest.raises(StoreError, match=f"'c' was indexed as {settings['mode']}, not as {mode}"):
        open_store("c", path=tmp_path, mode=mode, embeddings=embeddings)
    open_store("c", path=tmp_path, **settings).close()


@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_a_collection_remembers_its_embeddings(tmp_path, mode, make_embeddings):
    open_store("c", path=tmp_path, mode=mode, embeddings=make_embeddings()).close()
    with pytest.raises(SettingsError, match=f"indexed as {mode} with WordEmbeddings:words"):
        open_store("c", path=tmp_path)
    with pytest.raises(StoreError, match="WordEmbeddings:words, not with WordEmbeddings:other"):
        open_store("c", path=tmp_path, embeddings=make_embeddings(model="other"))
    with pytest.raises(StoreError, match="WordEmbeddings:words, not with DeterministicFake"):
        open_store("c", path=tmp_path, embeddings=DeterministicFakeEmbedding(size=64))


def test_vectors_of_another_size_are_an_error(tmp_path):
    open_store("c", path=tmp_path, embeddings=DeterministicFakeEmbedding(size=8)).close()
    with pytest.raises(StoreError, match=r"vectors of size 8, but .* of size 9"):
        open_store("c", path=tmp_path, embeddings=DeterministicFakeEmbedding(size=9))


def test_embeddings_for_a_sparse_collection_are_an_error(tmp_path, make_embeddings):
    open_store("c", path=tmp_path).close()
    with pytest.raises(SettingsError, match="mode sparse takes no embeddings"):
        open_store("c", path=tmp_path, embeddings=make_embeddings())


@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_a_new_dense_collection_needs_embeddings(mode):
    with pytest.raises(SettingsError, match=f"mode {mode} needs embeddings"):
        open_store("c", mode=mode)


def test_an_unknown_mode_is_named():
    with pytest.raises(SettingsError, match=r"'sparse', 'dense', 'hybrid', got 'bm25'"):
        open_store("c", mode="bm25")


def test_a_dense_collection_of_another_program_can_be_searched(tmp_path, make_embeddings, corpus):
    other = QdrantVectorStore.from_texts(
        [passage.page_content for passage in corpus],
        make_embeddings(),
        metadatas=[passage.metadata for passage in corpus],
        path=str(tmp_path),
        collection_name="theirs",
    )
    other.client.close()
    with open_store("theirs", path=tmp_path, embeddings=make_embeddings()) as store:
        best = store.search("fasting glucose", k=2)
    assert {found.metadata["year"] for found in best} == {2012, 2020}
    assert all(found.id for found in best)


def test_a_foreign_sparse_collection_is_refused(tmp_path):
    client = QdrantClient(path=str(tmp_path))
    client.create_collection(
        "theirs", {}, sparse_vectors_config={"bm25": models.SparseVectorParams()}
    )
    client.close()
    with pytest.raises(StoreError, match=r"not indexed by deepera: its vectors are bm25"):
        open_store("theirs", path=tmp_path)


def test_vectors_that_are_known_are_stored_as_they_are(make_embeddings, corpus):
    class Silent(DeterministicFakeEmbedding):
        def embed_documents(self, texts):
            raise AssertionError("they were embedded before")

    known = [[float(number), 1.0, 0.0] for number in range(len(corpus))]
    with open_store("known", mode="dense", embeddings=Silent(size=3)) as store:
        assert store.add(corpus, vectors=known, batch_size=2) == len(corpus)
        [[nearest]] = store.search_near([[1.0, 1.0, 0.0]], 1)
        assert nearest.cosine == pytest.approx(1)
