"""The index of words in memory, beside the store on Qdrant that it stands in for."""

import random

import pytest
from langchain_core.documents import Document

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.stores.words import WordIndex

WORDS = ["kelp", "otter", "urchin", "reef", "tide", "shoal", "coral", "wrasse", "squid", "algae"]


def passages(n):
    draw = random.Random(n)
    return [
        Document(
            id=f"p{number}",
            page_content=" ".join(draw.choices(WORDS, k=draw.randint(3, 60))),
            metadata={"title": draw.choice([*WORDS, " "]), "year": number},
        )
        for number in range(n)
    ]


@pytest.mark.full
def test_it_finds_what_a_sparse_store_finds():
    draw = random.Random(3)
    with open_store("c") as store, WordIndex() as words:
        assert words.add(passages(150)) == store.add(passages(150)) == 150
        for _ in range(60):
            question = " ".join(draw.choices([*WORDS, "the", "xylem"], k=draw.randint(1, 5)))
            ours, theirs = words.search(question, 20), store.search(question, 20)
            scores = [one.metadata.pop("retrieval_score") for one in ours]
            assert scores == pytest.approx(
                [one.metadata.pop("retrieval_score") for one in theirs], rel=1e-5
            )
            if len({round(score, 4) for score in scores}) == len(scores):  # else ties by rounding
                assert ours == theirs


def test_equal_scores_are_ordered_by_id_in_whatever_order_they_came():
    same = [Document(id=name, page_content="Otters eat urchins.") for name in "bca"]
    with WordIndex() as words:
        words.add(same)
        assert [one.id for one in words.search("urchins")] == ["a", "b", "c"]


def test_a_passage_replaces_the_one_with_the_same_id():
    with WordIndex() as words:
        words.add([Document(id="a", page_content="Otters."), Document(page_content="Kelp.")])
        words.add([Document(id="a", page_content="Urchins."), Document(page_content="Kelp.")])
        assert words.count() == 2
        assert (words.search("otters"), len(words.search("urchins"))) == ([], 1)


def test_it_changes_nothing_of_a_passage():
    given = Document(id="a", page_content="Otters.", metadata={"year": 2012})
    with WordIndex() as words:
        words.add([given])
        (found,) = words.search("otter")
    assert found.metadata == {"year": 2012, "retrieval_rank": 1} | {
        "retrieval_score": found.metadata["retrieval_score"]
    }
    assert given == Document(id="a", page_content="Otters.", metadata={"year": 2012})


@pytest.mark.parametrize("question", ["the of and", "xylem"])
def test_a_question_that_shares_no_word_finds_nothing(question):
    with WordIndex() as words:
        words.add(passages(5))
        assert words.search(question) == []


def test_what_it_refuses():
    with WordIndex() as words:
        with pytest.raises(InputError, match="has no text"):
            words.add([Document(id="a", page_content=" ")])
        with pytest.raises(InputError, match="cannot be stored"):
            words.add([Document(id="a", page_content="x", metadata={"a": object()})])
        with pytest.raises(InputError, match="question is empty"):
            words.search(" ")
        with pytest.raises(SettingsError, match="k must be"):
            words.search("otter", 0)
