"""The graph as a subgraph of a parent that keeps its state."""

import asyncio
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph

from deepera_graph import EvidenceReranker, build_graph
from langchain_deepera.testing import RunRecorder
from support.scripted import TEA_SCORES, Script

pytestmark = pytest.mark.full

KELP = "Did kelp forests recover after otters returned?"
TEA_EVIDENCE = ["trial", "meal", "cohort", "null"]


class Talk(TypedDict, total=False):
    """What parent and subgraph share, and one key of the parent's own."""

    question: str
    passages: list[Document]
    documents: list[Document]
    outcome: str
    ranking: list[Any]
    turn: int


def strict_saver():
    return InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))


def parent_of(node, saver):
    graph = StateGraph(Talk)
    graph.add_node("count", lambda state: {"turn": state.get("turn", 0) + 1})
    graph.add_node("evidence", node)
    graph.add_edge(START, "count")
    graph.add_edge("count", "evidence")
    graph.add_edge("evidence", END)
    return graph.compile(checkpointer=saver)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def run(request):
    def call(graph, given, config=None):
        if request.param:
            return asyncio.run(graph.ainvoke(given, config))
        return graph.invoke(given, config)

    return call


@pytest.fixture
def scores():
    return {**TEA_SCORES, "Kelp forests recovered": 0.2}


def ids(state):
    return [document.id for document in state["documents"]]


def test_it_runs_under_a_checkpointed_parent(run, script, documents, question):
    parent = parent_of(build_graph(script.backend()), strict_saver())
    config = {"configurable": {"thread_id": "1"}}
    state = run(parent, {"question": question, "passages": documents}, config)
    assert ids(state) == TEA_EVIDENCE
    assert (state["outcome"], state["turn"]) == ("ok", 1)
    kept = parent.get_state(config).values
    assert kept["documents"] == state["documents"]
    assert kept["ranking"] == state["ranking"]


def test_two_turns_on_one_thread_do_not_mix(run, scores, documents, question):
    parent = parent_of(build_graph(Script(scores).backend()), strict_saver())
    config = {"configurable": {"thread_id": "1"}}
    run(parent, {"question": question, "passages": documents}, config)
    state = run(parent, {"question": KELP, "passages": documents[2:3]}, config)
    assert ids(state) == []
    assert (state["outcome"], state["turn"]) == ("no_evidence", 2)
    assert [one["id"] for one in state["ranking"]] == ["kelp"]


def test_a_subgraph_with_a_memory_of_its_own_does_not_mix_turns(run, scores, documents, question):
    graph = build_graph(Script(scores).backend(), checkpointer=True)
    parent = parent_of(graph, strict_saver())
    config = {"configurable": {"thread_id": "1"}}
    run(parent, {"question": question, "passages": documents}, config)
    state = run(parent, {"question": KELP, "passages": documents[2:3]}, config)
    assert (ids(state), state["outcome"]) == ([], "no_evidence")
    state = run(parent, {"question": question, "passages": documents}, config)
    assert ids(state) == TEA_EVIDENCE
    assert len(state["ranking"]) == 6


def test_alone_and_checkpointed_it_does_not_mix_turns(run, scores, documents, question):
    graph = build_graph(Script(scores).backend(), checkpointer=strict_saver())
    config = {"configurable": {"thread_id": "1"}}
    run(graph, {"question": question, "passages": documents}, config)
    state = run(graph, {"question": KELP, "passages": documents[2:3]}, config)
    assert [one["id"] for one in state["ranking"]] == ["kelp"]
    assert state["usage"]["score"]["calls"] == 1


def test_nothing_to_judge_is_fine_in_a_parent(run, script, question):
    parent = parent_of(build_graph(script.backend()), strict_saver())
    state = run(
        parent, {"question": question, "passages": []}, {"configurable": {"thread_id": "1"}}
    )
    assert (state["documents"], state["outcome"]) == ([], "nothing_retrieved")


def test_a_resumed_run_does_not_judge_again(script, documents, question):
    def stop(state):
        if not state.get("documents"):
            raise AssertionError("the subgraph has not run")
        if state["turn"] == 1 and attempts.pop():
            raise ConnectionError("the next step fails once")
        return {}

    attempts = [False, True]
    graph = StateGraph(Talk)
    graph.add_node("count", lambda state: {"turn": state.get("turn", 0) + 1})
    graph.add_node("evidence", build_graph(script.backend()))
    graph.add_node("stop", stop)
    graph.add_edge(START, "count")
    graph.add_edge("count", "evidence")
    graph.add_edge("evidence", "stop")
    parent = graph.compile(checkpointer=strict_saver())
    config = {"configurable": {"thread_id": "1"}}
    with pytest.raises(ConnectionError):
        parent.invoke({"question": question, "passages": documents}, config)
    assert len(script.judged) == 6
    state = parent.invoke(None, config)
    assert ids(state) == TEA_EVIDENCE
    assert len(script.judged) == 6


def test_the_reranker_works_inside_a_node(run, script, documents, question):
    reranker = EvidenceReranker(script.backend())
    results = []

    def node(state):
        for _ in range(2):
            results.append(reranker.rerank(state["question"], state["passages"]))
        return {"documents": results[-1].to_documents()}

    parent = parent_of(node, strict_saver())
    config = {"configurable": {"thread_id": "1"}}
    for _ in range(2):
        state = run(parent, {"question": question, "passages": documents}, config)
        assert ids(state) == TEA_EVIDENCE
    assert [len(result.passages) for result in results] == [6] * 4
    assert set(results[0].seconds) == {"intent", "score", "select", "summarize", "total"}


def test_events_reach_the_stream_of_the_parent(script, documents, question):
    parent = parent_of(build_graph(script.backend()), strict_saver())
    stream = parent.stream(
        {"question": question, "passages": documents},
        {"configurable": {"thread_id": "1"}},
        stream_mode="custom",
        subgraphs=True,
    )
    events = [event["event"] for _, event in stream]
    assert events == ["intent", *["scored"] * 6, "selected", *["summarized"] * 4]


def test_the_subgraph_is_one_trace_with_its_parent(run, script, documents, question):
    parent = parent_of(build_graph(script.backend()), strict_saver())
    recorder = RunRecorder()
    config = {"configurable": {"thread_id": "1"}, "callbacks": [recorder]}
    run(parent, {"question": question, "passages": documents}, config)
    [score] = recorder.runs_named("score 1")
    assert recorder.path(score)[-4:] == ["score", "DeepEra", "evidence", "LangGraph"]
    assert sum(parent_run is None for parent_run in recorder.parents.values()) == 1
