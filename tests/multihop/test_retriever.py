"""Adaptive retrieval as a LangChain retriever: stores, graphs, faults."""

import asyncio
import logging
import math

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests

from deepera_graph.errors import BackendError, InputError, SettingsError
from deepera_graph.multihop.passages.graph import NeighbourGraph
from deepera_graph.multihop.passages.retriever import AdaptiveRetriever
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.retrieval.collections.store import open_store
from langchain_deepera import DeepEraRetriever
from multihop.conftest import TEXTS, WordEmbeddings

QUESTION = "Who was the keeper of the lighthouse?"


def like_the_chain(question, texts):
    """What a perfect scorer says: keeper, her birthplace, its river."""
    wanted = ("keeper", "born", "lies on")
    return [0.9 if any(one in text for one in wanted) else 0.1 for text in texts]


@pytest.fixture
def store(passages):
    with open_store("papers", mode="hybrid", embeddings=WordEmbeddings()) as opened:
        opened.add(passages)
        yield opened


@pytest.fixture
def graph(passages):
    return NeighbourGraph.of_words(passages, 3)


@pytest.fixture
def first(passages):
    """A first stage that finds two passages."""
    return RunnableLambda(lambda _: [passages[1], passages[0]])


@pytest.fixture
def make(first, graph, passages):
    def build(**options):
        given = {"first_stage": first, "graph": graph, "passages": passages}
        given |= {"judge": like_the_chain, "budget": 6, "batch_size": 2}
        return AdaptiveRetriever(**given | options)

    return build


def ids(documents):
    return [one.id for one in documents]


def test_it_finds_what_the_first_stage_missed_by_way_of_what_it_found(make):
    documents = make(k=3).invoke(QUESTION)
    assert ids(documents) == ["keeper", "marrow", "tolvan"]
    by_id = {one.id: one.metadata for one in documents}
    assert by_id["keeper"] == {
        "n": 1, "first_rank": 1, "retrieval_rank": 1, "retrieval_score": 0.9, "iteration": 0,
    }  # fmt: skip
    assert by_id["marrow"]["iteration"] % 2 == 1
    assert by_id["marrow"]["via"] == "keeper"
    assert by_id["tolvan"]["via"] == "marrow"
    assert "first_rank" not in by_id["tolvan"]


def test_the_passages_that_were_given_stay_as_they_were(make, passages):
    before = [one.model_copy(deep=True) for one in passages]
    make().invoke(QUESTION)
    assert passages == before


def test_async_finds_the_same(make):
    retriever = make(rescore=lambda question, passages, scores: [one / 2 for one in scores])
    assert asyncio.run(retriever.ainvoke(QUESTION)) == retriever.invoke(QUESTION)
    run, arun = retriever.find(QUESTION), asyncio.run(retriever.afind(QUESTION))
    assert run == arun


@pytest.mark.parametrize("by_store", [True, False])
def test_a_passage_store_is_searched_and_gives_the_neighbours(store, by_store):
    graph = NeighbourGraph.of_store(store, 3)
    retriever = AdaptiveRetriever(
        first_stage=store, graph=graph, passages=store if by_store else None,
        n_first=1, budget=4, batch_size=1,
    )  # fmt: skip
    run = retriever.find(QUESTION)
    assert run.result.batches[0] == ("keeper",)
    assert run.result.n_asked == 4
    assert (run.gone, run.not_in_graph, run.causes) == ((), (), {})
    assert run.documents[0].page_content == TEXTS[run.documents[0].id]
    assert asyncio.run(retriever.afind(QUESTION)) == run


@pytest.mark.parametrize("as_retriever", [True, False])
def test_a_vector_store_is_searched_and_gives_the_neighbours(passages, graph, as_retriever):
    vectors = InMemoryVectorStore(WordEmbeddings())
    vectors.add_documents(passages)
    source = vectors.as_retriever() if as_retriever else vectors
    retriever = AdaptiveRetriever(first_stage=source, graph=graph, judge=like_the_chain, n_first=8)
    run = retriever.find(QUESTION)
    assert {one.id for one in run.result.passages} == set(TEXTS)
    assert asyncio.run(retriever.afind(QUESTION)) == run


def test_passages_may_be_a_mapping_or_a_function(make, passages):
    by_id = {one.id: one for one in passages}
    expected = ids(make().invoke(QUESTION))
    assert ids(make(passages=by_id).invoke(QUESTION)) == expected
    assert ids(make(passages=lambda names: [by_id[n] for n in names]).invoke(QUESTION)) == expected


