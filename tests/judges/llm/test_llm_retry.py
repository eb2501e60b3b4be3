"""What passes is tried again, what lasts is not, and waiting is bounded."""

import asyncio
import json
import time
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from deepera_graph import llm_backend
from deepera_graph.chat import sending
from deepera_graph.chat.client import ChatModel, request_reply
from deepera_graph.chat.models import find_model
from deepera_graph.chat.sending import RateLimits, RetryPolicy
from deepera_graph.errors import CallError, SettingsError
from deepera_graph.judges.llm.prompt import SummaryReply
from deepera_graph.settings.budget import Carried, Meter, Tab, carry
from deepera_graph.usage import Usage
from support.openai_server import ChatServer, Reply

MESSAGES = [SystemMessage("Shorten."), HumanMessage("Passage.")]
GOOD = json.dumps({"text": "Short."})


def chat(server: ChatServer, **retry: object) -> ChatModel:
    model = find_model("openai:m", base_url=server.base_url, api_key="k")
    model.extra_body = None
    chat = ChatModel(model, RetryPolicy(**{"first_wait": 0.01, **retry}), RateLimits())
    chat.output_modes.note_success("json_schema")
    return chat


async def ask(
    model: ChatModel, messages: list[BaseMessage] = MESSAGES
) -> tuple[SummaryReply, dict[str, Any]]:
    return await sending.arun(request_reply(model, messages, SummaryReply))


@pytest.mark.full
@pytest.mark.parametrize(
    "fault",
    [Reply(status=status) for status in (408, 409, 425, 429, 500, 502, 503, 504, 529)]
    + [Reply(fault="reset"), Reply(content=GOOD, fault="half")],
    ids=lambda fault: fault.fault or fault.status,
)
async def test_what_passes_is_tried_again_and_counted(fault: Reply) -> None:
    replies = iter([fault, fault])
    with ChatServer(lambda request: next(replies, GOOD)) as server:
        reply, notes = await ask(chat(server))
        assert reply.text == "Short."
        assert not notes["repaired"]
        assert (notes["usage"].calls, notes["usage"].failed_calls) == (1, 2)


@pytest.mark.full
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 501])
async def test_what_lasts_is_not_tried_again(status: int) -> None:
    with ChatServer(lambda request: Reply(status=status)) as server:
        with pytest.raises(CallError) as caught:
            await ask(chat(server))
        assert caught.value.status == status
        assert server.calls == 1


async def test_attempts_are_bounded_and_all_are_charged() -> None:
    with ChatServer(lambda request: Reply(status=503)) as server:
        with pytest.raises(CallError) as caught:
            await ask(chat(server, attempts=3))
        assert caught.value.usage.failed_calls == server.calls == 3


@pytest.mark.full
@pytest.mark.parametrize(
    "headers", [{"Retry-After": "0.3"}, {"retry-after-ms": "300"}], ids=["seconds", "milliseconds"]
)
async def test_the_server_says_how_long_to_wait(headers: dict[str, str]) -> None:
    replies = iter([Reply(status=429, headers=headers)])
    with ChatServer(lambda request: next(replies, GOOD)) as server:
        await ask(chat(server))
        first, second = server.requests
        assert second.arrived - first.arrived >= 0.29


async def test_a_server_that_asks_for_too_long_a_wait_is_not_waited_for() -> None:
    with ChatServer(lambda request: Reply(status=429, headers={"Retry-After": "999"})) as server:
        started = time.monotonic()
        with pytest.raises(CallError, match="429"):
            await ask(chat(server))
        assert time.monotonic() - started < 5


@pytest.mark.full
async def test_a_call_that_hangs_is_given_up() -> None:
    replies = iter([Reply(fault="hang")])
    with ChatServer(lambda request: next(replies, GOOD)) as server:
        _, notes = await ask(chat(server, timeout=0.3))
        assert notes["usage"].failed_calls == 1


async def test_a_server_that_is_not_there_is_said_to_be_unreachable() -> None:
    with ChatServer(lambda request: GOOD) as server:
        gone = chat(server, attempts=2)
    with pytest.raises(CallError, match="cannot be reached") as caught:
        await ask(gone)
    assert caught.value.unusable
    assert caught.value.usage.failed_calls == 2


@pytest.mark.full
async def test_a_call_that_is_cancelled_is_charged() -> None:
    with ChatServer(lambda request: Reply(fault="hang")) as server:
        meter = Meter(None)
        meter.admit()
        config = carry(None, Carried(meter, tab=Tab(meter)))
        asked = request_reply(chat(server), MESSAGES, SummaryReply, config)
        with pytest.raises(TimeoutError):
            await sending.arun(asyncio.wait_for(asked, 0.3))
        assert (server.calls, meter.spent) == (1, Usage(failed_calls=1))


@pytest.mark.parametrize(
    ("name", "value"), [("attempts", 0), ("timeout", 0), ("first_wait", -1), ("total_wait", -1)]
)
def test_a_bound_out_of_range_is_named(name: str, value: float) -> None:
    with pytest.raises(SettingsError, match=f"{name} must be .* got {value}"):
        RetryPolicy(**{name: value})


def test_an_unknown_bound_is_named() -> None:
    with pytest.raises(SettingsError, match=r"retry: .*'atempts'; did you mean 'attempts'\?"):
        llm_backend("openai:m", base_url="http://127.0.0.1:9/v1", retry={"atempts": 2})
