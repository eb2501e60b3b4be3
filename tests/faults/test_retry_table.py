"""What is tried again, how often, and after how long; by a table."""

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from deepera_graph.chat import sending
from deepera_graph.chat.client import ChatModel, request_reply
from deepera_graph.chat.models import find_model
from deepera_graph.chat.sending import RateLimits, Retrier, RetryPolicy
from deepera_graph.errors import CallError
from deepera_graph.judges.llm.prompt import SummaryReply
from deepera_graph.settings.budget import Meter, Tab
from deepera_graph.usage import Usage
from support.openai_server import ChatServer, Reply, Request

MESSAGES = [SystemMessage("Shorten."), HumanMessage("Passage.")]
GOOD = json.dumps({"text": "Short."})
LONGEST = 0.4
RETRIED = [408, 409, 425, 429, 500, 502, 503, 504, 520, 529, 599]
FINAL = [400, 401, 402, 403, 404, 405, 410, 413, 418, 422, 501, 505]
TRANSPORT = [Reply(fault="reset"), Reply(content=GOOD, fault="half"), Reply(fault="hang")]


def chat(server: ChatServer, *, proven: bool = True, **retry: float) -> ChatModel:
    model = find_model("openai:m", base_url=server.base_url, api_key="k")
    bounds = {"first_wait": 0.01, "longest_wait": LONGEST, "timeout": 5.0, **retry}
    made = ChatModel(model, RetryPolicy(**bounds), RateLimits())
    if proven:
        made.output_modes.note_success("json_schema")
    return made


async def ask(model: ChatModel) -> tuple[SummaryReply, dict[str, Any]]:
    return await sending.arun(request_reply(model, MESSAGES, SummaryReply))


def in_an_hour() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)


def in_a_second() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=1), usegmt=True)


@pytest.mark.full
@pytest.mark.parametrize("status", RETRIED)
async def test_a_status_that_passes_is_tried_again(status: int) -> None:
    with ChatServer(lambda request: Reply(status=status) if request.number < 2 else GOOD) as server:
        _, notes = await ask(chat(server))
        assert (notes["usage"].calls, notes["usage"].failed_calls, server.calls) == (1, 2, 3)


@pytest.mark.full
@pytest.mark.parametrize("status", FINAL)
async def test_a_status_that_lasts_is_not_tried_again(status: int) -> None:
    with ChatServer(lambda request: Reply(status=status)) as server:
        with pytest.raises(CallError, match=str(status)):
            await ask(chat(server))
        assert server.calls == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_no_prompt_goes_where_a_server_redirects_to(status: int) -> None:
    with ChatServer(lambda request: GOOD) as other:
        moved = Reply(status=status, headers={"Location": f"{other.base_url}/chat/completions"})
        with ChatServer(lambda request: moved) as server:
            with pytest.raises(CallError, match=f"HTTP {status}: .* redirects to {other.base_url}"):
                await ask(chat(server))
            assert (server.calls, other.calls) == (1, 0)


@pytest.mark.full
@pytest.mark.parametrize("fault", TRANSPORT, ids=lambda reply: reply.fault)
async def test_a_connection_that_breaks_is_tried_again(fault: Reply) -> None:
    with ChatServer(lambda request: fault if request.number < 2 else GOOD) as server:
        _, notes = await ask(chat(server, timeout=0.5))
        assert (notes["usage"].calls, notes["usage"].failed_calls) == (1, 2)


@pytest.mark.parametrize("status", [400, 404, 422, 501])
async def test_a_method_that_is_refused_is_given_up_for_good(status: int) -> None:
    def answer(request: Request) -> Reply | str:
        return GOOD if request.response_format is None else Reply(status=status)

    with ChatServer(answer) as server:
        model = chat(server, proven=False)
        assert (await ask(model))[1]["usage"].failed_calls == 1
        assert (await ask(model))[1]["usage"].failed_calls == 0
        assert server.calls == 3


@pytest.mark.parametrize("status", [401, 403, 429, 503])
async def test_another_failure_is_not_the_fault_of_the_method(status: int) -> None:
    with ChatServer(lambda request: Reply(status=status)) as server:
        with pytest.raises(CallError, match=str(status)):
            await ask(chat(server, proven=False, attempts=2))
        assert {bool(request.response_format) for request in server.requests} == {True}