def test_conditions_hold_for_neighbours_too(store, caplog):
    retriever = AdaptiveRetriever(
        first_stage=store, graph=NeighbourGraph.of_store(store, 3), where={"n": {"lt": 3}}
    )
    assert {one.metadata["n"] for one in retriever.invoke(QUESTION)} == {0, 1, 2}
    assert not caplog.records


def test_k_can_be_given_with_the_question(make):
    assert len(make(k=3).invoke(QUESTION)) == 3
    assert len(make(k=3).invoke(QUESTION, k=1)) == 1
    with pytest.raises(SettingsError, match="k must be .*>= 1, got 0"):  # noqa: RUF043
        make().invoke(QUESTION, k=0)


def test_what_was_not_scored_fills_up_the_list_without_a_score(make, passages):
    first = RunnableLambda(lambda _: passages)
    found = make(first_stage=first, budget=2, k=4).invoke(QUESTION)
    assert [one.metadata["iteration"] for one in found] == [0, 0, -1, -1]
    assert ids(found)[2:] == ["marrow", "tolvan"]
    assert "retrieval_score" not in found[2].metadata
    assert [one.metadata["retrieval_rank"] for one in found] == [1, 2, 3, 4]


def test_an_empty_first_stage_is_an_empty_result(make):
    def never(question, texts):
        raise AssertionError("it was asked")

    retriever = make(first_stage=RunnableLambda(lambda _: []), judge=never)
    assert retriever.invoke(QUESTION) == []


def test_a_blank_question_is_refused(make):
    with pytest.raises(InputError, match="the question is empty"):
        make().invoke(" ")


def test_a_graph_of_other_passages_is_an_error(make):
    strangers = [Document(id=f"s{n}", page_content=f"stranger {n}") for n in range(5)]
    other = NeighbourGraph.of_words(strangers, 2)
    with pytest.raises(InputError, match=r"other passages: it has none of the 2 .*'keeper'.*'s0'"):
        make(graph=other).invoke(QUESTION)


def test_passages_that_have_other_ids_in_the_graph_are_told_what_helps(passages):
    nameless = [Document(page_content=one.page_content) for one in passages]
    vectors = InMemoryVectorStore(WordEmbeddings())
    vectors.add_documents(nameless)
    retriever = AdaptiveRetriever(first_stage=vectors, graph=NeighbourGraph.of_words(nameless, 3))
    with pytest.raises(InputError, match=r"under other ids: .* give each one an id, Document\(id="):
        retriever.invoke(QUESTION)


def test_a_passage_the_graph_does_not_know_is_scored_and_told(make, passages, caplog):
    smaller = NeighbourGraph.of_words(passages, 3).remove(["lamp"])
    with caplog.at_level(logging.WARNING):
        run = make(graph=smaller).find(QUESTION)
    assert run.not_in_graph == ("lamp",)
    assert "lamp" in {one.id for one in run.result.passages}
    assert "that the graph does not know: 1, e.g. 'lamp'" in caplog.text


def test_a_neighbour_that_was_deleted_costs_nothing_and_is_told(make, passages, caplog):
    left = [one for one in passages if one.id != "marrow"]
    with caplog.at_level(logging.WARNING):
        run = make(passages=left, budget=4).find(QUESTION)
    assert "marrow" in run.gone
    assert "marrow" not in {name for batch in run.result.batches for name in batch}
    assert run.result.n_asked == 4
    assert "that the store does not have: 1, e.g. 'marrow': deleted" in caplog.text


@pytest.mark.parametrize("failed", [None, math.nan])
def test_a_score_that_fails_is_no_zero_and_is_told(make, caplog, failed):
    def judge(question, texts):
        return [failed if "keeper" in text else 0.5 for text in texts]

    with caplog.at_level(logging.WARNING):
        run = make(judge=judge, budget=8).find(QUESTION)
    assert "keeper" not in ids(run.documents)
    assert [one.id for one in run.result.unscored] == ["keeper"]
    assert "passages that could not be scored: 1, e.g. 'keeper': " in caplog.text


