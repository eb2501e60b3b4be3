"""Passages by their ids, all of them, and those near a vector."""

import asyncio
from uuid import uuid4

import pytest
from langchain_core.documents import Document
from qdrant_client import models

from deepera_graph.errors import SettingsError
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.stores.words import WordIndex


def ids(found):
    return [one.id for one in found]


@pytest.fixture
def store(settings, corpus):
    with open_store("corpus", **settings) as opened:
        opened.add(corpus)
        yield opened


def test_passages_come_in_the_order_they_were_asked_for(store, corpus):
    found = store.fetch(["kelp", "tea", "nowhere", "kelp"])
    assert found == [corpus[2], corpus[0]]
    assert asyncio.run(store.afetch(["kelp", "tea"])) == found
    assert store.fetch([]) == []


def test_conditions_hold_for_passages_asked_for_by_id(store):
    assert ids(store.fetch(["tea", "kelp", "glucose"], where={"topic": "diet"})) == [
        "tea",
        "glucose",
    ]
    with pytest.raises(SettingsError, match="where"):
        store.fetch(["tea"], where={"": 1})


def test_a_passage_without_an_id_is_fetched_by_the_one_it_got(store):
    store.add([Document(page_content="Nameless.")])
    [found] = [one for one in store.search("nameless", k=9) if one.page_content == "Nameless."]
    assert store.fetch([found.id])[0].page_content == "Nameless."


def test_points_of_other_programs_are_fetched_by_their_numbers(store):
    number, point = str(uuid4()), store.search("Kelp", k=1)[0]
    client, name = store.vectorstore.client, store.vectorstore.collection_name
    vectors = client.scroll(name, limit=1, with_vectors=True)[0][0].vector
    payload = {"page_content": point.page_content, "metadata": {}}
    client.upsert(name, points=[models.PointStruct(id=number, vector=vectors, payload=payload)])
    assert ids(store.fetch([number, "kelp"])) == [number, "kelp"]


def test_a_scan_gives_every_passage_once(store, corpus):
    found = [one.passage for one in store.scan(batch_size=2)]
    assert sorted(found, key=lambda one: one.id) == sorted(corpus, key=lambda one: one.id)


def test_a_scan_gives_the_vectors_that_there_are(settings, corpus, make_embeddings):
    with open_store("vectors", **settings) as store:
        store.add(corpus)
        if store.mode == "sparse":
            with pytest.raises(SettingsError, match="no vectors of meaning"):
                next(store.scan(vectors=True))
            return
        embeddings = make_embeddings()
        for one in store.scan(vectors=True):
            expected = embeddings.embed_query(one.passage.page_content)
            assert one.vector == pytest.approx(expected, abs=1e-5)
        near = store.search_near([embeddings.embed_query(corpus[0].page_content)], 2)
        assert near[0][0].id == "tea"
        assert near[0][0].cosine == pytest.approx(1, abs=1e-5)
        assert len(near[0]) == 2


def test_an_index_in_memory_gives_passages_by_id(corpus):
    with WordIndex() as words:
        words.add(corpus)
        assert words.fetch(["kelp", "nowhere", "tea"]) == [corpus[2], corpus[0]]
        assert words.passages() == corpus
