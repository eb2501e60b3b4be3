"""The state machine as a node of any graph: names of keys, searches, and further tries."""

import asyncio
import json
from typing import Annotated, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from deepera_graph import InputError, SettingsError, evidence_subgraph
from deepera_graph.errors import AnswerError, StoreError
from deepera_graph.pipeline.subgraph import rewrite_by_rules
from deepera_graph.stores.words import WordIndex
from support.openai_server import ChatServer
from support.scripted import TEA_SCORES, Script
from support.tea import QUESTION, TEA

pytestmark = pytest.mark.full

DOCUMENTS = [Document(id=name, page_content=text) for name, text in TEA]
KEPT = ["trial", "meal", "cohort", "null"]


class Review(TypedDict, total=False):
    """A parent with names of its own, some of which mean other things here."""

    query: str
    question: str
    documents: list[Document]
    evidence: list[Document]
    how: str
    asked: list[str]
    answer: str


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def run(request):
    def call(graph, given, config=None):
        if request.param:
            return asyncio.run(graph.ainvoke(given, config))
        return graph.invoke(given, config)

    return call


def parent_of(node, kind=Review, saver=None):
    graph = StateGraph(kind)
    graph.add_node("evidence", node)
    graph.add_edge(START, "evidence")
    graph.add_edge("evidence", END)
    return graph.compile(checkpointer=saver)


def scripted(**how):
    return evidence_subgraph(Script({**TEA_SCORES, **how.pop("scores", {})}).backend(), **how)


def ids(documents):
    return [one.id for one in documents]


def test_a_parent_keeps_its_own_names_and_what_it_did_not_ask_for(run):
    keys = {"question": "query", "passages": "documents", "documents": "evidence", "outcome": "how"}
    given = {"query": QUESTION, "documents": DOCUMENTS, "question": "mine", "answer": "mine"}
    state = run(parent_of(scripted(keys=keys)), given)
    assert (ids(state["evidence"]), state["how"]) == (KEPT, "ok")
    assert {name: state[name] for name in given} == given


def test_candidates_and_evidence_may_share_a_key(run):
    node = scripted(keys={"question": "query", "passages": "documents"})
    state = run(parent_of(node), {"query": QUESTION, "documents": DOCUMENTS})
    assert ids(state["documents"]) == KEPT


def test_the_last_message_of_a_human_is_the_question(run):
    class Talk(TypedDict, total=False):
        messages: Annotated[list[AnyMessage], add_messages]
        documents: list[Document]

    searched = []

    def search(query):
        searched.append(query)
        return DOCUMENTS

    node = scripted(keys={"question": "messages"}, search=search)
    talk = [HumanMessage("Hello"), HumanMessage(QUESTION), AIMessage("One moment.")]
    state = run(parent_of(node, Talk), {"messages": talk})
    assert searched == [QUESTION]
    assert (ids(state["documents"]), len(state["messages"])) == (KEPT, 3)
    with pytest.raises(InputError, match="no question of a human"):
        run(parent_of(node, Talk), {"messages": [AIMessage("One moment.")]})


@pytest.mark.parametrize(
    "message", [("human", QUESTION), {"role": "user", "content": QUESTION}, HumanMessage(QUESTION)]
)
def test_messages_may_be_of_any_form_that_langchain_takes(run, message):
    node = scripted(keys={"question": "messages"}, search=lambda query: DOCUMENTS)
    assert ids(run(node, {"messages": [message]})["documents"]) == KEPT


def test_it_searches_again_in_other_words_and_judges_all_that_was_found(run):
    def search(query):
        return DOCUMENTS[:1] if query == QUESTION else DOCUMENTS[:3]

    keys = {"queries": "asked", "question": "query", "documents": "evidence", "outcome": "how"}
    node = scripted(keys=keys, search=search, rewrite=lambda task: f"{len(task['tried'])} tea")
    state = run(parent_of(node), {"query": QUESTION})
    assert state["asked"] == [QUESTION, "1 tea"]
    assert (ids(state["evidence"]), state["how"]) == (["trial"], "ok")


