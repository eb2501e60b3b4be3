"""Compressor and retriever inside what LangChain builds from them."""

import asyncio

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.documents import BaseDocumentTransformer
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from deepera_graph import EvidenceReranker
from langchain_deepera import DeepEraCompressor, DeepEraRetriever
from langchain_deepera.testing import RunRecorder

pytestmark = pytest.mark.full

EVIDENCE = ["trial", "meal", "cohort", "null"]


class Reversed(BaseDocumentTransformer):
    def transform_documents(self, documents, **options):
        return list(documents)[::-1]


@pytest.fixture
def compressor(reranker):
    return DeepEraCompressor(reranker=reranker)


@pytest.fixture
def compressing(store, compressor):
    source = store.as_retriever(search_kwargs={"k": 6})
    return ContextualCompressionRetriever(base_compressor=compressor, base_retriever=source)


def run(runnable, given, is_async, config=None):
    if is_async:
        return asyncio.run(runnable.ainvoke(given, config))
    return runnable.invoke(given, config)


def ids(documents):
    return [document.id for document in documents]


both_ways = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


@both_ways
def test_in_a_compression_retriever(is_async, compressing, question):
    assert ids(run(compressing, question, is_async)) == EVIDENCE


@both_ways
def test_in_a_compressor_pipeline(is_async, store, compressor, question):
    pipeline = DocumentCompressorPipeline(transformers=[Reversed(), compressor, Reversed()])
    retriever = ContextualCompressionRetriever(
        base_compressor=pipeline, base_retriever=store.as_retriever(search_kwargs={"k": 6})
    )
    assert ids(run(retriever, question, is_async)) == EVIDENCE[::-1]


@both_ways
def test_in_an_lcel_chain(is_async, store, compressor, question):
    source = store.as_retriever(search_kwargs={"k": 6})
    chain = (
        {"documents": source, "question": RunnablePassthrough()}
        | compressor.as_runnable()
        | RunnableLambda(ids)
    )
    assert run(chain, question, is_async) == EVIDENCE


@both_ways
def test_the_retriever_in_an_lcel_chain(is_async, store, reranker, question):
    chain = DeepEraRetriever(source=store, reranker=reranker) | RunnableLambda(ids)
    assert run(chain, question, is_async) == EVIDENCE


def test_the_retriever_takes_k_by_bind(store, reranker, question):
    retriever = DeepEraRetriever(source=store, reranker=reranker)
    assert ids(retriever.bind(k=2).invoke(question)) == EVIDENCE[:2]


@both_ways
def test_in_an_ensemble_the_id_key_joins_a_passage_and_its_summary(
    is_async, store, reranker, question
):
    retriever = DeepEraRetriever(source=store, reranker=reranker)
    whole = store.as_retriever(search_kwargs={"k": 6})
    ensemble = EnsembleRetriever(retrievers=[retriever, whole], id_key="key")
    found = ids(run(ensemble, question, is_async))
    assert sorted(found) == sorted(["debate", "kelp", *EVIDENCE])
    assert set(found[:4]) == set(EVIDENCE)


@both_ways
def test_a_compression_retriever_is_one_trace(is_async, compressing, question):
    recorder = RunRecorder()
    run(compressing, question, is_async, {"callbacks": [recorder]})
    [score] = recorder.runs_named("score 1")
    assert recorder.path(score)[1:] == ["score", "DeepEra", "ContextualCompressionRetriever"]
    assert sum(parent is None for parent in recorder.parents.values()) == 1


@both_ways
def test_a_retriever_in_a_chain_is_one_trace(is_async, store, compressing, reranker, question):
    for retriever in (compressing, DeepEraRetriever(source=store, reranker=reranker)):
        recorder = RunRecorder()
        chain = retriever | RunnableLambda(ids)
        run(chain, question, is_async, {"callbacks": [recorder]})
        [score] = recorder.runs_named("score 1")
        expected = ["score", "DeepEra", type(retriever).__name__, "RunnableSequence"]
        assert recorder.path(score)[1:] == expected
        assert sum(parent is None for parent in recorder.parents.values()) == 1


STAGES = {"receive", "intent", "score", "plan", "select", "summarize", "collect"}


@both_ways
def test_a_trace_shows_the_search_and_the_stages_and_no_helper_steps(
    is_async, store, reranker, question
):
    recorder = RunRecorder()
    retriever = DeepEraRetriever(source=store, reranker=reranker)
    run(retriever, question, is_async, {"callbacks": [recorder]})
    paths = [recorder.path(one) for one in recorder.names]
    above = ["DeepEra", "DeepEraRetriever"]
    assert ["InMemoryVectorStore", "DeepEraRetriever"] in paths
    assert {path[0] for path in paths if path[1:] == above} == STAGES


@both_ways
def test_handlers_hear_of_every_run_once(is_async, compressing, question):
    recorder = RunRecorder()
    chain = compressing | RunnableLambda(ids)
    run(chain, question, is_async, {"callbacks": [recorder]})
    assert len(recorder.inputs) == len(recorder.names)


@both_ways
def test_a_chain_limits_the_calls_of_a_retriever_in_it(is_async, store, script, question):
    script.seconds = 0.02
    retriever = DeepEraRetriever(source=store, reranker=EvidenceReranker(script.backend()))

    def step(_):
        return retriever.invoke(question)

    async def astep(_):
        return await retriever.ainvoke(question)

    chain = RunnableLambda(step, afunc=astep)
    assert ids(run(chain, None, is_async, {"max_concurrency": 2})) == EVIDENCE
    assert script.most_in_flight == 2


@both_ways
def test_a_config_limits_the_calls_of_a_retriever(is_async, store, script, question):
    script.seconds = 0.02
    retriever = DeepEraRetriever(source=store, reranker=EvidenceReranker(script.backend()))
    recorder = RunRecorder()
    config = {"max_concurrency": 2, "run_name": "mine", "callbacks": [recorder]}
    assert ids(run(retriever, question, is_async, config)) == EVIDENCE
    assert script.most_in_flight == 2
    assert [*recorder.names.values()].count("mine") == 1
    assert len(recorder.inputs) == len(recorder.names)


def test_a_batch_of_questions_keeps_to_the_limit(store, script, question):
    script.seconds = 0.02
    reranker = EvidenceReranker(script.backend(), max_concurrency=3)
    retriever = DeepEraRetriever(source=store, reranker=reranker)
    found = asyncio.run(retriever.abatch([question] * 4))
    assert [ids(documents) for documents in found] == [EVIDENCE] * 4
    assert retriever.batch([question] * 4) == found
    assert script.most_in_flight == 3
