"""The node postprocessor: what LlamaIndex asks of one, alone and in a query engine."""

import asyncio
import json
import logging
import pickle
from copy import deepcopy

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core import Settings
from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

from deepera_graph import BackendError, EvidenceReranker, InputError, SettingsError, llm_backend
from llama_index_deepera import DeepEraRerank
from support.scripted import TEA_SCORES, Script
from support.tea import QUESTION, TEA


@pytest.fixture
def nodes():
    return [
        NodeWithScore(
            node=TextNode(
                id_=name,
                text=text,
                metadata={"key": name, "retrieval_rank": 77},
                excluded_llm_metadata_keys=["key"],
            ),
            score=0.5 + place / 100,
        )
        for place, (name, text) in enumerate(TEA)
    ]


def scripted(scores=TEA_SCORES, default=0.1, **settings):
    reranker = EvidenceReranker(Script(scores, default=default).backend(), **settings)
    return DeepEraRerank.from_reranker(reranker)


def test_it_keeps_the_evidence_best_first_and_changes_nothing_of_the_callers(nodes):
    before = deepcopy(nodes)
    reranker = scripted(top_n=3)
    kept = reranker.postprocess_nodes(nodes, query_str=QUESTION)
    assert [(one.node.node_id, one.score) for one in kept] == [
        ("trial", 0.93),
        ("meal", 0.88),
        ("cohort", 0.85),
    ]
    assert nodes == before
    best = kept[0].node
    assert (best.text, best.metadata["key"]) == (TEA[1][1], "trial")
    verdict = best.metadata["deepera"]
    assert (verdict["rank"], verdict["retrieval_rank"], verdict["retrieval_score"]) == (1, 2, 0.51)
    assert json.dumps(best.metadata)
    assert asyncio.run(reranker.apostprocess_nodes(nodes, query_str=QUESTION)) == kept
    assert reranker.postprocess_nodes(nodes, QueryBundle(QUESTION)) == kept


def test_no_model_is_shown_the_verdict(nodes):
    [best] = scripted(top_n=1).postprocess_nodes(nodes, query_str=QUESTION)
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert "deepera" not in best.node.get_content(metadata_mode=mode)
    assert best.node.excluded_llm_metadata_keys == ["key", "deepera"]


def test_it_is_written_down_and_built_again():
    reranker = DeepEraRerank("rules", threshold=0.3, top_n=4)
    assert isinstance(reranker, BaseNodePostprocessor)
    plain = reranker.to_dict()
    assert (plain["class_name"], DeepEraRerank.class_name()) == ("DeepEraRerank",) * 2
    assert "callback_manager" not in plain
    again = DeepEraRerank.from_dict(plain)
    assert again.to_dict() == plain == DeepEraRerank.from_json(reranker.to_json()).to_dict()
    assert again.reranker.to_dict() == reranker.reranker.to_dict()
    copied = pickle.loads(pickle.dumps(reranker))
    assert copied.to_dict() == plain
    assert DeepEraRerank.from_dict(plain, top_n=2).reranker.settings.top_n == 2
    assert DeepEraRerank.model_json_schema()["properties"]["class_name"]["default"] == (
        "DeepEraRerank"
    )


def test_a_pickle_has_the_same_judge_and_leaves_the_postprocessor_whole(monkeypatch, nodes):
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    backend = llm_backend("openai:gpt-5-mini", base_url="http://127.0.0.1:9/v1", mode="fused")
    reranker = DeepEraRerank(backend, top_n=2)
    thawed = pickle.loads(pickle.dumps(reranker))
    assert thawed.to_dict() == reranker.to_dict()
    assert thawed.reranker.backend.about["model"] == "gpt-5-mini"
    live = scripted()
    with pytest.raises(Exception, match="pickle"):
        pickle.dumps(live)
    assert live.postprocess_nodes(nodes, query_str=QUESTION)


def test_a_judge_of_live_objects_cannot_be_written_down():
    with pytest.raises(Exception, match="was made from live objects"):
        scripted().to_dict()