@pytest.mark.parametrize(
    ("retries", "enough", "tried"), [(0, 1, 1), (2, 1, 3), (5, 1, 4), (3, 9, 4)]
)
def test_it_stops_when_there_is_enough_or_after_so_many_tries(run, retries, enough, tried):
    def search(query):
        return DOCUMENTS[:2] if query == "try 3" else DOCUMENTS[:1]

    node = scripted(
        keys={"queries": "asked"},
        search=search,
        retries=retries,
        enough=enough,
        rewrite=lambda task: f"try {len(task['tried'])}",
    )
    assert len(run(parent_of(node), {"question": QUESTION, "passages": []})["asked"]) == tried


def test_what_was_found_before_is_not_judged_again_if_nothing_is_new(run):
    script = Script(TEA_SCORES)
    node = evidence_subgraph(
        script.backend(),
        search=lambda query: DOCUMENTS[:1],
        retries=3,
        rewrite=lambda task: f"try {len(task['tried'])}",
    )
    assert run(node, {"question": QUESTION})["outcome"] == "no_evidence"
    assert len(script.judged) == 1


def test_a_rewriter_that_gives_up_repeats_itself_or_fails_ends_the_search(run, caplog):
    def fail(task):
        raise AnswerError("no words")

    def break_down(task):
        raise ConnectionError("nobody there")

    for rewrite in (lambda task: "", lambda task: task["question"], fail, break_down):
        node = scripted(
            keys={"queries": "asked"}, search=lambda _: DOCUMENTS[:1], retries=3, rewrite=rewrite
        )
        state = run(parent_of(node), {"question": QUESTION})
        assert state["asked"] == [QUESTION]
    assert "the query could not be rewritten: no words" in caplog.text
    assert "rewritten: the rewriter failed: ConnectionError: nobody there" in caplog.text


@pytest.mark.parametrize("found", [None, ["a text"], "a text"])
def test_a_search_that_returns_no_documents_is_told(run, found):
    node = evidence_subgraph("rules", search=lambda _: found)
    with pytest.raises(InputError, match="a search must return a list of LangChain Documents, got"):
        run(node, {"question": QUESTION})


def test_failed_passages_are_no_reason_to_search_on(run):
    node = scripted(
        scores={"are debated": RuntimeError("out of tea")},
        search=lambda _: DOCUMENTS[:1],
        retries=3,
        rewrite=lambda task: "again",
        keys={"queries": "asked"},
    )
    state = run(node, {"question": QUESTION})
    assert (state["outcome"], state["asked"]) == ("degraded", [QUESTION])


def test_rules_take_words_of_the_nearest_passages():
    texts = [
        "Carnauba films on pome fruit: hardness of apples kept with carnauba.",
        "A review of carnauba films in storage.",
    ]
    question = "Does wax coating keep apples firm?"
    first = rewrite_by_rules({"question": question, "tried": [question], "nearest": texts})
    assert first.split()[:4] == ["wax", "coating", "keep", "apples"]
    assert {"carnauba", "films"} <= set(first.split())
    task = {"question": question, "tried": [question, first], "nearest": texts}
    second = rewrite_by_rules(task)
    assert second not in ("", first)
    bare = rewrite_by_rules({"question": question, "tried": [question], "nearest": []})
    assert bare
    assert bare != question
    assert rewrite_by_rules({"question": question, "tried": [question, bare], "nearest": []}) == ""


def test_by_rules_a_second_search_by_words_finds_what_the_first_could_not(run):
    question = "Does wax coating keep apples firm?"
    near = "Wax coating of apples, often with carnauba films, is reviewed."
    far = "Carnauba films kept hardness high: it fell by 6%, without films by 31% (p < 0.001)."
    with WordIndex() as index:
        others = [
            Document(id=f"o{n}", page_content=f"Apples and firm ground {n}.") for n in range(3)
        ]
        index.add(
            [Document(id="near", page_content=near), Document(id="far", page_content=far), *others]
        )
        script = Script({"kept hardness": 0.9, "is reviewed": 0.4})
        node = evidence_subgraph(script.backend(), search=index, k=2, keys={"queries": "asked"})
        state = run(node, {"question": question})
    assert ids(state["documents"]) == ["far"]
    assert "carnauba" in state["asked"][1]


