"""The retriever: sources, k, first-stage scores, nothing found, writing down."""

import asyncio
import json
import pickle

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import VectorStore

from deepera_graph import (
    BackendError,
    EvidenceReranker,
    InputError,
    SettingsError,
    local_backend,
)
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.testing import ScriptedChat
from langchain_deepera import DeepEraRetriever
from langchain_deepera.testing import RunRecorder
from support.scripted import Script

pytestmark = pytest.mark.full

FACTORY = "support.scripted:tea_backend"


class Shelf(BaseRetriever):
    """Gives the same documents whatever is asked."""

    documents: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return self.documents


class NoScores(VectorStore):
    """A store that only searches, like some of LangChain's."""

    def __init__(self, documents):
        self.documents = documents

    @classmethod
    def from_texts(cls, texts, embedding, metadatas=None, **options):
        return cls([Document(page_content=text) for text in texts])

    def similarity_search(self, query, k=4, **options):
        return self.documents[:k]


def ids(documents):
    return [document.id for document in documents]


def both(retriever, question, **options):
    """What `invoke` gives, after checking that `ainvoke` gives the same."""
    found = retriever.invoke(question, **options)
    assert asyncio.run(retriever.ainvoke(question, **options)) == found
    return found


def test_a_vector_store_is_searched_and_its_scores_are_kept(store, reranker, question):
    found = both(DeepEraRetriever(source=store, reranker=reranker), question)
    assert ids(found) == ["trial", "meal", "cohort", "null"]
    first = {one.id: score for one, score in store.similarity_search_with_score(question, k=30)}
    for one in found:
        assert one.metadata["deepera"]["retrieval_score"] == pytest.approx(first[one.id])
        assert one.metadata["deepera"]["retrieval_rank"] == list(first).index(one.id) + 1


def test_a_search_leaves_the_store_as_it_was(store, reranker, question):
    before = store.similarity_search(question, k=6)
    both(DeepEraRetriever(source=store, reranker=reranker), question)
    assert store.similarity_search(question, k=6) == before
    assert all(set(one.metadata) == {"source", "key"} for one in before)


def test_a_store_without_scores_gives_ranks(documents, reranker, question):
    found = both(DeepEraRetriever(source=NoScores(documents), reranker=reranker), question)
    assert [one.metadata["deepera"]["retrieval_rank"] for one in found] == [2, 5, 4, 6]
    assert {one.metadata["deepera"]["retrieval_score"] for one in found} == {None}


def test_a_retriever_is_wrapped_and_its_scores_are_kept(documents, reranker, question):
    documents[1].metadata["retrieval_score"] = 3.5
    found = both(DeepEraRetriever(source=Shelf(documents=documents), reranker=reranker), question)
    assert found[0].metadata["deepera"]["retrieval_score"] == 3.5
    assert found[0].metadata["deepera"]["retrieval_rank"] == 2


def test_any_runnable_that_gives_documents_is_a_source(documents, reranker, question):
    source = RunnableLambda(lambda _: documents)
    assert len(both(DeepEraRetriever(source=source, reranker=reranker), question)) == 4


def test_a_passage_store_is_a_source(documents, reranker, question):
    with open_store("tea", path=":memory:") as store:
        store.add(documents)
        found = both(DeepEraRetriever(source=store, reranker=reranker), question)
    assert ids(found) == ["trial", "meal", "cohort", "null"]
    assert all(one.metadata["deepera"]["retrieval_score"] > 0 for one in found)


def test_the_local_judge_keeps_vectors_beside_a_store_in_a_folder(documents, question, tmp_path):
    with open_store("tea", path=tmp_path / "store") as store:
        store.add(documents)
        for retriever in (DeepEraRetriever(source=store), DeepEraRetriever.local(store)):
            assert retriever.backend["keep_in"] == str(store.folder)
            again = DeepEraRetriever.from_dict(json.loads(json.dumps(retriever.to_dict())), store)
            assert again.backend == retriever.backend
            assert "keep_in" not in retriever.to_dict()["reranker"]["backend"]
        assert both(DeepEraRetriever.local(store, threshold=0), question)
        assert (store.folder / "vectors.sqlite3").exists()
        assert "keep_in" not in DeepEraRetriever(source=store, backend=local_backend()).backend
    with open_store("tea") as store:
        assert "keep_in" not in DeepEraRetriever(source=store).backend


