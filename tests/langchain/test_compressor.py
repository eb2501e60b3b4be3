"""The compressor as an adapter: what comes back, errors, settings, writing down."""

import asyncio
import json
import logging
import pickle
from copy import deepcopy

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from deepera_graph import BackendError, EvidenceReranker, InputError, SettingsError
from deepera_graph.errors import CallError
from deepera_graph.testing import ScriptedChat, answer_in_json
from langchain_deepera import DeepEraCompressor
from langchain_deepera.testing import RunRecorder
from support.openai_server import ChatServer, Reply, Request
from support.scripted import TEA_SCORES, Script

pytestmark = pytest.mark.full

LAST = {"connection": "close"}  # leaves no idle connection behind
FACTORY = "support.scripted:tea_backend"


@pytest.fixture
def compressor(reranker):
    return DeepEraCompressor(reranker=reranker)


def broken(error, **settings):
    backend = Script({}, default=error).backend()
    return DeepEraCompressor(reranker=EvidenceReranker(backend, **settings))


def test_the_evidence_comes_back_best_first(compressor, documents, question):
    kept = compressor.compress_documents(documents, question)
    assert [one.id for one in kept] == ["trial", "meal", "cohort", "null"]
    assert [one.metadata["relevance_score"] for one in kept] == [0.93, 0.88, 0.85, 0.81]
    assert kept[0].page_content == documents[1].page_content
    assert kept[0].metadata["deepera"]["summary"] == (
        "Green tea lowered fasting glucose by 0.4 mmol/L in 212 adults."
    )


def test_everything_else_is_under_one_key(compressor, documents, question):
    before = deepcopy(documents)
    kept = compressor.compress_documents(documents, question)
    assert all(set(one.metadata) == {"source", "key", "relevance_score", "deepera"} for one in kept)
    assert json.loads(json.dumps(kept[0].metadata)) == kept[0].metadata
    assert documents == before


def test_retrieval_score_and_rank_are_kept(compressor, documents, question):
    documents[1].metadata |= {"retrieval_score": 7.5, "retrieval_rank": 4}
    best = compressor.compress_documents(documents, question)[0]
    assert best.metadata["deepera"]["retrieval_score"] == 7.5
    assert best.metadata["deepera"]["retrieval_rank"] == 4


def test_no_documents_need_no_question(compressor, script):
    assert compressor.compress_documents([], "") == []
    assert asyncio.run(compressor.acompress_documents([], "")) == []
    assert script.judged == []


def test_a_blank_query_is_an_error(compressor, documents):
    with pytest.raises(InputError, match="question must not be empty"):
        compressor.compress_documents(documents, " ")


def test_swapped_arguments_are_named(compressor, documents, question):
    with pytest.raises(InputError, match=r"must be a text, got list: are question and passages sw"):
        compressor.compress_documents(question, documents)


@pytest.mark.parametrize(
    "error", [CallError("wrong key", unusable=True), RuntimeError("no answer")], ids=repr
)
def test_a_dead_backend_is_an_error_and_not_an_empty_list(error, documents, question):
    compressor = broken(error, on_empty="original")
    with pytest.raises(BackendError, match=r"no passage could be judged: .*(wrong key|no answer)"):
        compressor.compress_documents(documents, question)
    with pytest.raises(BackendError, match="no passage could be judged"):
        asyncio.run(compressor.acompress_documents(documents, question))


def test_a_blank_document_does_not_hide_a_dead_backend(documents, question):
    compressor = broken(CallError("wrong key", unusable=True))
    with pytest.raises(BackendError, match="wrong key"):
        compressor.compress_documents([Document(page_content=" "), *documents], question)


def test_a_document_without_text_alone_is_no_dead_backend(compressor, question):
    assert compressor.compress_documents([Document(page_content=" ")], question) == []


def test_a_partial_failure_is_logged(documents, question, caplog):
    scores = {**TEA_SCORES, "Kelp": RuntimeError("out of tea")}
    compressor = DeepEraCompressor(reranker=EvidenceReranker(Script(scores).backend()))
    with caplog.at_level(logging.WARNING, logger="langchain_deepera"):
        assert len(compressor.compress_documents(documents, question)) == 4
    [record] = caplog.records
    assert "1 of 6 passages could not be judged, e.g. 'kelp'" in record.message
    assert "out of tea" in record.message


def test_settings_reach_the_reranker():
    compressor = DeepEraCompressor.local(threshold=0.7, top_n=3)
    assert compressor.reranker.settings.threshold == 0.7
    assert compressor.reranker.settings.top_n == 3
    assert DeepEraCompressor.from_llm(ScriptedChat(scores={}), top_n=2).reranker.settings.top_n == 2


