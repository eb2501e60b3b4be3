"""The embedding study, against a count by hand."""

import numpy as np
import pytest

from bench.factories import words
from bench.study_lakes import column, lab, lakes
from deepera_graph.lab.metrics.ranking import compute
from deepera_graph.lab.studies.rerank import retrieval as embedding
from deepera_graph.lab.studies.rerank.retrieval import SearchedStore

DATA = {"n": 4, "golden": (1,), "distractors": (3, 4)}


def test_nrs_and_cdr_equal_a_count_by_hand():
    store = SearchedStore.of(lakes(6, **DATA))
    scores = np.random.default_rng(1).random((6, len(store.texts)))
    places = store.with_share(0.5, seed=3)
    heads, pairs = store.search(scores, 0.5, seed=3)
    shares, right = [], []
    for wanted, row in zip(store.questions, scores, strict=True):
        order = sorted(places, key=lambda place, row=row: -row[place])
        shares.append(np.mean([place not in store.look_alikes for place in order[:3]]))
        right += [row[own] < row[parent] for parent, own in wanted.pairs if own in places]
    assert compute("NRS@3", heads).mean() == pytest.approx(np.mean(shares))
    assert compute("CDR", pairs).mean() == pytest.approx(np.mean(right))


def test_each_text_is_in_the_store_once():
    store = SearchedStore.of(lakes(3, **DATA))
    assert len(store.texts) == len(set(store.texts)) == 12
    assert len(store.look_alikes) == 6
    assert [len(one.pairs) for one in store.questions] == [2, 2, 2]


def test_a_larger_share_holds_all_of_a_smaller_one():
    store = SearchedStore.of(lakes(5, **DATA))
    some, all_of_them = (set(store.with_share(share, 0)) for share in (0.4, 1.0))
    assert some < all_of_them
    assert len(all_of_them) == len(store.texts)
    assert len(some & store.look_alikes) == 4


def test_evidence_of_one_question_is_no_look_alike_of_another():
    data = [*lakes(1, **DATA), *lakes(1, n=4, golden=(3,))]
    twice = [one.model_copy(update={"id": str(n)}) for n, one in enumerate(data)]
    store = SearchedStore.of(type(lakes())("lakes", lambda: twice))
    assert len(store.look_alikes) == 1


def test_every_embedding_has_a_row_a_share(tmp_path):
    data = [lakes(4, **DATA), lakes(2, setting="base")]
    made = lab([], data, embeddings={"fake": words()}, shares=(0.5, 1.0), keep=tmp_path)
    found = embedding.study_embeddings(made)
    (grid,) = found.grids
    assert column(grid, "embeddings") == ["bm25", "bm25", "fake", "fake"]
    assert all(0 <= one <= 1 for one in column(grid, "NRS@10"))
    assert "ssli: lsa is left out: 16 chunks cannot be embedded" in found.findings[0]
    assert "base: left out" in found.findings[2]
    assert [one.name for one in found.drawings] == ["nrs", "cdr"]
    assert embedding.study_embeddings(made).grids == found.grids