def test_n_candidates_limits_what_is_judged(documents, script, question):
    reranker = EvidenceReranker(script.backend())
    for source in (Shelf(documents=documents), RunnableLambda(lambda _: documents)):
        script.judged.clear()
        DeepEraRetriever(source=source, reranker=reranker, n_candidates=2).invoke(question)
        assert sorted(script.judged) == sorted(one.page_content for one in documents[:2])


def test_the_retriever_of_a_store_is_asked_for_n_candidates(store, script, reranker, question):
    retriever = DeepEraRetriever(source=store.as_retriever(), reranker=reranker)
    both(retriever, question)
    assert len(script.judged) == 2 * 6


def test_a_k_of_the_source_itself_is_respected(store, script, reranker, question):
    source = store.as_retriever(search_kwargs={"k": 3})
    DeepEraRetriever(source=source, reranker=reranker).invoke(question)
    assert len(script.judged) == 3


def test_top_n_and_k_are_two_names_of_the_most_returned(store, script, question):
    for most in ({"top_n": 1}, {"k": 1}):
        retriever = DeepEraRetriever(source=store, backend=script.backend(), **most)
        assert len(both(retriever, question)) == 1


@pytest.mark.parametrize(("top_n", "k", "n"), [(1, 3, 3), (4, 2, 2), (2, None, 2)])
def test_k_overrides_top_n(top_n, k, n, store, script, question):
    reranker = EvidenceReranker(script.backend(), top_n=top_n)
    assert len(both(DeepEraRetriever(source=store, reranker=reranker, k=k), question)) == n
    assert len(both(DeepEraRetriever(source=store, reranker=reranker), question, k=k)) == n
    assert reranker.settings.top_n == top_n


def test_k_of_the_call_wins(store, reranker, question):
    retriever = DeepEraRetriever(source=store, reranker=reranker, k=1)
    assert len(both(retriever, question, k=3)) == 3
    assert len(both(retriever, question)) == 1


def test_calls_with_another_k_share_the_limit(documents, script, question):
    script.seconds = 0.02
    reranker = EvidenceReranker(script.backend(), max_concurrency=3)
    retriever = DeepEraRetriever(source=Shelf(documents=documents), reranker=reranker)

    async def many():
        await asyncio.gather(*(retriever.ainvoke(question, k=k) for k in (1, 2, 3)))

    asyncio.run(many())
    assert script.most_in_flight == 3


@pytest.mark.parametrize("k", [0, -1, True, "3", 1.5])
def test_a_bad_k_is_an_error(k, store, reranker, question):
    retriever = DeepEraRetriever(source=store, reranker=reranker)
    with pytest.raises(SettingsError, match="k must be a whole number >= 1, got"):
        retriever.invoke(question, k=k)
    with pytest.raises(SettingsError, match="k must be a whole number >= 1, got"):
        asyncio.run(retriever.ainvoke(question, k=k))


@pytest.mark.parametrize("name", ["k", "n_candidates"])
def test_a_bad_number_is_an_error_at_construction(name, store, reranker):
    with pytest.raises(SettingsError, match=f"{name} must be a whole number >= 1, got 0"):
        DeepEraRetriever(source=store, reranker=reranker, **{name: 0})


def test_a_source_that_cannot_be_searched_is_an_error(reranker):
    with pytest.raises(SettingsError, match=r"source must be a retriever, .* got 'tea.txt'"):
        DeepEraRetriever(source="tea.txt", reranker=reranker)


