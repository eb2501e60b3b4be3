"""The state machine by itself: ways to run it, and where it goes next."""

import asyncio
import json
import re
from pkgutil import iter_modules
from typing import Any, TypedDict, get_type_hints

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph

from deepera_graph import InputError, Settings, SettingsError, build_graph, pipeline
from deepera_graph.judges.base import PassageJudge
from deepera_graph.pipeline.intent import UNKNOWN, receive
from deepera_graph.pipeline.score import Planner
from deepera_graph.pipeline.state import State
from deepera_graph.pipeline.summarize import any_kept
from deepera_graph.testing import ScriptedRole, judged, scripted_backend

QUESTION = "Which text?"
OUTPUT_KEYS = {
    "question", "intent", "ranking", "documents", "threshold", "outcome", "fallback", "answer",
    "usage", "left_out", "warnings", "evidence_point", "missing_words",
}  # fmt: skip


def documents(n=6):
    return [Document(id=f"d{k}", page_content=f"Text {k}.") for k in range(n)]


def by_number(task):
    return judged(int(task["text"].removeprefix("Text ").rstrip(".")) / 5)


def asked(passages=None):
    return {"question": QUESTION, "passages": documents() if passages is None else passages}


def runs(graph, given):
    """The final state of every way to run a graph."""

    async def streamed():
        return [chunk async for chunk in graph.astream(given, stream_mode="values")][-1]

    return {
        "invoke": graph.invoke(given),
        "ainvoke": asyncio.run(graph.ainvoke(given)),
        "stream": list(graph.stream(given, stream_mode="values"))[-1],
        "astream": asyncio.run(streamed()),
    }


@pytest.mark.full
@pytest.mark.parametrize("passages", [documents(), documents(1), [], ["Text 5.", "Text 0."]])
@pytest.mark.parametrize("settings", [{}, {"answer": True}, {"content": "passage", "top_n": 1}])
def test_every_way_to_run_it_gives_the_same_state(passages, settings):
    graph = build_graph(scripted_backend(by_number), Settings(**settings))
    states = runs(graph, asked(passages))
    assert states["invoke"].keys() == OUTPUT_KEYS
    for state in states.values():  # streams show the inner keys too
        assert {key: state[key] for key in OUTPUT_KEYS} == states["invoke"]


def test_updates_name_the_nodes_in_order():
    graph = build_graph(scripted_backend(by_number), Settings(answer=True))
    nodes = [next(iter(update)) for update in graph.stream(asked(), stream_mode="updates")]
    assert nodes == [
        "receive", "intent", *["score"] * 6, "plan", "select", *["summarize"] * 2,
        "collect", "answer",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("passages", "settings", "path"),
    [
        ([], {}, ["receive", "select"]),
        ([], {"answer": True}, ["receive", "select", "abstain"]),
        (["Text 0."], {}, ["receive", "intent", "score", "plan", "select"]),
        (
            ["Text 0."],
            {"answer": True},
            ["receive", "intent", "score", "plan", "select", "abstain"],
        ),
        (
            ["Text 5."],
            {"content": "passage"},
            ["receive", "intent", "score", "plan", "select", "collect"],
        ),
    ],
)
def test_the_shortest_way_is_taken(passages, settings, path):
    graph = build_graph(scripted_backend(by_number), Settings(**settings))
    updates = graph.stream(asked(passages), stream_mode="updates")
    assert [next(iter(update)) for update in updates] == path