@pytest.mark.full
@pytest.mark.parametrize(
    ("headers", "waited"),
    [
        pytest.param({"Retry-After": "0.3"}, 0.3, id="seconds"),
        pytest.param({"retry-after-ms": "300"}, 0.3, id="milliseconds"),
        pytest.param({"retry-after-ms": "soon", "Retry-After": "0.3"}, 0.3, id="one-garbage"),
        pytest.param({"Retry-After": "0"}, 0.0, id="zero"),
        pytest.param({"Retry-After": "-5"}, 0.0, id="negative"),
        pytest.param({"Retry-After": "soon"}, 0.0, id="garbage"),
        pytest.param({"Retry-After": ""}, 0.0, id="blank"),
        pytest.param({"Retry-After": "nan"}, 0.0, id="not-a-number"),
        pytest.param({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0, id="past-date"),
        pytest.param({"Retry-After": "Wed, 21 Oct 2015 07:28:00 -0000"}, 0.0, id="no-zone"),
        pytest.param({"Retry-After": "Wed, 21 Oct 2015"}, 0.0, id="half-a-date"),
        pytest.param({"Retry-After": "Xxx, 99 Yyy 99999 99:99:99 GMT"}, 0.0, id="no-date"),
    ],
)
async def test_the_wait_a_server_asks_for_is_waited(headers: dict[str, str], waited: float) -> None:
    def answer(request: Request) -> Reply | str:
        return GOOD if request.number else Reply(status=429, headers=headers)

    with ChatServer(answer) as server:
        reply, _ = await ask(chat(server))
        first, second = server.requests
        assert reply.text == "Short."
        assert waited - 0.01 <= second.arrived - first.arrived < waited + LONGEST


@pytest.mark.parametrize(
    "asked",
    [lambda: "86400", lambda: "1e400", lambda: "inf", in_an_hour],
    ids=["a-day", "overflow", "infinite", "date-in-an-hour"],
)
async def test_a_wait_longer_than_allowed_ends_the_attempts(asked: Callable[[], str]) -> None:
    headers = {"Retry-After": asked()}
    with ChatServer(lambda request: Reply(status=429, headers=headers)) as server:
        started = time.monotonic()
        with pytest.raises(CallError, match="429"):
            await ask(chat(server))
        assert server.calls == 1
        assert time.monotonic() - started < 2.0


@pytest.mark.parametrize(
    ("asked", "waited"), [(0.0, 0.0), (2.0, 2.0), (4.0, 4.0), (4.01, None), (7.9, None)]
)
async def test_no_wait_is_longer_than_the_longest(
    monkeypatch: pytest.MonkeyPatch, asked: float, waited: float | None
) -> None:
    waits = list[float]()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def send() -> tuple[Any, Usage]:
        raise CallError("busy", status=429, retry_after=asked)

    monkeypatch.setattr("deepera_graph.chat.sending.asyncio.sleep", sleep)
    policy = RetryPolicy(attempts=2, first_wait=1.0, longest_wait=4.0)
    with pytest.raises(CallError, match="busy"):
        await Retrier(policy).send(send, nullcontext, Tab(Meter(None)))
    if waited is None:
        assert waits == []
    else:
        (wait,) = waits
        assert waited <= wait <= min(waited + 1.0, 4.0)


@pytest.mark.full
async def test_a_date_is_waited_for() -> None:
    def answer(request: Request) -> Reply | str:
        if request.number:
            return GOOD
        return Reply(status=503, headers={"Retry-After": in_a_second()})

    with ChatServer(answer) as server:
        await ask(chat(server, longest_wait=3.0))
        first, second = server.requests
        assert second.arrived - first.arrived < 1.5  # dates have no fractions of a second


@pytest.mark.full
async def test_callers_who_are_told_the_same_wait_do_not_come_back_at_once() -> None:
    def answer(request: Request) -> Reply | str:
        return GOOD if request.number >= 8 else Reply(status=429, headers={"Retry-After": "0.1"})

    with ChatServer(answer) as server:
        model = chat(server, first_wait=0.2)

        async def many() -> None:
            await asyncio.gather(*(request_reply(model, MESSAGES, SummaryReply) for _ in range(8)))

        await sending.arun(many())
        back = [request.arrived for request in server.requests[8:]]
        assert max(back) - min(back) > 0.03


@pytest.mark.full
async def test_all_waiting_together_is_bounded() -> None:
    headers = {"Retry-After": "0.2"}
    with ChatServer(lambda request: Reply(status=429, headers=headers)) as server:
        started = time.monotonic()
        with pytest.raises(CallError, match="429"):
            await ask(chat(server, attempts=50, total_wait=0.5))
        assert server.calls in {2, 3}
        assert time.monotonic() - started < 2.0
