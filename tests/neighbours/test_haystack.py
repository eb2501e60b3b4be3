"""The ranker: what Haystack asks of a component, alone and in pipelines."""

import asyncio
import json
import logging
from copy import deepcopy

import pytest

pytest.importorskip("haystack")

from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.core.errors import PipelineConnectError
from haystack.document_stores.in_memory import InMemoryDocumentStore

from deepera_graph import BackendError, InputError, SettingsError
from haystack_deepera import DeepEraRanker
from support.scripted import TEA_SCORES, Script
from support.tea import QUESTION, TEA


@pytest.fixture
def documents():
    return [
        Document(id=name, content=text, meta={"key": name}, score=0.5 + place / 100)
        for place, (name, text) in enumerate(TEA)
    ]


def scripted(scores=TEA_SCORES, default=0.1, **how):
    return DeepEraRanker(Script(scores, default=default).backend(), **how)


def test_it_keeps_the_evidence_best_first_and_changes_nothing_of_the_callers(documents):
    before = deepcopy(documents)
    ranker = scripted(top_k=3)
    ranker.warm_up()
    found = ranker.run(query=QUESTION, documents=documents)
    assert [(one.id, one.score) for one in found["documents"]] == [
        ("trial", 0.93),
        ("meal", 0.88),
        ("cohort", 0.85),
    ]
    assert (found["failed"], found["outcome"]) == ([], "ok")
    assert documents == before
    best = found["documents"][0]
    assert (best.content, best.meta["key"]) == (TEA[1][1], "trial")
    verdict = best.meta["deepera"]
    assert (verdict["rank"], verdict["retrieval_rank"], verdict["retrieval_score"]) == (1, 2, 0.51)
    assert json.dumps(best.to_dict())
    assert asyncio.run(ranker.run_async(query=QUESTION, documents=documents)) == found
    short = ranker.run(query=QUESTION, documents=documents, top_k=1)["documents"]
    assert [one.id for one in short] == ["trial"]


def test_it_is_written_down_and_built_again():
    ranker = DeepEraRanker("rules", top_k=4, threshold=0.3, settings={"on_empty": "top1"})
    plain = ranker.to_dict()
    assert plain["type"] == "haystack_deepera.ranker.DeepEraRanker"
    assert json.loads(json.dumps(plain)) == plain
    again = DeepEraRanker.from_dict(plain)
    assert again.to_dict() == plain
    again.warm_up()
    settings = again._reranker.settings
    assert (settings.top_n, settings.threshold, settings.on_empty) == (4, 0.3, "top1")
    with pytest.raises(SettingsError, match="was made from live objects"):
        scripted().to_dict()


def test_a_pipeline_retrieves_judges_and_writes_a_prompt(documents):
    store = InMemoryDocumentStore()
    store.write_documents(documents)
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=6))
    pipeline.add_component("ranker", scripted(top_k=2))
    template = "{% for one in documents %}[{{ one.id }}]{% endfor %} {{ outcome }}"
    pipeline.add_component("prompt", PromptBuilder(template, required_variables="*"))
    pipeline.connect("retriever.documents", "ranker.documents")
    pipeline.connect("ranker.documents", "prompt.documents")
    pipeline.connect("ranker.outcome", "prompt.outcome")
    given = {"retriever": {"query": QUESTION}, "ranker": {"query": QUESTION}}
    assert pipeline.run(given)["prompt"]["prompt"] == "[trial][meal] ok"


async def test_a_pipeline_that_runs_async_gives_the_same(documents):
    pipeline = Pipeline()
    pipeline.add_component("ranker", scripted(top_k=2))
    found = await pipeline.run_async({"ranker": {"query": QUESTION, "documents": documents}})
    assert [one.id for one in found["ranker"]["documents"]] == ["trial", "meal"]


def test_a_pipeline_is_written_down_and_loaded():
    pipeline = Pipeline()
    pipeline.add_component("ranker", DeepEraRanker("rules", top_k=2))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["haystack_deepera.*"])
    assert again.get_component("ranker").top_k == 2
    assert again.to_dict() == pipeline.to_dict()


def test_a_pipeline_refuses_what_does_not_fit():
    @component
    class Numbers:
        @component.output_types(numbers=list[int])
        def run(self):
            return {"numbers": [1]}

    pipeline = Pipeline()
    pipeline.add_component("numbers", Numbers())
    pipeline.add_component("ranker", DeepEraRanker())
    with pytest.raises(PipelineConnectError):
        pipeline.connect("numbers.numbers", "ranker.documents")


def test_a_document_that_failed_comes_back_without_a_score(documents, caplog):
    documents.append(Document(id="empty", content=None, score=0.9))
    ranker = scripted({**TEA_SCORES, "Kelp": RuntimeError("out of tea")}, threshold=0)
    with caplog.at_level(logging.WARNING):
        found = ranker.run(query=QUESTION, documents=documents)
    assert len(found["documents"]) == 5
    told = {one.id: (one.score, one.meta["deepera"]["reason"]) for one in found["failed"]}
    assert told["kelp"] == (None, "RuntimeError: out of tea")
    assert told["empty"][0] is None
    assert "2 of 7 passages could not be judged" in caplog.text


def test_of_documents_with_one_id_the_best_counts(documents):
    twin = Document(id="trial", content=documents[1].content, score=0.99)
    found = scripted().run(query=QUESTION, documents=[*documents, twin])["documents"]
    assert [one.id for one in found].count("trial") == 1
    assert found[0].meta["deepera"]["retrieval_score"] == 0.99


def test_nothing_judged_is_an_error_and_no_evidence_is_none(documents):
    with pytest.raises(BackendError, match="no passage could be judged"):
        scripted({"": RuntimeError("down")}).run(query=QUESTION, documents=documents)
    nothing = scripted({}).run(query=QUESTION, documents=documents)
    assert (nothing["documents"], nothing["outcome"]) == ([], "no_evidence")
    empty = {"documents": [], "failed": [], "outcome": "nothing_retrieved"}
    assert scripted().run(query=QUESTION, documents=[]) == empty
    assert asyncio.run(scripted().run_async(query=QUESTION, documents=[])) == empty


def test_bad_use_is_told_at_once(documents):
    with pytest.raises(SettingsError, match="top_n must be a whole number >= 1, got 0"):
        DeepEraRanker(top_k=0)
    with pytest.raises(SettingsError, match="treshold"):
        DeepEraRanker(settings={"treshold": 0.5})
    with pytest.raises(SettingsError, match="give top_k and threshold to the ranker itself"):
        DeepEraRanker(settings={"top_n": 3})
    with pytest.raises(SettingsError, match="give top_k and threshold to the ranker itself"):
        DeepEraRanker(threshold=0.5, settings={"threshold": 0.3})
    with pytest.raises(InputError, match="must not be empty"):
        scripted().run(query=" ", documents=documents)


def test_a_preset_is_the_same_after_it_was_written_down():
    ranker = DeepEraRanker("rules", preset="careful", settings={"on_empty": "top1"})
    plain = ranker.to_dict()
    assert plain["init_parameters"]["settings"] == {"on_empty": "top1"}
    read = DeepEraRanker.from_dict(plain)
    for one in (ranker, read):
        one.warm_up()
    assert read._with(None).settings == ranker._with(None).settings
    assert read._with(None).settings.require_evidence
