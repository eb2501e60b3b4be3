"""Reciprocal rank fusion, alone and in hybrid search."""

import math
import random
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from qdrant_client import models

from deepera_graph.bioasq.ensemble import reciprocal_scores_of
from deepera_graph.bioasq.runs import ScoredDocument
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.retrieval.fusion import CORMACK_K, fuse, sum_reciprocals

WORDS = ["kelp", "otter", "urchin", "reef", "tide", "shoal", "coral", "wrasse", "squid", "algae"]
N_PASSAGES, N_QUESTIONS = 80, 100


def test_fuse_adds_reciprocal_ranks():
    scores = fuse([["a", "b"], ["b", "c"]], k=60)
    assert scores == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 62})
    assert fuse([["a"]]) == pytest.approx({"a": 1 / 11})


def place_of_the_first(rankings, **how):
    scores = fuse(rankings, **how)
    return 1 + sum(score >= scores["first"] for name, score in scores.items() if name != "first")


def test_what_one_list_puts_first_is_among_the_best_25():
    """The worst case: all others stand in both lists, the high of one where the low of the other
    are."""
    for n in range(1, 200):
        others = [f"{number}" for number in range(n)]
        assert place_of_the_first([["first", *others], others[::-1]]) <= 25
    middle = [f"{number}" for number in range(124)]
    assert place_of_the_first([["first", *middle], middle[::-1]], k=60) > 30


@pytest.mark.full
@given(st.permutations(range(60)), st.integers(0, 60))
def test_what_one_list_puts_first_is_kept_whatever_the_other_says(other, n_only_there):
    there = [f"{number}" for number in other]
    own = [f"{number}" for number in range(n_only_there, 60)]
    assert place_of_the_first([["first", *own], there]) <= 25


def test_fuse_of_nothing_is_nothing():
    assert fuse([]) == fuse([[], []]) == {}


@pytest.fixture(scope="module")
def passages():
    draw = random.Random(7)
    return [
        Document(id=f"p{n}", page_content=" ".join(draw.choices(WORDS, k=draw.randint(3, 40))))
        for n in range(N_PASSAGES)
    ]


@pytest.fixture(scope="module")
def stores(passages, make_embeddings):
    made = {
        mode: open_store("c", mode=mode, embeddings=None if mode == "sparse" else make_embeddings())
        for mode in ("sparse", "dense", "hybrid")
    }
    for store in made.values():
        store.add(passages)
    yield made
    for store in made.values():
        store.close()


def questions():
    draw = random.Random(11)
    return [" ".join(draw.sample(WORDS, draw.randint(1, 4))) for _ in range(N_QUESTIONS)]


def textbook(rankings):
    scores = {}
    for ranking in rankings:
        for rank, document in enumerate(ranking, start=1):
            scores[document.id] = scores.get(document.id, 0) + 1 / (10 + rank)
    return scores


def scores_of(documents):
    return {document.id: document.metadata["retrieval_score"] for document in documents}


@pytest.mark.full
def test_hybrid_is_the_textbook_fusion_of_both_rankings(stores):
    for question in questions():
        sides = [stores[mode].search(question, k=N_PASSAGES) for mode in ("dense", "sparse")]
        expected = textbook(sides)
        found = stores["hybrid"].search(question, k=10)
        best = sorted(expected, key=lambda name: (-expected[name], name))[:10]
        assert [document.id for document in found] == best
        assert scores_of(found) == pytest.approx({name: expected[name] for name in best})


@pytest.mark.full
def test_qdrants_own_fusion_agrees_where_nothing_ties(stores):
    """Its k is one higher, because it counts ranks from 0."""
    fusion = models.RrfQuery(rrf=models.Rrf(k=11))
    compared = 0
    for question in questions():
        sides = [stores[mode].search(question, k=N_PASSAGES) for mode in ("dense", "sparse")]
        if any(len(set(scores_of(side).values())) < len(side) for side in sides):
            continue
        compared += 1
        found = stores["hybrid"].vectorstore.similarity_search_with_score(
            question, k=N_PASSAGES, hybrid_fusion=fusion
        )
        ours = {d.page_content: s for d, s in _with_scores(stores["hybrid"], question)}
        assert {d.page_content: s for d, s in found} == pytest.approx(ours)
    assert compared >= 20


def _with_scores(store, question):
    found = store.search(question, k=N_PASSAGES)
    return [(document, document.metadata["retrieval_score"]) for document in found]


class AnglesByCount(Embeddings):
    """The question points east; a text's angle from it is looked up by its count of 'kelp'."""

    angles: ClassVar = {9: 1.5, 8: 0.2, 7: 0.3, 6: 0.4, 5: 0.5, 4: 0.6, 3: 0.7, 2: 0.8, 1: 0.1}

    def embed_query(self, text):
        return [1.0, 0.0]

    def embed_documents(self, texts):
        angles = [self.angles[text.count("kelp")] for text in texts]
        return [[math.cos(angle), math.sin(angle)] for angle in angles]


def test_a_passage_second_on_both_sides_beats_the_first_of_each_even_at_k_one():
    texts = {f"{n}": "kelp " * n + "reef " * (10 - n) for n in range(1, 10)}
    with open_store("c", embeddings=AnglesByCount()) as store:
        store.add(Document(id=name, page_content=text) for name, text in texts.items())
        assert [found.id for found in store.search("kelp", k=1)] == ["8"]
        both = models.RrfQuery(rrf=models.Rrf(k=11))
        [(shallow, _)] = store.vectorstore.similarity_search_with_score(
            "kelp", k=1, hybrid_fusion=both
        )
    assert shallow.page_content in (texts["9"], texts["1"])


@pytest.mark.parametrize("k", [1, 10, CORMACK_K])
def test_every_way_to_it_gives_the_same_to_the_last_digit(k):
    rankings = [["a", "b", "c"], ["c", "a"], ["b", "d", "a"]]
    fused = fuse(rankings, k=k)
    for name, score in fused.items():
        ranks = [ranking.index(name) + 1 for ranking in rankings if name in ranking]
        by_hand = 0.0
        for rank in ranks:
            by_hand += 1 / (k + rank)
        assert score == by_hand == sum_reciprocals(ranks, k=k)
    ranking = [ScoredDocument("x", 9.0), ScoredDocument("y", 8.0)]
    assert reciprocal_scores_of(ranking, k=k) == {"x": 1 / (k + 1), "y": 1 / (k + 2)}
