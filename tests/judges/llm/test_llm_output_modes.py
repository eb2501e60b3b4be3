"""Going down the ways of asking, on a server: what is learned, what it costs, what is blamed."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from deepera_graph import EvidenceReranker, llm_backend
from deepera_graph.chat.client import OutputModes
from deepera_graph.chat.models import OPENAI_MODES
from deepera_graph.testing import answer_in_json
from support.openai_server import ChatServer, Reply, Request

pytestmark = pytest.mark.full

QUESTION = "Does tea lower fasting glucose?"
TEXTS = ["Tea lowered it.", "Milk did not.", "Broken tea."]
QUICK = {"attempts": 2, "first_wait": 0, "timeout": 5}
METHODS = ["json_schema", "tools", "json_object", "text"]


def method_of(request: Request) -> str:
    if request.body.get("tools"):
        return "tools"
    return str((request.response_format or {"type": "text"})["type"])


def ordinary(request: Request) -> Reply:
    if request.system.startswith("You answer"):
        plain = '{"text": "It does [1].", "citations": [1]}'
    else:
        plain = json.dumps(answer_in_json({"Tea": 0.9}, request.system, request.user))
    if method_of(request) != "tools":
        return Reply(content=plain)
    name = request.body["tools"][0]["function"]["name"]
    function = {"name": name, "arguments": plain}
    return Reply(tool_calls=[{"id": "c", "type": "function", "function": function}])


def llama_cpp(request: Request) -> Reply:
    """Falls over json_schema, gives `{}` to json mode, and knows no tools, as one server does."""
    if method_of(request) == "json_schema":
        return Reply(status=500, content="Internal Server Error")
    if method_of(request) == "tools":
        return Reply(content="")
    return Reply(content="{}") if method_of(request) == "json_object" else ordinary(request)


def rerank(respond: Callable[[Request], Any], **settings: Any) -> tuple[Any, list[Request]]:
    with ChatServer(respond) as server:
        backend = llm_backend("openai:m", base_url=server.base_url, retry=QUICK)
        result = EvidenceReranker(backend, **settings).rerank(QUESTION, TEXTS)
        return result, server.requests


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_server_like_that_of_llama_cpp_is_asked_in_words(is_async: bool) -> None:
    with ChatServer(llama_cpp) as server:
        backend = llm_backend("openai:m", base_url=server.base_url, retry=QUICK)
        one, two = EvidenceReranker(backend), EvidenceReranker(backend, threshold=0.5, answer=True)
        for reranker in (one, two):
            result = (
                asyncio.run(reranker.arerank(QUESTION, TEXTS))
                if is_async
                else reranker.rerank(QUESTION, TEXTS)
            )
            assert [kept.id for kept in result.kept] == ["1"]
            assert not result.failed
        asked = Counter(map(method_of, server.requests))
    assert asked == {"json_schema": 2, "tools": 1, "json_object": 1, "text": 5 + 6}


@pytest.mark.parametrize("kind", [400, 404, 422, 501, 500, "{}", ""])
def test_what_is_learned_in_one_role_holds_in_all(kind: int | str) -> None:
    def answer(request: Request) -> Reply:
        if method_of(request) in {"json_schema", "tools"}:
            return Reply(content=kind) if isinstance(kind, str) else Reply(status=kind)
        return ordinary(request)

    result, requests = rerank(answer, answer=True)
    ways = ["json_schema", "json_schema", "tools"] if kind == 500 else ["json_schema", "tools"]
    asked = [method_of(request) for request in requests]
    assert asked[: len(ways)] == ways
    assert set(asked[len(ways) :]) == {"text" if kind == 500 else "json_object"}
    assert result.total_usage.sent_calls == len(requests)
    failed = 0 if isinstance(kind, str) else len(ways)
    assert result.total_usage.failed_calls == failed


def test_tokens_of_ways_given_up_are_counted_even_when_the_next_fails() -> None:
    def answer(request: Request) -> Reply:
        if method_of(request) == "json_schema":
            return Reply(content="{}", usage=(100, 10))
        return Reply(content="No idea.", usage=(7, 1))

    result, requests = rerank(answer)
    assert all(one.score is None and "asked twice" in one.reason for one in result.passages)
    usage = result.total_usage
    assert usage.calls == len(requests)
    n_schema = sum(method_of(request) == "json_schema" for request in requests)
    assert n_schema >= 1
    assert usage.tokens == 110 * n_schema + 8 * (len(requests) - n_schema)
    assert usage.reasked_calls == 4


def test_the_failure_that_ended_it_is_told_not_the_way_that_was_unknown() -> None:
    def answer(request: Request) -> Reply:
        if method_of(request) != "text":
            return Reply(status=400, content="response_format unknown")
        return Reply(status=503, content="no model loaded")

    result, _ = rerank(answer)
    assert "no model loaded" in result.passages[0].reason
    assert "response_format" not in result.passages[0].reason


def test_where_every_way_is_refused_the_first_refusal_is_told() -> None:
    def answer(request: Request) -> Reply:
        return Reply(status=400, content=f"no: {method_of(request)}")

    result, _ = rerank(answer)
    assert all("no: json_schema" in one.reason for one in result.passages)
    assert result.usage["score"].failed_calls == 12


def test_one_hiccup_is_not_a_repeated_500() -> None:
    def answer(request: Request) -> Reply:
        return Reply(status=500) if request.number == 0 else ordinary(request)

    _, requests = rerank(answer)
    assert {method_of(request) for request in requests} == {"json_schema"}


def test_a_server_that_answers_500_to_everything_costs_four_calls_a_reply() -> None:
    retry = {**QUICK, "attempts": 4}
    with ChatServer(lambda request: Reply(status=500)) as server:
        backend = llm_backend("openai:m", base_url=server.base_url, retry=retry)
        result = EvidenceReranker(backend, max_concurrency=1).rerank(QUESTION, TEXTS)
        asked = [method_of(request) for request in server.requests]
    assert asked == ["json_schema", "json_schema", "tools", "text"] * (1 + len(TEXTS))
    assert {one.status for one in result.passages} == {"failed"}


def test_a_way_that_works_for_others_is_not_given_up_for_one_that_stumbled() -> None:
    modes = OutputModes(OPENAI_MODES)
    modes.note_success("json_schema")
    modes.note_success("tools")  # of a call that began before, and met two failures
    assert modes.current == "json_schema"


def test_a_proven_way_outlives_an_empty_reply() -> None:
    def answer(request: Request) -> Reply:
        hit = "Broken" in request.messages[1]["content"] and len(request.messages) == 2
        return Reply(content="{}") if hit else ordinary(request)

    result, requests = rerank(answer)
    assert {method_of(request) for request in requests} == {"json_schema"}
    assert [one.status for one in sorted(result.passages, key=lambda p: p.id)] == [
        "scored", "scored", "repaired",
    ]  # fmt: skip


@pytest.mark.parametrize("status", [401, 403, 408, 409, 425, 429, 502, 503])
def test_other_refusals_say_nothing_of_the_way(status: int) -> None:
    result, requests = rerank(lambda request: Reply(status=status))
    assert {method_of(request) for request in requests} == {"json_schema"}
    assert all(one.score is None for one in result.passages)


def test_many_first_uses_at_once_all_find_the_way() -> None:
    def answer(request: Request) -> Reply:
        if "You read" in request.system:
            return Reply(status=429, headers={"retry-after": "999"})
        return ordinary(request) if method_of(request) == "text" else Reply(status=422)

    with ChatServer(answer, latency=0.02) as server:
        backend = llm_backend("openai:m", base_url=server.base_url, retry=QUICK)
        reranker = EvidenceReranker(backend, max_concurrency=12)
        texts = [f"Tea {n} lowered it." for n in range(12)]
        result = reranker.rerank(QUESTION, texts)
        assert not result.failed
        server.reset_counts()
        reranker.rerank(QUESTION, texts)
        assert {method_of(one) for one in server.requests if "You judge" in one.system} == {"text"}


@pytest.mark.parametrize("method", METHODS)
def test_the_schema_reaches_the_model_in_every_way(method: str) -> None:
    def answer(request: Request) -> Reply:
        return ordinary(request) if method_of(request) == method else Reply(status=400)

    _, requests = rerank(answer)
    asked = [request for request in requests if method_of(request) == method]
    assert asked
    for request in asked:
        whole = json.dumps(request.body).replace("\\", "")
        assert whole.count('"additionalProperties": false') == 1
        assert all(message["role"] in {"system", "user"} for message in request.messages)
