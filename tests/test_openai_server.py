import asyncio
import socket
import time
from typing import Any

import httpx
import openai
import pytest
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from support.openai_server import ChatServer, Reply, Request

BODY = {"model": "m", "messages": [{"role": "user", "content": "one two three"}]}


class Verdict(BaseModel):
    score: float


def chat(server: ChatServer, **options: Any) -> ChatOpenAI:
    settings = {"base_url": server.base_url, "api_key": "any", "max_retries": 0, **options}
    return ChatOpenAI(model="scripted", **settings)


def post(server: ChatServer, **options: Any) -> httpx.Response:
    return httpx.post(f"{server.base_url}/chat/completions", json=BODY, **options)


async def post_many(server: ChatServer, n_requests: int) -> list[httpx.Response]:
    async with httpx.AsyncClient(base_url=server.base_url) as client:
        posts = (client.post("/chat/completions", json=BODY) for _ in range(n_requests))
        return await asyncio.gather(*posts)


def test_a_str_is_the_content_and_words_are_the_usage() -> None:
    with ChatServer(lambda request: f"said {request.user}") as server:
        message = chat(server).invoke([("system", "be brief"), ("user", "what is it")])

    assert message.content == "said what is it"
    assert message.usage_metadata is not None
    assert message.usage_metadata["input_tokens"] == 5
    assert message.usage_metadata["output_tokens"] == 4
    [request] = server.requests
    assert (request.number, request.model, request.system) == (0, "scripted", "be brief")
    assert request.headers["authorization"] == "Bearer any"
    assert (server.calls, server.answered, server.in_flight) == (1, 1, 0)


@pytest.mark.full
def test_a_dict_is_a_structured_answer() -> None:
    with ChatServer(lambda _: {"score": 0.25}) as server:
        model = chat(server).with_structured_output(Verdict, method="json_schema")
        assert model.invoke("score it") == Verdict(score=0.25)

    form = server.requests[0].response_format
    assert form is not None
    assert form["json_schema"]["name"] == "Verdict"


def test_a_tool_call_arrives_plain_and_streamed() -> None:
    function = {"name": "Verdict", "arguments": '{"score": 0.5}'}
    call = {"id": "call_7", "type": "function", "function": function}
    with ChatServer(lambda _: Reply(tool_calls=[call])) as server:
        message = chat(server).invoke("score it")
        chunks = list(chat(server).stream("score it"))
        model = chat(server).with_structured_output(Verdict, method="function_calling")
        assert model.invoke("score it") == Verdict(score=0.5)

    [received] = message.tool_calls
    assert (received["id"], received["args"]) == ("call_7", {"score": 0.5})
    assert [received] in [getattr(chunk, "tool_calls", None) for chunk in chunks]
    assert message.response_metadata["finish_reason"] == "tool_calls"


def test_a_stream_gives_the_pieces_and_the_usage() -> None:
    with ChatServer(lambda _: Reply(content="a b\nc ", usage=(10, 3))) as server:
        chunks = list(chat(server, stream_usage=True).stream("say it"))

    texts = [chunk.content for chunk in chunks if chunk.content]
    assert texts == ["a", " b", "\nc", " "]
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    assert total.usage_metadata is not None
    assert total.usage_metadata["total_tokens"] == 13
    assert total.response_metadata["finish_reason"] == "stop"


def test_an_error_keeps_its_headers_and_its_form() -> None:
    reply = Reply(status=429, content="slow down", headers={"Retry-After": "7"})
    with ChatServer(lambda _: reply) as server:
        response = post(server)
        with pytest.raises(openai.RateLimitError) as raised:
            chat(server).invoke("anything")

    error = {"message": "slow down", "type": "invalid_request_error", "code": "rate_limit_exceeded"}
    assert response.json() == {"error": error}
    assert (response.status_code, response.headers["retry-after"]) == (429, "7")
    assert raised.value.response.headers["retry-after"] == "7"
    assert raised.value.code == "rate_limit_exceeded"


def test_a_reset_drops_the_connection_unanswered() -> None:
    with ChatServer(lambda _: Reply(fault="reset")) as server:
        with pytest.raises(httpx.ReadError, match="reset by peer"):
            post(server)
        with pytest.raises(openai.APIConnectionError):
            chat(server).invoke("anything")

    assert (server.calls, server.answered, server.in_flight) == (2, 0, 0)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_half_a_body_is_cut_off(stream: bool) -> None:
    with ChatServer(lambda _: Reply(content="long " * 100, fault="half")) as server:
        body = {**BODY, "stream": stream}
        with pytest.raises(httpx.RemoteProtocolError, match=r"incomplete|without sending complete"):
            httpx.post(f"{server.base_url}/chat/completions", json=body)


def test_a_raw_body_is_sent_as_it_is() -> None:
    reply = Reply(raw=b"<html>", headers={"content-type": "text/html"})
    with ChatServer(lambda _: reply) as server:
        response = post(server)

    assert (response.content, response.headers["content-type"]) == (b"<html>", "text/html")


@pytest.mark.full
def test_thirty_requests_are_served_at_once() -> None:
    with ChatServer(lambda _: "ok", latency=0.1) as server:
        responses = asyncio.run(post_many(server, 30))
        arrived = [request.arrived for request in server.requests]
        assert time.monotonic() - min(arrived) < 1  # one after the other: 3 s
        assert (server.calls, server.max_in_flight, server.answered) == (30, 30, 30)
        server.reset_counts()
        assert (server.calls, server.max_in_flight, server.answered) == (0, 0, 0)

    assert {response.status_code for response in responses} == {200}


def test_a_client_that_leaves_is_no_longer_in_flight() -> None:
    with ChatServer(lambda _: Reply(fault="hang")) as server:
        with pytest.raises(httpx.ReadTimeout):
            post(server, timeout=0.05)
        deadline = time.monotonic() + 1
        while server.in_flight and time.monotonic() < deadline:
            time.sleep(0.01)
        assert (server.in_flight, server.max_in_flight, server.answered) == (0, 1, 0)


def test_leaving_is_quick_while_connections_hang() -> None:
    with ChatServer(lambda _: Reply(fault="hang")) as server:
        address = ("127.0.0.1", httpx.URL(server.base_url).port or 0)
        clients = [socket.create_connection(address) for _ in range(20)]
        for client in clients:
            client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        while server.in_flight < 20:
            time.sleep(0.001)
        left = time.monotonic()

    assert time.monotonic() - left < 0.5
    for client in clients:
        client.close()


def test_a_script_that_raises_cannot_pass_silently() -> None:
    def broken(request: Request) -> Reply:
        raise KeyError(request.user)

    with (
        pytest.raises(AssertionError, match=r"KeyError\('one two three'\)"),
        ChatServer(broken) as server,
    ):
        response = post(server)

    assert response.status_code == 500
    assert response.json()["error"]["message"] == "KeyError('one two three')"


def test_models_are_listed_and_other_routes_are_not_found() -> None:
    with ChatServer(lambda _: "ok") as server, httpx.Client(base_url=server.base_url) as client:
        assert [model["id"] for model in client.get("/models").json()["data"]] == ["scripted"]
        assert client.get("/nowhere").status_code == 404
        assert client.post("/chat/completions", content=b"{").status_code == 400
    assert server.calls == 0
