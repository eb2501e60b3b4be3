"""Indexing and searching with a real embedded Qdrant."""

import asyncio
import copy
import datetime
import logging

import pytest
from langchain_core.documents import Document
from qdrant_client.local.local_collection import LocalCollection
from qdrant_client.local.qdrant_local import QdrantLocal

from deepera_graph.errors import InputError, SettingsError, StoreError
from deepera_graph.passages import MOST_QUESTION
from deepera_graph.retrieval.collections import passage_store
from deepera_graph.retrieval.collections.store import open_store

HOSTILE = [
    "what's RAG-based? (2024)",
    '"unclosed AND (NEAR glucose*',
    "'; DROP TABLE points; --",
    "glucose\x00tea",
    "\ud800 glucose",
    "葡萄糖 γλυκόζη 🧪",
    "{{7*7}} ${env} %s %n",
    "metadata.year:[* TO *]",
    "glucose " * 20_000,
]


@pytest.fixture
def store(corpus):
    with open_store("corpus") as store:
        store.add(corpus)
        yield store


def ids(found):
    return [document.id for document in found]


def test_it_finds_with_score_rank_id_and_metadata(store):
    best, second = store.search("Does green tea lower fasting glucose?")
    assert (best.id, second.id) == ("tea", "glucose")
    assert best.page_content == "Green tea lowered fasting glucose in the trial."
    score = best.metadata.pop("retrieval_score")
    assert score > second.metadata["retrieval_score"] > 0
    assert best.metadata == {"year": 2012, "topic": "diet", "retrieval_rank": 1}
    assert second.metadata["retrieval_rank"] == 2


def test_every_mode_ranks_by_falling_score(settings, corpus):
    with open_store("modes", **settings) as store:
        store.add(corpus)
        found = store.search("fasting glucose and coffee", k=3)
    scores = [document.metadata["retrieval_score"] for document in found]
    assert [document.metadata["retrieval_rank"] for document in found] == [1, 2, 3]
    assert scores == sorted(scores, reverse=True)
    assert len(set(ids(found))) == 3
    assert found[0].id == "glucose"


def test_documents_handed_in_stay_as_they_are(store, corpus):
    before = copy.deepcopy(corpus)
    store.add(corpus)
    store.search("glucose")[0].metadata["year"] = 1
    assert corpus == before
    assert store.search("glucose")[0].metadata["year"] != 1


def test_indexing_twice_changes_nothing(settings, corpus):
    with open_store("twice", **settings) as store:
        assert store.add(corpus) == 5
        first = store.search("glucose tea")
        assert store.add(corpus) == 5
        assert store.count() == 5
        assert store.search("glucose tea") == first


def test_a_passage_with_a_known_id_replaces_the_old_one(store):
    store.add([Document(id="tea", page_content="White tea was not tried.")])
    assert "tea" not in ids(store.search("glucose"))
    assert ids(store.search("white")) == ["tea"]


def test_a_passage_without_an_id_gets_one_from_its_text(store):
    for _ in range(2):
        store.add([Document(page_content="Sea urchins grazed the reef bare.")])
    assert store.count() == 6
    assert len(store.search("urchins")[0].id) == 16


def test_a_title_is_matched_but_not_mixed_into_the_text(store):
    passage = Document(id="t", page_content="It rose.", metadata={"title": "Ozone over Oslo"})
    store.add([passage])
    [found] = store.search("ozone")
    assert (found.page_content, found.metadata["title"]) == ("It rose.", "Ozone over Oslo")


def test_passages_are_read_one_batch_at_a_time():
    events = []

    def passages():
        for number in range(5):
            events.append(number)
            yield Document(id=str(number), page_content=f"passage {number}")

    with open_store("batches") as store:
        store.add(passages(), batch_size=2, on_progress=lambda done: events.append(f"{done} done"))
    assert events == [0, 1, "2 done", 2, 3, "4 done", 4, "5 done"]


def test_nothing_to_add_is_no_error(store):
    assert store.add([]) == 0


def test_an_empty_store_finds_nothing(settings):
    with open_store("empty", **settings) as store:
        assert store.search("anything") == []


@pytest.mark.parametrize("question", HOSTILE)
def test_a_question_is_never_a_query_language(settings, corpus, question):
    with open_store("hostile", **settings) as store:
        store.add(corpus)
        if settings["mode"] != "sparse" and "\ud800" in question:
            question = question.replace("\ud800", "�")
        if len(question) > MOST_QUESTION:
            with pytest.raises(InputError, match=f"at most {MOST_QUESTION} characters"):
                store.search(question)
            return
        found = store.search(question)
    if "glucose" in question and "\x00" not in question:
        assert {"tea", "glucose"} <= set(ids(found))