def test_a_batch_that_fails_fails_alone(make):
    calls = []

    def judge(question, texts):
        calls.append(texts)
        if len(calls) == 2:
            raise ConnectionError("the wire is cut")
        return [0.5 for _ in texts]

    run = make(judge=judge).find(QUESTION)
    failed = run.result.batches[1]
    assert {one.id for one in run.result.unscored} == {*failed}
    assert all("the wire is cut" in run.causes[name] for name in failed)
    assert len(run.result.passages) + len(failed) == run.result.n_asked


def test_if_nothing_can_be_scored_it_says_why(make):
    def judge(question, texts):
        raise ConnectionError("the wire is cut")

    with pytest.raises(BackendError, match=r"no passage could be scored: .*the wire is cut"):
        make(judge=judge).invoke(QUESTION)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, r"budget must be .*, got 0"),
        ({"batch_size": 0}, r"batch_size must be .*, got 0"),
        ({"k": 0}, r"k must be .*, got 0"),
        ({"n_first": 0}, r"n_first must be .*, got 0"),
        ({"first_stage": 3}, r"first_stage must be .*, got 3"),
        ({"passages": None}, r"fetched from the first stage .*: give passages="),
        ({"where": {"n": 1}}, r"where= is for passage stores"),
        ({"buget": 4}, r"unknown field 'buget'; did you mean 'budget'\?"),
        ({"graph": 7}, r"graph: .* got 7"),
        ({"judge": 7}, r"judge must be .*, got 7"),
        ({"judge": "local"}, r"'local' cannot score batches .* depend on the passages"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(make, options, message):
    with pytest.raises(SettingsError, match=message):
        make(**options)


def test_a_graph_that_is_missing_is_named(first):
    with pytest.raises(SettingsError, match="graph= is missing"):
        AdaptiveRetriever(first_stage=first)


def test_scores_can_be_revised_batch_by_batch(make):
    seen = []

    def rescore(question, passages, scores):
        seen.append((question, ids(passages)))
        return [one / 2 for one in scores]

    run = make(rescore=rescore).find(QUESTION)
    assert [tuple(names) for _, names in seen] == [*run.result.batches]
    assert run.documents[0].metadata["retrieval_score"] == 0.45
    assert run.result.feedback == "each"


def test_a_revision_for_async_alone_says_so(make):
    async def arescore(question, passages, scores):
        return scores

    retriever = make(arescore=arescore, rescore=None)
    assert asyncio.run(retriever.afind(QUESTION)).result.feedback == "each"


def test_it_stands_in_front_of_a_reranker(make):
    found = make(k=4).invoke(QUESTION)
    result = EvidenceReranker("rules").rerank(QUESTION, found)
    assert [one.retrieval_rank for one in result.all_passages if one.id == "keeper"] == [1]
    by_id = {one.id: one for one in result.all_passages}
    assert by_id["marrow"].metadata["via"] == "keeper"


def test_it_is_a_source_of_the_retriever_that_keeps_evidence(make):
    keeper = DeepEraRetriever(source=make(k=4), backend="rules", n_candidates=4)
    result = keeper.find(QUESTION)
    assert {one.id for one in result.all_passages} == set(ids(make(k=4).invoke(QUESTION)))


def test_it_tells_how_much_of_the_budget_went_to_copies(passages, first):
    copies = [Document(id=f"copy {n}", page_content=passages[1].page_content) for n in range(3)]
    every = [*passages, *copies]
    retriever = AdaptiveRetriever(
        first_stage=first, graph=NeighbourGraph.of_words(every, 3), passages=every,
        judge=like_the_chain, budget=6, batch_size=2,
    )  # fmt: skip
    run = retriever.find(QUESTION)
    asked = [name for batch in run.result.batches for name in batch]
    assert run.n_repeated == sum(name.startswith("copy") for name in asked) > 0


def test_a_judge_that_is_changed_is_the_one_that_is_asked(make):
    retriever = make(k=1)
    assert ids(retriever.invoke(QUESTION)) == ["keeper"]
    retriever.judge = lambda question, texts: [float("lamp" in text) for text in texts]
    assert ids(retriever.invoke(QUESTION)) == ["lamp"]


class TestStandard(RetrieversIntegrationTests):
    """LangChain's own standard tests."""

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return AdaptiveRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, object]:
        documents = [Document(id=name, page_content=text) for name, text in TEXTS.items()]
        return {
            "first_stage": RunnableLambda(lambda _: documents),
            "graph": NeighbourGraph.of_words(documents, 3),
            "passages": documents,
            "judge": like_the_chain,
        }

    @property
    def retriever_query_example(self) -> str:
        return QUESTION