def test_a_bad_setting_is_an_error():
    with pytest.raises(SettingsError, match=r"threshold must be in \[0, 1\], got 1.2"):
        DeepEraCompressor.local(threshold=1.2)
    with pytest.raises(SettingsError, match="unknown setting 'treshold'"):
        DeepEraCompressor.local(treshold=0.5)
    with pytest.raises(SettingsError, match="unknown setting 'treshold'"):
        DeepEraCompressor(reranker=EvidenceReranker(), treshold=0.5)
    with pytest.raises(SettingsError, match=r"threshold must be in \[0, 1\], got 1.2"):
        DeepEraCompressor(threshold=1.2)


def test_it_is_written_down_and_read_again(documents, question):
    compressor = DeepEraCompressor(reranker=EvidenceReranker(FACTORY, top_n=2))
    again = DeepEraCompressor.from_dict(json.loads(json.dumps(compressor.to_dict())))
    kept = compressor.compress_documents(documents, question)
    assert again.compress_documents(documents, question) == kept
    assert len(kept) == 2


def test_it_pickles(documents, question):
    compressor = DeepEraCompressor(reranker=EvidenceReranker(FACTORY))
    again = pickle.loads(pickle.dumps(compressor))
    assert again.compress_documents(documents, question) == compressor.compress_documents(
        documents, question
    )


@pytest.mark.parametrize("key", ["question", "query"])
def test_as_a_runnable_it_gives_the_same(key, compressor, documents, question):
    step = compressor.as_runnable()
    given = {key: question, "documents": documents}
    expected = compressor.compress_documents(documents, question)
    assert step.invoke(given) == expected
    assert asyncio.run(step.ainvoke(given)) == expected
    assert step.batch([given, {**given, "documents": []}]) == [expected, []]


def test_a_runnable_without_documents_is_an_error(compressor, question):
    with pytest.raises(InputError, match=r"give a question and documents, got \['question'\]"):
        compressor.as_runnable().invoke({"question": question})


@pytest.mark.parametrize("is_async", [False, True])
def test_the_limit_of_an_enclosing_chain_holds(is_async, script, reranker, documents, question):
    script.seconds = 0.02
    step = DeepEraCompressor(reranker=reranker)

    def run(_):
        return step.compress_documents(documents, question)

    async def arun(_):
        return await step.acompress_documents(documents, question)

    chain, config = RunnableLambda(run, afunc=arun), {"max_concurrency": 2}
    kept = asyncio.run(chain.ainvoke(0, config)) if is_async else chain.invoke(0, config)
    assert len(kept) == 4
    assert script.most_in_flight == 2


def test_a_chain_cannot_raise_the_limit(script, documents, question):
    script.seconds = 0.02
    reranker = EvidenceReranker(script.backend(), max_concurrency=2)
    step = DeepEraCompressor(reranker=reranker).as_runnable()
    step.invoke({"query": question, "documents": documents}, {"max_concurrency": 6})
    assert script.most_in_flight == 2


def test_a_runnable_is_one_run_in_the_trace(compressor, documents, question):
    recorder = RunRecorder()
    step = compressor.as_runnable()
    step.invoke({"query": question, "documents": documents}, {"callbacks": [recorder]})
    [run] = recorder.runs_named("score 1")
    assert recorder.path(run)[1:] == ["score", "DeepEra", "DeepEraCompressor"]


def answer(request: Request) -> Reply:
    said = answer_in_json(TEA_SCORES, request.system, request.user)
    return Reply(content=json.dumps(said), headers=LAST)


def test_a_server_is_called_once_for_each_step(documents, question):
    with ChatServer(answer) as server:
        compressor = DeepEraCompressor.from_llm("openai:scripted", base_url=server.base_url)
        kept = compressor.compress_documents(documents, question)
        assert server.calls == 1 + len(documents) + len(kept)
        assert asyncio.run(compressor.acompress_documents(documents, question)) == kept
    assert [one.id for one in kept] == ["trial", "meal", "cohort", "null"]


def test_a_wrong_key_is_an_error(documents, question):
    with ChatServer(lambda _: Reply(status=401, headers=LAST)) as server:
        compressor = DeepEraCompressor.from_llm("openai:scripted", base_url=server.base_url)
        with pytest.raises(BackendError, match=r"refused the API key \(HTTP 401\)"):
            compressor.compress_documents(documents, question)