def test_a_question_of_stop_words_finds_nothing_by_words_and_still_ranks_by_meaning(
    corpus, make_embeddings
):
    with open_store("words") as store:
        store.add(corpus)
        assert store.search("what is the") == []
    with open_store("both", embeddings=make_embeddings()) as store:
        store.add(corpus)
        assert len(store.search("what is the")) == 5


def test_unicode_survives():
    text = "TGF-β falls at 37 °C — naïve cells, 浓度 5 µM 🧫"
    with open_store("unicode") as store:
        store.add([Document(id="β/1", page_content=text, metadata={"où": "Zürich"})])
        [found] = store.search("TGF-β", where={"où": "Zürich"})
    assert (found.id, found.page_content) == ("β/1", text)


def test_equal_scores_are_ordered_by_id_however_they_were_indexed(settings):
    passages = [Document(id=f"{n:02}", page_content="kelp and otters") for n in range(60)]
    expected = [f"{n:02}" for n in range(5)]
    for order in (passages, passages[::-1], passages[30:] + passages[:30]):
        with open_store("ties", **settings) as store:
            store.add(order)
            assert ids(store.search("kelp", k=5)) == expected


def test_a_reopened_folder_gives_the_same_ranking(tmp_path, settings, corpus):
    with open_store("kept", path=tmp_path / "s", **settings) as store:
        store.add(corpus)
        before = store.search("fasting glucose and coffee")
    embeddings = settings["embeddings"]
    with open_store("kept", path=tmp_path / "s", embeddings=embeddings, must_exist=True) as store:
        assert store.mode == settings["mode"]
        assert store.count() == 5
        assert store.search("fasting glucose and coffee") == before


async def test_async_finds_the_same(settings, corpus):
    with open_store("async", **settings) as store:
        store.add(corpus)
        questions = ["glucose", "kelp otters", "coffee and tea", "cathode"] * 3
        found = await asyncio.gather(*(store.asearch(question, k=4) for question in questions))
        assert found == [store.search(question, k=4) for question in questions]


@pytest.mark.full
async def test_searching_while_passages_come_in_is_safe():
    passages = [Document(id=str(n), page_content=f"kelp bed number {n}") for n in range(300)]
    with open_store("busy") as store:
        store.add(passages[:1])
        adding = asyncio.to_thread(store.add, passages, batch_size=10)
        searches = [store.asearch("kelp", k=3) for _ in range(20)]
        written, *found = await asyncio.gather(adding, *searches)
        assert written == store.count() == 300
        assert all(found)


def test_langchain_users_get_the_vector_store(store):
    [document] = store.vectorstore.similarity_search("kelp", k=1)
    assert document.page_content == "Kelp forests recovered after otters returned."
    retriever = store.vectorstore.as_retriever(search_kwargs={"k": 1})
    assert retriever.invoke("cathode")[0].metadata["topic"] == "energy"


@pytest.mark.parametrize("question", ["", " \n\t"])
def test_a_blank_question_is_an_error(store, question):
    with pytest.raises(InputError, match="question is empty"):
        store.search(question)


@pytest.mark.parametrize("k", [0, -1, True, 2.5])
def test_k_below_one_is_an_error(store, k):
    with pytest.raises(SettingsError, match=f"k must be .* got {k}"):
        store.search("glucose", k=k)


def test_batch_size_below_one_is_an_error(store):
    with pytest.raises(SettingsError, match="batch_size"):
        store.add([], batch_size=0)


@pytest.mark.parametrize(
    ("passage", "message"),
    [
        (Document(id="x", page_content=" \n"), "'x' has no text"),
        (
            Document(id="x", page_content="a", metadata={"when": datetime.date.today()}),
            "'x' cannot",
        ),
        (Document(id="x", page_content="a", metadata={"p": float("nan")}), "'x' cannot"),
        (Document(id="x", page_content="a \ud800"), "'x' cannot"),
    ],
)
def test_a_passage_that_cannot_be_stored_is_named(store, passage, message):
    with pytest.raises(InputError, match=message):
        store.add([passage])
    assert store.count() == 5


def test_a_closed_store_says_so(corpus):
    store = open_store("closed")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.search("glucose")


def test_a_large_embedded_store_is_said_to_be_slow_once(tmp_path, monkeypatch, caplog, corpus):
    monkeypatch.setattr(passage_store, "LARGE", 3)
    monkeypatch.setattr(LocalCollection, "LARGE_DATA_THRESHOLD", 3)
    monkeypatch.setattr(QdrantLocal, "LARGE_DATA_THRESHOLD", 3)
    caplog.set_level(logging.WARNING)
    for _ in range(2):
        with open_store("large", path=tmp_path) as store:
            store.add(corpus)
            store.add(corpus)
    assert [record.getMessage()[:32] for record in caplog.records] == [
        "5 passages in an embedded store:"
    ] * 2