def test_a_chat_model_rewrites_by_prompt(run):
    def reply(request):
        assert QUESTION in request.user
        assert f"- {QUESTION}" in request.user
        assert "are debated" in request.user
        return {"thought": "no trial", "query": "green tea trial\nfasting glucose"}

    with ChatServer(reply) as server:
        from deepera_graph import llm_backend

        model = llm_backend("openai:scripted", base_url=server.base_url)
        node = scripted(
            search=lambda query: DOCUMENTS[: 1 if query == QUESTION else 2],
            rewrite=model,
            keys={"queries": "asked"},
        )
        state = run(node, {"question": QUESTION})
    assert state["asked"][1] == "green tea trial fasting glucose"
    assert ids(state["documents"]) == ["trial"]


def test_an_answer_is_drawn_if_asked_for_under_the_parents_name(run):
    wax = "Wax coating kept apples firm: firmness fell by 6%, without wax by 31% (p < 0.001)."
    node = evidence_subgraph(
        "local", answer=True, search=lambda _: [Document(id="w", page_content=wax)],
        keys={"question": "query", "answer": "reply", "ranking": "how"},
    )  # fmt: skip
    state = run(node, {"query": "Does wax coating keep apples firm?"})
    assert (state["reply"]["status"], state["reply"]["citations"]) == ("answered", ["w"])
    assert [one["id"] for one in state["how"]] == ["w"]


def test_a_thread_forgets_the_question_before(run):
    saver = InMemorySaver()
    node = scripted(
        search=lambda query: DOCUMENTS[2:3] if "Kelp" in query else DOCUMENTS, retries=0
    )
    parent = parent_of(node, saver=saver, kind=dict_of("question", "documents", "outcome"))
    config = {"configurable": {"thread_id": "1"}}
    assert ids(run(parent, {"question": QUESTION}, config)["documents"]) == KEPT
    state = run(parent, {"question": "Kelp?"}, config)
    assert (state["documents"], state["outcome"]) == ([], "no_evidence")


def dict_of(*names):
    return TypedDict("Parent", dict.fromkeys(names, object), total=False)


def test_its_steps_are_drawn_and_its_events_streamed():
    node = scripted(search=lambda _: DOCUMENTS, retries=1)
    assert {"search", "rewrite", "judge"} <= set(node.get_graph().nodes)
    stream = node.stream({"question": QUESTION}, stream_mode="custom", subgraphs=True)
    events = [event["event"] for _, event in stream]
    assert events[:2] == ["searched", "intent"]
    assert events.count("scored") == 6


def test_a_search_that_fails_is_an_error_and_not_an_empty_answer(run):
    def fail(query):
        raise ConnectionError("no route")

    with pytest.raises(StoreError, match="the search failed: ConnectionError: no route"):
        run(scripted(search=fail), {"question": QUESTION})


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"retries": 1}, "retries need a search"),
        ({"search": len, "retries": -1}, "retries must be"),
        ({"search": len, "k": 0}, "k must be"),
        ({"keys": {"evidence": "e"}}, "keys: unknown key 'evidence'"),
        ({"keys": {"documents": "a", "outcome": "a"}}, "keys: 'a' stands for two things"),
        ({"search": len, "rewrite": "rule"}, "rewrite must be 'rules', 'provider:model'"),
        ({"serach": len}, "serach"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(how, said):
    with pytest.raises(SettingsError, match=said):
        evidence_subgraph("rules", **how)


def test_missing_passages_are_told(run):
    with pytest.raises(InputError, match="no passages under 'docs'"):
        run(scripted(keys={"passages": "docs"}), {"question": QUESTION})
    assert json.dumps(run(scripted(), {"question": QUESTION, "passages": []})["outcome"])
