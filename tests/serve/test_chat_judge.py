"""A server whose judge is a chat model on another server."""

import asyncio
import json
import socket
from dataclasses import replace

import pytest
from langchain_core.runnables import RunnableLambda

from deepera_graph.judges.llm.backend import llm_backend
from deepera_graph.serve.config import ServeConfig
from deepera_graph.testing import judged
from support.openai_server import ChatServer, Reply
from support.scripted import TEA_SCORES, Script
from support.serving import running, wait_for, write_request

pytestmark = pytest.mark.full

ASKED = {"question": "wait?", "passages": ["One text.", "Another text."]}


@pytest.fixture
def chat():
    """A model that never answers."""
    with ChatServer(lambda _: Reply(fault="hang")) as server:
        yield server


@pytest.fixture
def client(chat):
    backend = llm_backend("openai:scripted", base_url=chat.base_url)
    with running(ServeConfig(backend=backend)) as running_client:
        yield running_client


def test_a_chat_model_is_ready_without_being_asked_and_is_the_first_judge(client, chat):
    assert chat.calls == 0
    judges = client.get("/v1/judges").json()["judges"]
    assert [one["name"] for one in judges] == ["llm", "local", "rules"]
    assert judges[0]["about"]["model"] == "scripted"
    told = client.post("/v1/rerank", json={"query": "?", "documents": [], "model": "scripted"})
    assert told.json()["model"] == "llm"
    assert "warnings" not in told.json()["meta"]


@pytest.mark.parametrize("more", ["", "Accept: text/event-stream\r\n"], ids=["at once", "stream"])
def test_calls_for_a_client_that_hung_up_are_abandoned(client, chat, more):
    url = client.base_url
    body = b'{"question": "wait?", "passages": ["One text."]}'
    with socket.create_connection((url.host, url.port)) as sent:
        sent.sendall(write_request(body, len(body), more))
        assert wait_for(lambda: chat.in_flight == 1)
    assert wait_for(lambda: chat.in_flight == 0)


def test_no_call_begins_for_a_client_that_hung_up_in_the_middle_of_a_stream():
    asked, ended = [], []

    async def judge(task):
        asked.append(task)
        try:
            if len(asked) > 1:
                await asyncio.Event().wait()
        finally:
            ended.append(task)
        return judged(0.5)

    slow = replace(
        Script(TEA_SCORES).backend(), judge=RunnableLambda(lambda task: None, afunc=judge)
    )
    config = ServeConfig(backend=slow, settings={"max_concurrency": 2})
    texts = [f"Text {n}." for n in range(30)]
    body = json.dumps({"question": "Tea?", "passages": texts}).encode()
    with running(config) as client:
        url = client.base_url
        with socket.create_connection((url.host, url.port)) as sent:
            sent.sendall(write_request(body, len(body), "Accept: text/event-stream\r\n"))
            said = b""
            while b"event: scored" not in said:
                said += sent.recv(65_536)
            assert wait_for(lambda: len(asked) == 3)
        assert wait_for(lambda: len(ended) == len(asked))
        assert client.get("/metrics").text.count("deepera_in_progress 0.0") == 1
        n_asked = len(asked)
        assert client.post("/v1/evidence", json={**ASKED, "judge": "rules"}).status_code == 200
        assert n_asked == len(asked) == 3


def test_other_judges_are_there_beside_it(client):
    told = client.post("/v1/evidence", json={**ASKED, "judge": "rules"}).json()
    assert told["judge"] == "rules"
    assert all(one["score"] is not None for one in told["ranking"])
