"""Hashed BM25 vectors."""

import math

import pytest
from langchain_core.documents import Document

from deepera_graph.errors import SettingsError
from deepera_graph.retrieval.collections.collection import HashedTermEmbeddings
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.stores import words
from deepera_graph.text.words import stems


def test_term_numbers_never_change():
    assert HashedTermEmbeddings().embed_query("insulin").indices == [215473190]


def test_numbers_are_unique_sorted_and_32_bit():
    text = "Insulin lowered glucose; glucose and insulin were measured in 12 women. " * 3
    vector = HashedTermEmbeddings().embed_documents([text])[0]
    assert vector.indices == sorted(set(vector.indices))
    assert all(0 <= index < 2**32 for index in vector.indices)
    assert len(vector.indices) == len(vector.values) == len(set(stems(text)))


def test_terms_that_collide_are_counted_as_one(monkeypatch):
    monkeypatch.setattr(words, "crc32", lambda word: 5)
    vector = HashedTermEmbeddings().embed_query("otters eat urchins")
    assert (vector.indices, vector.values) == ([5], [3.0])


@pytest.mark.parametrize("text", ["", "  \n", "the of and", "?!…"])
def test_a_text_without_content_words_is_the_empty_vector(text):
    embeddings = HashedTermEmbeddings()
    vectors = [embeddings.embed_query(text), *embeddings.embed_documents([text])]
    assert [(vector.indices, vector.values) for vector in vectors] == [([], [])] * 2


def test_a_question_counts_its_words():
    assert HashedTermEmbeddings().embed_query("glucose glucose").values == [2.0]


def test_repetition_saturates():
    once, often = HashedTermEmbeddings(b=0.0).embed_documents(["kelp", "kelp " * 1000])
    assert once.values == [pytest.approx(1.0)]
    assert 2.1 < often.values[0] < 2.2


def test_the_same_count_is_worth_less_in_a_longer_passage():
    short, long = HashedTermEmbeddings().embed_documents(["kelp", "kelp " + "otter " * 300])
    assert max(short.values) > min(long.values)


def test_scores_are_bm25():
    texts = {"a": "kelp kelp otter", "b": "kelp urchin", "c": "salmon river"}
    with open_store("bm25") as store:
        store.add(Document(id=name, page_content=text) for name, text in texts.items())
        found = store.search("kelp otter")

    def weight(count, length):
        return count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / 100))

    def idf(holders):
        return math.log((3 - holders + 0.5) / (holders + 0.5) + 1)

    expected = {"a": weight(2, 3) * idf(2) + weight(1, 3) * idf(1), "b": weight(1, 2) * idf(2)}
    assert {doc.id: doc.metadata["retrieval_score"] for doc in found} == pytest.approx(expected)


@pytest.mark.parametrize(
    "setting", [{"k1": -0.1}, {"b": 1.5}, {"average_length": 0}, {"k1": math.nan}]
)
def test_a_setting_out_of_range_is_named(setting):
    with pytest.raises(SettingsError, match=next(iter(setting))):
        HashedTermEmbeddings(**setting)