@pytest.mark.parametrize("found", [None, "tea.txt", {"documents": []}])
def test_a_source_that_returns_no_list_is_named(found, reranker, question):
    source = RunnableLambda(lambda _: found)
    retriever = DeepEraRetriever(source=source, reranker=reranker)
    with pytest.raises(InputError, match="a source must return a list of documents, got "):
        retriever.invoke(question)
    with pytest.raises(InputError, match="a source must return a list of documents, got "):
        asyncio.run(retriever.ainvoke(question))


def test_nothing_found_is_an_empty_list_without_a_call(script, reranker, question):
    retriever = DeepEraRetriever(source=Shelf(documents=[]), reranker=reranker)
    assert both(retriever, question) == []
    assert retriever.find(question).outcome == "nothing_retrieved"
    assert script.judged == []


def test_find_gives_everything(store, reranker, question):
    retriever = DeepEraRetriever(source=store, reranker=reranker)
    result = retriever.find(question, k=2)
    assert (len(result.kept), len(result.dropped), result.outcome) == (2, 4, "ok")
    assert asyncio.run(retriever.afind(question, k=2)).passages == result.passages


def test_a_blank_question_is_an_error(store, reranker):
    with pytest.raises(InputError, match="question must not be empty"):
        DeepEraRetriever(source=store, reranker=reranker).invoke("")


def test_a_dead_backend_is_an_error(store, question):
    reranker = EvidenceReranker(Script({}, default=RuntimeError("out of tea")).backend())
    with pytest.raises(BackendError, match="out of tea"):
        DeepEraRetriever(source=store, reranker=reranker).invoke(question)


def test_the_shortcuts_set_everything(store):
    local = DeepEraRetriever.local(store, k=2, n_candidates=9, threshold=0.5)
    llm = DeepEraRetriever.from_llm(
        store, ScriptedChat(scores={}), k=2, n_candidates=9, threshold=0.5
    )
    for retriever in (local, llm):
        assert (retriever.k, retriever.n_candidates) == (2, 9)
        assert retriever.reranker.settings.threshold == 0.5
    assert local.reranker.backend.name == "local"
    assert llm.reranker.backend.name == "llm"


def test_it_is_written_down_and_read_again_on_a_source(store, question):
    retriever = DeepEraRetriever(
        source=store, reranker=EvidenceReranker(FACTORY), k=2, n_candidates=5
    )
    plain = json.loads(json.dumps(retriever.to_dict()))
    again = DeepEraRetriever.from_dict(plain, store)
    assert again.invoke(question) == retriever.invoke(question)
    assert (again.k, again.n_candidates) == (2, 5)


def test_it_pickles_with_its_source(documents, question):
    retriever = DeepEraRetriever(
        source=Shelf(documents=documents), reranker=EvidenceReranker(FACTORY), k=2
    )
    assert pickle.loads(pickle.dumps(retriever)).invoke(question) == retriever.invoke(question)


@pytest.mark.parametrize("is_async", [False, True])
def test_source_and_judge_are_one_trace(is_async, documents, reranker, question):
    retriever = DeepEraRetriever(source=Shelf(documents=documents), reranker=reranker)
    recorder = RunRecorder()
    config = {"callbacks": [recorder]}
    if is_async:
        asyncio.run(retriever.ainvoke(question, config))
    else:
        retriever.invoke(question, config)
    paths = {tuple(recorder.path(run)) for run in recorder.names}
    assert ("Shelf", "DeepEraRetriever") in paths
    assert ("score 1", "score", "DeepEra", "DeepEraRetriever") in paths
    assert {path[-1] for path in paths} == {"DeepEraRetriever"}


@pytest.mark.parametrize("question", [{"question": "Does tea help?"}, 5, None])
def test_a_question_that_is_no_text_is_named_before_the_store_is_asked(question):
    retriever = DeepEraRetriever.local(Shelf(documents=[]))
    with pytest.raises(InputError, match="question must be a text, got "):
        retriever.invoke(question)
    with pytest.raises(InputError, match="question must be a text, got "):
        asyncio.run(retriever.ainvoke(question))