def test_callbacks_are_told_of_a_rerank(nodes):
    class Recorder(BaseCallbackHandler):
        def __init__(self):
            super().__init__([], [])
            self.events = []

        def on_event_start(self, event_type, payload=None, **_):
            self.events.append(("start", event_type, payload))
            return ""

        def on_event_end(self, event_type, payload=None, **_):
            self.events.append(("end", event_type, payload))

        def start_trace(self, trace_id=None):
            pass

        def end_trace(self, trace_id=None, trace_map=None):
            pass

    recorder = Recorder()
    reranker = DeepEraRerank(
        reranker=EvidenceReranker(Script(TEA_SCORES).backend(), top_n=2),
        callback_manager=CallbackManager([recorder]),
    )
    kept = reranker.postprocess_nodes(nodes, query_str=QUESTION)
    (start, kind, given), (end, _, done) = recorder.events
    assert (start, end, kind) == ("start", "end", CBEventType.RERANKING)
    assert (given[EventPayload.QUERY_STR], given[EventPayload.TOP_K]) == (QUESTION, 2)
    assert done[EventPayload.NODES] == kept


def test_instrumentation_is_told_of_a_rerank(nodes, monkeypatch):
    class Recorder(BaseEventHandler):
        seen: list = Field(default_factory=list)

        def handle(self, event, **_):
            self.seen.append(event)

    recorder = Recorder()
    monkeypatch.setattr(get_dispatcher(), "event_handlers", [recorder])
    kept = scripted(top_n=2).postprocess_nodes(nodes, query_str=QUESTION)
    told = {one.class_name(): one for one in recorder.seen}
    assert (told["ReRankStartEvent"].query, told["ReRankStartEvent"].top_n) == (QUESTION, 2)
    assert told["ReRankEndEvent"].nodes == kept


def test_a_node_that_failed_is_left_out_and_told(nodes, caplog):
    reranker = scripted({**TEA_SCORES, "Kelp": RuntimeError("out of tea")}, threshold=0)
    with caplog.at_level(logging.WARNING):
        kept = reranker.postprocess_nodes(nodes, query_str=QUESTION)
    assert len(kept) == 5
    assert (
        "1 of 6 passages could not be judged, e.g. 'kelp': RuntimeError: out of tea" in caplog.text
    )
    result = reranker.find(nodes, QUESTION)
    assert [(one.id, one.score) for one in result.failed] == [("kelp", None)]


def test_nothing_judged_is_an_error_and_no_evidence_is_none(nodes):
    with pytest.raises(BackendError, match="no passage could be judged"):
        scripted({"": RuntimeError("down")}).postprocess_nodes(nodes, query_str=QUESTION)
    assert scripted({}).postprocess_nodes(nodes, query_str=QUESTION) == []
    assert scripted().postprocess_nodes([], query_str=QUESTION) == []


def test_two_nodes_of_one_id_are_both_judged(nodes):
    kept = scripted(top_n=2).postprocess_nodes([nodes[1], nodes[1]], query_str=QUESTION)
    assert [one.node.node_id for one in kept] == ["trial", "trial"]


def test_bad_use_is_told(nodes):
    with pytest.raises(InputError, match="needs the query"):
        scripted().postprocess_nodes(nodes)
    with pytest.raises(ValueError, match="both query_str and query_bundle"):
        scripted().postprocess_nodes(nodes, QueryBundle("a"), query_str="a")
    with pytest.raises(SettingsError, match="treshold"):
        DeepEraRerank("rules", treshold=0.5)


def test_a_query_engine_cites_the_evidence(nodes, monkeypatch):
    class Shelf(BaseRetriever):
        def _retrieve(self, query_bundle):
            return nodes

    monkeypatch.setattr(Settings, "_llm", MockLLM())
    engine = RetrieverQueryEngine.from_args(
        Shelf(), response_mode="no_text", node_postprocessors=[scripted(top_n=2)]
    )
    found = engine.query(QUESTION).source_nodes
    assert [one.node.node_id for one in found] == ["trial", "meal"]
    found = asyncio.run(engine.aquery(QUESTION)).source_nodes
    assert [one.node.node_id for one in found] == ["trial", "meal"]
