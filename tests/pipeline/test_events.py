"""What the front door says while it runs."""

import asyncio
from collections import Counter

import pytest
from langgraph.config import get_stream_writer

from deepera_graph import EvidenceReranker
from deepera_graph.testing import judged, scripted_backend

QUESTION = "Which text?"
SCORES = {"Good one.": 0.9, "Better one.": 0.95, "Bad one.": 0.1, "Broken.": RuntimeError("no")}


def events(reranker, passages, is_async):
    if not is_async:
        return list(reranker.stream(QUESTION, passages))

    async def collected():
        return [event async for event in reranker.astream(QUESTION, passages)]

    return asyncio.run(collected())


@pytest.fixture(params=[False, True], ids=["stream", "astream"])
def is_async(request):
    return request.param


def test_every_stage_says_what_it_did(is_async):
    reranker = EvidenceReranker(scripted_backend(SCORES), answer=True, max_failed_share=1)
    found = events(reranker, list(SCORES), is_async)
    names = [event["event"] for event in found]
    assert names == [
        "intent", *["scored"] * 4, "selected", *["summarized"] * 2, "answered", "result",
    ]  # fmt: skip
    intent, *rest = found
    assert intent == {
        "event": "intent", "status": "recognised", "intent": found[-1]["result"].intent["fields"],
    }  # fmt: skip
    scored = {event["id"]: event for event in rest[:4]}
    assert scored["1"] == {
        "event": "scored", "id": "1", "score": 0.9, "status": "scored", "reason": "scored 0.9",
        "direction": None,
    }  # fmt: skip
    assert (scored["4"]["score"], scored["4"]["status"]) == (None, "failed")
    assert rest[4] == {
        "event": "selected",
        "threshold": 0.8,
        "kept": ["2", "1"],
        "possible": [],
        "outcome": "ok",
        "warnings": [],
    }
    assert {event["id"]: event["summary"] for event in rest[5:7]} == {
        "1": "Good one.", "2": "Better one.",
    }  # fmt: skip
    assert rest[7]["citations"] == ["2", "1"]
    assert rest[7]["status"] == "answered"


@pytest.mark.parametrize(
    ("passages", "settings", "names"),
    [
        ([], {}, ["selected", "result"]),
        ([], {"answer": True}, ["selected", "answered", "result"]),
        (["Bad one."], {}, ["intent", "scored", "selected", "result"]),
        (
            ["Bad one."],
            {"answer": True},
            ["intent", "scored", "selected", "answered", "result"],
        ),
        (["Good one."], {"content": "passage"}, ["intent", "scored", "selected", "result"]),
    ],
)
def test_stages_that_have_nothing_to_do_say_nothing(is_async, passages, settings, names):
    reranker = EvidenceReranker(scripted_backend(SCORES), **settings)
    assert [event["event"] for event in events(reranker, passages, is_async)] == names


def test_every_window_is_an_event_of_its_own(is_async):
    backend = scripted_backend(lambda task: judged(0.1))
    reranker = EvidenceReranker(backend, max_passage_chars=200)
    found = events(reranker, ["word " * 100, "short"], is_async)
    counts = Counter(event["id"] for event in found if event["event"] == "scored")
    assert counts == {"1": 3, "2": 1}


def test_events_of_a_role_of_your_own_do_no_harm():
    def chatty(task):
        for said in ({"progress": 1}, {"event": "mine"}, "half done", None):
            get_stream_writer()(said)
        return judged(0.9)

    reranker = EvidenceReranker(scripted_backend(chatty))
    found = list(reranker.stream(QUESTION, ["Good one."]))
    assert [event["event"] for event in found] == [
        "intent", "scored", "selected", "summarized", "result",
    ]  # fmt: skip


def test_nothing_is_asked_before_the_first_event_is_wanted():
    backend = scripted_backend(SCORES)
    EvidenceReranker(backend).stream(QUESTION, list(SCORES))
    assert backend.intent.calls == 0