@pytest.mark.parametrize("passages", [("Text 5.",), [{"text": "Text 5."}], documents()[5:]])
def test_passages_may_be_a_tuple_strings_dicts_or_documents(passages):
    state = build_graph(scripted_backend(by_number)).invoke(asked(passages))
    assert [one.page_content for one in state["documents"]] == ["Text 5."]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"question": " ", "passages": []}, "question must not be empty, got ' '"),
        ({"passages": ["a"]}, "question must be a text, got None"),
        ({"question": "q"}, "passages must be a list, got None"),
        ({"question": "q", "passages": "one text"}, "passages must be a list, got 'one text'"),
        ({"question": "q", "passages": [""]}, "passage 1 has no text"),
        (
            {"qestion": "q", "passages": ["a"]},
            "no 'question', but an unknown key 'qestion'; did you mean 'question'?",
        ),
        ({"query": "q", "passages": ["a"]}, "unknown key 'query'; did you mean 'question'?"),
        ({"question": "q", "pasages": ["a"]}, "unknown key 'pasages'; did you mean 'passages'?"),
        ({"question": "q", "documents": ["a"]}, "key 'documents'; did you mean 'passages'?"),
    ],
)
def test_what_it_cannot_use_is_named(given, named):
    graph = build_graph(scripted_backend(by_number))
    with pytest.raises(InputError, match=re.escape(named)):
        graph.invoke(given)
    with pytest.raises(InputError, match=re.escape(named)):
        asyncio.run(graph.ainvoke(given))


def test_keys_of_a_graph_around_this_one_are_no_concern_of_it():
    given = {**asked(), "query": "other", "documents": [], "notes": 3}
    assert build_graph(scripted_backend(by_number)).invoke(given)["outcome"] == "ok"


def test_backend_and_settings_may_be_given_by_name():
    state = build_graph("rules", {"threshold": 0.0, "top_n": 1}).invoke(asked())
    assert len(state["documents"]) == 1
    with pytest.raises(SettingsError, match=r"'treshold'; did you mean 'threshold'\?"):
        build_graph("rules", {"treshold": 0.5})


def test_settings_may_be_given_one_by_one():
    settings = {"threshold": 0.0, "top_n": 3}
    state = build_graph("rules", settings, top_n=1).invoke(asked())
    assert (state["threshold"], len(state["documents"])) == (0.0, 1)
    with pytest.raises(SettingsError, match=r"'treshold'; did you mean 'threshold'\?"):
        build_graph("rules", treshold=0.5)
    with pytest.raises(SettingsError, match=r"'checkpoint'; did you mean 'checkpointer'\?"):
        build_graph("rules", checkpoint=None)


class Written(BaseCallbackHandler):
    """What each node gave back; LangGraph drops a key that the state does not have, unsaid."""

    def __init__(self):
        self.nodes, self.keys = {}, {}

    def on_chain_start(self, serialized, inputs, *, run_id, metadata=None, **rest):
        if rest.get("name") == (metadata or {}).get("langgraph_node"):
            self.nodes[run_id] = rest["name"]

    def on_chain_end(self, outputs, *, run_id, **rest):
        if run_id in self.nodes and isinstance(outputs, dict):
            self.keys.setdefault(self.nodes[run_id], set()).update(outputs)


@pytest.mark.parametrize("passages", [documents(), documents(1)])
def test_a_node_writes_only_what_the_state_has(passages):
    written, graph = Written(), build_graph(scripted_backend(by_number), Settings(answer=True))
    graph.invoke(asked(passages), {"callbacks": [written]})
    last = {"answer", "summarize", "collect"} if len(passages) > 1 else {"abstain"}
    assert last <= written.keys.keys()
    assert set().union(*written.keys.values()) <= get_type_hints(State).keys()


def test_every_stage_has_a_node():
    no_stage = {"edges", "graph", "shown", "state", "subgraph"}
    stages = {one.name for one in iter_modules(pipeline.__path__)} - no_stage
    assert stages <= build_graph(scripted_backend(by_number), Settings(answer=True)).nodes.keys()


def test_what_went_in_stays_as_it_was():
    given = asked()
    build_graph(scripted_backend(by_number)).invoke(given)
    assert given == asked()


class Talk(TypedDict, total=False):
    """State of a parent that shares three keys with the subgraph."""

    question: str
    passages: list[Document]
    documents: list[Document]
    usage: dict[str, Any]
    n_calls: int


@pytest.mark.full
@pytest.mark.parametrize("is_async", [False, True])
def test_as_a_subgraph_two_turns_on_one_thread_do_not_mix(is_async):
    backend = scripted_backend(by_number)
    parent = StateGraph(Talk)
    parent.add_node("evidence", build_graph(backend))
    parent.add_edge(START, "evidence")
    parent.add_edge("evidence", END)
    saver = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))
    graph = parent.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "one"}}

    def run(given):
        if is_async:
            return asyncio.run(graph.ainvoke(given, config))
        return graph.invoke(given, config)

    first = run(asked())
    second = run(asked(documents()[:5]))
    assert [one.id for one in first["documents"]] == ["d5", "d4"]
    assert [one.id for one in second["documents"]] == ["d4"]
    assert backend.judge.calls == 11


