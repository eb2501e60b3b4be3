"""A server that knows only some ways of structured answers is asked in one it knows, for good."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from deepera_graph.chat import sending
from deepera_graph.chat.client import ChatModel, OutputModes, request_reply
from deepera_graph.chat.models import find_model
from deepera_graph.chat.sending import RateLimits, RetryPolicy
from deepera_graph.errors import AnswerError, CallError
from deepera_graph.judges.llm.prompt import JudgementReply
from support.openai_server import ChatServer, Reply, Request

pytestmark = pytest.mark.full

GOOD = {"reason": "r", "evidence": [1], "score": 0.9}
MESSAGES = [SystemMessage("Judge."), HumanMessage("Passage.")]


def method_of(request: Request) -> str:
    if request.body.get("tools"):
        return "tools"
    return str((request.response_format or {"type": "text"})["type"])


def tool_call(arguments: str) -> Reply:
    function = {"name": "JudgementReply", "arguments": arguments}
    return Reply(tool_calls=[{"id": "c1", "type": "function", "function": function}])


def good(request: Request) -> Reply:
    if method_of(request) == "tools":
        return tool_call(json.dumps(GOOD))
    return Reply(content=json.dumps(GOOD))


def knows(*methods: str, refusal: Reply) -> Callable[[Request], Reply]:
    return lambda request: good(request) if method_of(request) in methods else refusal


def chat(server: ChatServer) -> ChatModel:
    model = find_model("openai:m", base_url=server.base_url, api_key="k")
    return ChatModel(model, RetryPolicy(attempts=2, first_wait=0), RateLimits())


async def ask(
    model: ChatModel, messages: list[BaseMessage] = MESSAGES
) -> tuple[JudgementReply, dict[str, Any]]:
    return await sending.arun(request_reply(model, messages, JudgementReply))


@pytest.mark.parametrize("method", ["json_schema", "tools", "json_object", "text"])
@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(Reply(status=400, content="response_format unavailable"), id="400"),
        pytest.param(Reply(status=404, content="no such thing"), id="404"),
        pytest.param(Reply(status=422, content="unprocessable"), id="422"),
        pytest.param(Reply(status=501, content="not implemented"), id="501"),
        pytest.param(Reply(content="{}"), id="empty-object"),
        pytest.param(Reply(content=""), id="nothing"),
    ],
)
async def test_the_server_is_asked_in_a_way_it_knows(method: str, refusal: Reply) -> None:
    with ChatServer(knows(method, refusal=refusal)) as server:
        model = chat(server)
        assert (await ask(model))[0].score == 0.9
        server.reset_counts()
        assert (await ask(model))[0].score == 0.9
        assert [method_of(request) for request in server.requests] == [method]


@pytest.mark.parametrize("method", ["json_schema", "tools", "text"])
async def test_a_server_that_crashes_over_what_it_does_not_know_is_asked_otherwise(
    method: str,
) -> None:
    with ChatServer(knows(method, refusal=Reply(status=500, content="crash"))) as server:
        model = chat(server)
        for _ in range(2):
            server.reset_counts()
            assert (await ask(model))[0].score == 0.9
        assert [method_of(request) for request in server.requests] == [method]


async def test_a_proven_method_outlives_one_bad_request() -> None:
    def answer(request: Request) -> Reply:
        return Reply(status=400, content="too long") if "long" in request.user else good(request)

    with ChatServer(answer) as server:
        model = chat(server)
        await ask(model)
        with pytest.raises(CallError, match="too long"):
            await ask(model, [MESSAGES[0], HumanMessage("long")])
        assert model.output_modes.current == "json_schema"


async def test_a_method_the_server_lacks_is_left_even_if_no_answer_below_it_is_usable() -> None:
    def answer(request: Request) -> Reply:
        if method_of(request) == "tools":
            return tool_call(json.dumps({**GOOD, "score": 7}))
        return Reply(status=400, content="unknown response_format")

    with ChatServer(answer) as server:
        model = chat(server)
        for _ in range(3):
            with pytest.raises(AnswerError, match="got 7"):
                await ask(model)
        assert [method_of(one) for one in server.requests] == ["json_schema"] + ["tools"] * 6


async def test_a_model_that_is_not_there_is_named_and_nothing_is_learned() -> None:
    with ChatServer(lambda request: Reply(status=404, content="no model m")) as server:
        model = chat(server)
        with pytest.raises(CallError, match="no model m") as caught:
            await ask(model)
        assert caught.value.unusable
        assert caught.value.usage.failed_calls == server.calls == 4
        assert model.output_modes.current == "json_schema"


async def test_a_refused_key_is_not_tried_in_other_ways() -> None:
    with ChatServer(lambda request: Reply(status=401, content="bad key sk-secret123")) as server:
        with pytest.raises(CallError, match="refused the API key") as caught:
            await ask(chat(server))
        assert server.calls == 1
        assert "sk-secret123" not in str(caught.value)


@pytest.mark.parametrize("arguments", ["{", '{"score": 7}', "", "{}"])
async def test_broken_tool_arguments_are_asked_again(arguments: str) -> None:
    replies = iter([tool_call(arguments)])

    def answer(request: Request) -> Reply:
        if method_of(request) != "tools":
            return Reply(status=400, content="tools only")
        return next(replies, tool_call(json.dumps(GOOD)))

    with ChatServer(answer) as server:
        model = chat(server)
        model.output_modes.note_success("tools")
        reply, notes = await ask(model)
        assert reply.score == 0.9
        assert notes["repaired"]
        assert notes["usage"].calls == server.calls == 2
        assert notes["usage"].reasked_calls == 1


async def test_the_second_question_carries_what_was_wrong() -> None:
    replies = iter(["The score is 70."])
    with ChatServer(lambda request: next(replies, json.dumps(GOOD))) as server:
        assert (await ask(chat(server)))[1]["repaired"]
        assert "no complete JSON object" in server.requests[1].user


async def test_a_refusal_is_a_failure_at_once() -> None:
    with ChatServer(lambda request: Reply(refusal="I will not.")) as server:
        with pytest.raises(Exception, match="refused: I will not"):
            await ask(chat(server))
        assert server.calls == 1


def test_a_ladder_only_goes_down() -> None:
    modes = OutputModes(("json_schema", "tools", "text"))
    assert modes.fallback_from("json_schema") == "tools"
    modes.note_success("text")
    modes.note_success("tools")
    assert modes.current == "text"
    assert modes.fallback_from("text") is None
