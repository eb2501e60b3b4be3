"""Fusion of two rankings by their scores."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from deepera_graph import SettingsError, open_store
from deepera_graph.retrieval.search import fuse_scores
from multihop.conftest import WordEmbeddings

WORDS, MEANING = "sparse", "dense"


def names():
    from deepera_graph.retrieval.collections.collection import DENSE_NAME, SPARSE_NAME

    return {WORDS: SPARSE_NAME, MEANING: DENSE_NAME}


def fused(words, meaning, depth=10, **options):
    rankings = {names()[WORDS]: words, names()[MEANING]: meaning}
    return fuse_scores({name: one for name, one in rankings.items() if one}, depth, **options)


def test_scores_are_brought_to_one_scale_by_hand():
    """BM25 over its best; cosine and best cosine both plus 1."""
    found = fused({"a": 10.0, "b": 5.0}, {"b": 0.5, "a": 0.2}, dense_weight=0.7)
    assert found["a"] == pytest.approx(0.3 * 1 + 0.7 * 1.2 / 1.5)
    assert found["b"] == pytest.approx(0.3 * 0.5 + 0.7 * 1)


def test_who_is_not_in_a_full_ranking_has_at_most_its_last_score():
    found = fused({"a": 4.0, "b": 1.0}, {"c": 0.0, "a": -0.5}, depth=2, dense_weight=0.5)
    assert found["c"] == pytest.approx(0.5 * 1 / 4 + 0.5)  # BM25 as that of b
    assert found["b"] == pytest.approx(0.5 * 1 / 4 + 0.5 * 0.5)  # cosine as that of a


def test_who_shares_no_word_has_nothing_from_words():
    assert fused({"a": 4.0}, {"a": 0.1, "c": 0.1})["c"] == pytest.approx(0.7)


def test_a_question_without_words_is_ordered_by_meaning():
    assert fused({}, {"a": 0.9, "b": -1.0}) == {"a": pytest.approx(0.7), "b": 0}


scores = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.01, 50), min_size=1)
cosines = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-1, 1), min_size=1)


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(words=scores, meaning=cosines, weight=st.floats(0, 1))
def test_fused_scores_are_in_the_unit_interval_and_respect_both(words, meaning, weight):
    found = fused(words, meaning, dense_weight=weight)
    assert set(found) == {*words, *meaning}
    assert all(-1e-9 <= one <= 1 + 1e-9 for one in found.values())
    for one in {*words} & {*meaning}:
        for other in {*words} & {*meaning}:
            if words[one] > words[other] and meaning[one] > meaning[other]:
                assert found[one] >= found[other] - 1e-9


TEXTS = {"lamp": "The lamp of the lighthouse.", "sea": "The sea at night.", "tea": "Tea with milk."}


def test_a_hybrid_store_fuses_as_it_is_told():
    passages = [Document(id=name, page_content=text) for name, text in TEXTS.items()]
    with open_store("things", embeddings=WordEmbeddings()) as store:
        store.add(passages)
        by_scores = store.search("the lamp", 3, fusion="scores")
        assert next(one.id for one in by_scores) == "lamp"
        assert by_scores[0].metadata["retrieval_score"] == pytest.approx(1.0)
        assert store.search("the lamp", 3) == store.search("the lamp", 3, fusion="ranks")
        with pytest.raises(
            SettingsError, match="fusion must be one of 'ranks', 'scores', got 'luck'"
        ):
            store.search("the lamp", 3, fusion="luck")