STATE = {
    "question": QUESTION,
    "passages": documents(2),
    "intent": {"fields": UNKNOWN, "status": "fallback", "cause": ""},
    "ranking": [],
}


def record(index, **changes):
    return {"index": index, "id": f"d{index}", "kept": True, "window": None, "quote": "", **changes}


def planned(passages, settings):
    """Where the first plan leads."""
    state = {**STATE, "judgements": []}
    state |= receive({"question": QUESTION, "passages": passages}, {}, settings=settings)
    state["judgements"], state["candidates"] = [], []
    planner = Planner(
        judge=PassageJudge(ScriptedRole(judged)), settings=settings,
        evidence="any", has_cache=False,
    )  # fmt: skip
    assert planner.start(state, {}) == planner.plan(state, {}).goto
    return planner.start(state, {})


def test_nothing_to_judge_skips_the_intent():
    backend = scripted_backend(by_number)
    build_graph(backend).invoke({"question": QUESTION, "passages": []})
    assert backend.intent.calls == 0


def test_a_fan_out_of_nothing_goes_on():
    assert planned([Document(page_content=" \n")], Settings()) == "select"


def test_one_task_a_window_in_order():
    passages = [
        Document(id="a", page_content=" ".join(f"w{n:03}" for n in range(100))),
        *documents(1),
    ]
    sends = planned(passages, Settings(max_passage_chars=200))
    assert [send.node for send in sends] == ["score"] * 4
    windows = [one for send in sends for [one] in send.arg["members"]]
    assert [(one["index"], one["id"]) for one in windows] == [
        (0, "a"), (0, "a"), (0, "a"), (1, "d0"),
    ]  # fmt: skip
    for send, one in zip(sends, windows, strict=True):
        text = passages[one["index"]].page_content
        assert send.arg["batch"]["windows"][0]["text"] == text[one["start"] : one["end"]]


@pytest.mark.parametrize(
    ("ranking", "settings", "goal"),
    [
        ([], {}, END),
        ([], {"answer": True}, "abstain"),
        ([record(0, kept=False)], {"answer": True}, "abstain"),
        ([record(0)], {"content": "passage"}, "collect"),
    ],
)
def test_the_filter_edge_knows_where_to_go(ranking, settings, goal):
    assert any_kept({**STATE, "ranking": ranking}, settings=Settings(**settings)) == goal


def test_the_filter_edge_sends_every_kept_passage_to_the_summarizer():
    ranking = [record(1, quote="said", quote_span=None), record(0, kept=False)]
    [send] = any_kept({**STATE, "ranking": ranking}, settings=Settings())
    assert (send.node, send.arg["id"], send.arg["quote"]) == ("summarize", "d1", "said")
    assert send.arg["task"]["text"] == "Text 1."


@pytest.mark.parametrize(("kept", "goal"), [(True, "answer"), (False, "abstain")])
def test_the_last_step_answers_if_there_is_evidence(kept, goal):
    state = {**STATE, "ranking": [record(0, kept=kept)]}
    graph = build_graph(scripted_backend(by_number), answer=True).builder
    [last] = graph.branches["collect"].values()
    assert last.path.invoke(state) == goal
    assert ("collect", END) in build_graph(scripted_backend(by_number)).builder.edges


@pytest.mark.parametrize("settings", [{}, {"answer": True}])
def test_what_goes_in_and_comes_out_has_a_json_schema(settings):
    graph = build_graph(scripted_backend(by_number), Settings(**settings))
    given, found = graph.get_input_jsonschema(), graph.get_output_jsonschema()
    assert given["required"] == ["question", "passages"]
    assert all(one["description"] for one in given["properties"].values())
    assert "LangChain" not in json.dumps(given)
    assert found["properties"].keys() == OUTPUT_KEYS
