"""Any object that scores texts is a compressor."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest
from langchain_core.documents import Document

from deepera_graph import InputError, SettingsError
from langchain_deepera import ScorerCompressor

DOCUMENTS = [
    Document(id="a", page_content="Boats are painted.", metadata={"year": 1999}),
    Document(id="b", page_content="Trout grow in lakes, and trout eat."),
    Document(id="c", page_content="Trout grow."),
]
QUERY = "trout"


def count(text):
    return float(text.lower().count(QUERY))


class Predicts:
    def predict(self, pairs):
        return np.array([count(text) for _, text in pairs])


class Ranks:
    """As cross-encoders of sentence-transformers do."""

    def rank(self, query, documents):
        scores = [count(text) for text in documents]
        order = sorted(range(len(scores)), key=lambda place: -scores[place])
        return [{"corpus_id": place, "score": scores[place]} for place in order]


class RanksWithObjects:
    """As the models of `rerankers` do, one of which gives no scores."""

    def __init__(self, has_scores=True):
        self.has_scores = has_scores

    def rank(self, query, docs):
        order = sorted(range(len(docs)), key=lambda place: -count(docs[place]))
        results = [
            SimpleNamespace(
                document=SimpleNamespace(doc_id=place),
                score=count(docs[place]) if self.has_scores else None,
            )
            for place in order
        ]
        return SimpleNamespace(results=results)


class Gets:
    def get_scores(self, query, texts):
        return [count(text) for text in texts]


@pytest.mark.parametrize("scorer", [Predicts(), Ranks(), RanksWithObjects(), Gets()])
def test_documents_come_back_by_falling_score(scorer):
    made = ScorerCompressor(scorer=scorer)
    found = made.compress_documents(DOCUMENTS, QUERY)
    assert [one.id for one in found] == ["b", "c", "a"]
    assert [one.metadata["relevance_score"] for one in found] == [2, 1, 0]
    assert found[2].metadata["year"] == 1999
    assert "relevance_score" not in DOCUMENTS[0].metadata
    again = asyncio.run(made.acompress_documents(DOCUMENTS, QUERY))
    assert again == found


def test_a_ranking_without_scores_keeps_its_order():
    found = ScorerCompressor(scorer=RanksWithObjects(False)).compress_documents(DOCUMENTS, QUERY)
    assert [one.id for one in found] == ["b", "c", "a"]


def test_only_the_best_are_kept_and_nothing_gives_nothing():
    made = ScorerCompressor(scorer=Predicts(), top_n=1)
    assert [one.id for one in made.compress_documents(DOCUMENTS, QUERY)] == ["b"]
    assert made.compress_documents([], QUERY) == []


class Index:
    def get_scores(self, query):
        return [1.0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"scorer": object()}, "must have predict, rank or get_scores"),
        ({"scorer": Index()}, "an index of its own"),
        ({"scorer": Gets(), "top_n": 0}, "top_n must be >= 1, got 0"),
    ],
)
def test_what_cannot_score_is_refused(options, says):
    with pytest.raises((SettingsError, ValueError), match=says):
        ScorerCompressor(**options)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([1.0], "must give 3 scores, gave 1"),
        ([1.0, float("nan"), 0.0], "the score nan to text 2 of 3"),
        ([[1, 2], [1, 2], [1, 2]], "one number a text"),
    ],
)
def test_scores_that_are_none_are_refused(given, says):
    scorer = SimpleNamespace(predict=lambda pairs: given)
    with pytest.raises(InputError, match=says):
        ScorerCompressor(scorer=scorer).compress_documents(DOCUMENTS, QUERY)
