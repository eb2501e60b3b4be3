"""A server whose judge is a chat model on another server."""

import socket
from time import monotonic, sleep

import pytest

from deepera_graph.judges.llm.backend import llm_backend
from deepera_graph.serve.config import ServeConfig
from support.openai_server import ChatServer, Reply
from support.serving import running, write_request

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


def wait_for(claim, seconds=10):
    end = monotonic() + seconds
    while not claim() and monotonic() < end:
        sleep(0.01)
    return claim()


def test_a_chat_model_is_ready_without_being_asked_and_is_the_first_judge(client, chat):
    assert chat.calls == 0
    judges = client.get("/v1/judges").json()["judges"]
    assert [one["name"] for one in judges] == ["llm", "local", "rules"]
    assert judges[0]["about"]["model"] == "scripted"
    told = client.post("/v1/rerank", json={"query": "?", "documents": [], "model": "scripted"})
    assert told.json()["model"] == "llm"
    assert "warnings" not in told.json()["meta"]


def test_calls_for_a_client_that_hung_up_are_abandoned(client, chat):
    url = client.base_url
    body = b'{"question": "wait?", "passages": ["One text."]}'
    with socket.create_connection((url.host, url.port)) as sent:
        sent.sendall(write_request(body, len(body)))
        assert wait_for(lambda: chat.in_flight == 1)
    assert wait_for(lambda: chat.in_flight == 0)


def test_other_judges_are_there_beside_it(client):
    told = client.post("/v1/evidence", json={**ASKED, "judge": "rules"}).json()
    assert told["judge"] == "rules"
    assert all(one["score"] is not None for one in told["ranking"])
