"""Every malformed reply, in every way of asking, in every role: what the table says, or nothing.

A judge is asked in every way, the other roles in two that differ from reply to reply. Each way is
tried in a loop or without one, in turn; in both, and all ways in all roles, where the test is slow.
"""

import re
from collections.abc import Sequence
from itertools import product
from typing import Any
from zlib import crc32

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers.openai_tools import make_invalid_tool_call, parse_tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from deepera_graph.chat.client import ChatModel
from deepera_graph.chat.errors import mark_unclear
from deepera_graph.chat.sending import RateLimits, RetryPolicy
from deepera_graph.errors import AnswerError
from deepera_graph.judges.llm.judging import LlmAnswerer, LlmIntent, LlmJudge, LlmSummarizer
from support.judging import Alone
from support.malformed import (
    EMPTY,
    EVIDENCE,
    EVIDENCES,
    FIELDS,
    FORMS,
    GOOD,
    GOOD_VALUES,
    ROLES,
    SCORE,
    SCORES,
    TEXTS,
    UNUSABLE,
    Role,
)

QUESTION = "How much does moss grow?"
TEXT = "Moss was watered. It grew by 3 mm. Nothing else was seen."
INTENT = {
    "topic": "botany", "entity_type": "plant: moss", "intent": "mechanism",
    "expected_answer_type": "numeric",
}  # fmt: skip
PASSAGE = {"question": QUESTION, "intent": INTENT, "text": TEXT, "title": "", "section": ""}
ITEM = {"text": TEXT, "summary": "", "quote": "", "title": "", "section": ""}
Way = tuple[str, bool]  # how it is asked, and whether in a loop
PLAYERS: dict[Role, Any] = {
    "intent": (LlmIntent, {"question": QUESTION, "problem": ""}),
    "score": (LlmJudge, PASSAGE),
    "summary": (LlmSummarizer, PASSAGE),
    "answer": (LlmAnswerer, {"question": QUESTION, "intent": INTENT, "evidence": [ITEM]}),
}
METHODS = ["json_schema", "tools", "tools-answered-in-text", "json_object", "text"]
EVERY_WAY = list(product(METHODS, (True, False)))
TOKENS = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}


class Told(BaseChatModel):
    """A model of OpenAI's kind that says one thing after the other, and the last for ever."""

    replies: list[str]
    in_calls: bool
    root_async_client: Any = None
    extra_body: dict[str, Any] | None = None
    _asked: list[tuple[list[BaseMessage], str]] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "told"

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        body = kwargs.get("extra_body", {})
        self._asked.append((messages, way_of(body)))
        raw = self.replies[min(len(self._asked), len(self.replies)) - 1]
        message = called(raw, body) if "tools" in body and self.in_calls else AIMessage(raw)
        message.usage_metadata = TOKENS
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError


def way_of(body: dict[str, Any]) -> str:
    form = "tools" if "tools" in body else "text"
    return str(body.get("response_format", {"type": form})["type"])


def called(raw: str, body: dict[str, Any]) -> AIMessage:
    """A reply in a tool call, read as langchain-openai reads what comes over the watched wire."""
    function = {"name": body["tools"][0]["function"]["name"], "arguments": mark_unclear(raw)}
    call = {"id": "c1", "type": "function", "function": function}
    try:
        return AIMessage("", tool_calls=[parse_tool_call(call, return_id=True)])
    except (ValueError, TypeError) as error:
        return AIMessage("", invalid_tool_calls=[make_invalid_tool_call(call, str(error))])


def filled_in(reply: str, role: Role) -> str:
    names = "|".join(sorted(TEXTS[role], key=len, reverse=True))
    return re.sub(rf"\b(?:{names})\b", lambda match: TEXTS[role][match.group()], reply)


def player_of(kind: Any, chat: ChatModel) -> Any:
    return Alone(kind(chat)) if kind is LlmJudge else kind(chat)


async def played(role: Role, method: str, replies: list[str], is_async: bool) -> tuple[Any, Told]:
    """Play a role on a model whose server is known to take one way of asking."""
    kind, task = PLAYERS[role]
    told = Told(replies=replies, in_calls=method == "tools")
    chat = ChatModel(told, RetryPolicy(attempts=1), RateLimits())
    chat.output_modes.note_success(method.partition("-")[0])
    player = player_of(kind, chat)
    try:
        return (await player.ainvoke(task) if is_async else player.invoke(task)), told
    except AnswerError as error:
        return error, told


def some_ways(role: Role, reply: str) -> list[Way]:
    """Every method for a judge, else two; one without a loop, which differs from reply to reply."""
    place = crc32(reply.encode("utf-8", "surrogatepass")) % len(METHODS)
    methods = [*METHODS[place:], *METHODS[:place]]
    return [
        (method, method != METHODS[place]) for method in methods[: None if role == "score" else 2]
    ]


async def check(
    role: Role, reply: str, expected: dict[str, Any] | str, ways: Sequence[Way] = ()
) -> None:
    if expected == GOOD:
        expected = GOOD_VALUES[role]
    for method, is_async in ways or some_ways(role, reply):
        if isinstance(expected, dict):
            await check_value(role, method, reply, expected, is_async)
        else:
            await check_failure(role, method, reply, is_async)
            await check_second(role, method, reply, is_async)


async def check_value(
    role: Role, method: str, reply: str, expected: dict[str, Any], is_async: bool
) -> None:
    got, told = await played(role, method, [reply], is_async)
    assert not isinstance(got, AnswerError), f"{method}: {got}"
    assert {name: getattr(got, name) for name in expected} == expected, method
    assert (len(told._asked), got.repaired, got.usage.calls) == (1, False, 1)
    assert got.usage.tokens == 10


async def check_failure(role: Role, method: str, reply: str, is_async: bool) -> None:
    got, told = await played(role, method, [reply], is_async)
    assert isinstance(got, AnswerError), f"{method}: {got!r}"
    assert str(got).endswith("(asked twice)")
    assert len(told._asked) == got.usage.calls == 2
    assert (got.usage.reasked_calls, got.usage.tokens, got.usage.failed_calls) == (1, 20, 0)
    assert {way for _, way in told._asked} == {method.partition("-")[0]}


async def check_second(role: Role, method: str, reply: str, is_async: bool) -> None:
    """A good second reply counts, and it was told what was wrong in our words alone."""
    got, told = await played(role, method, [reply, TEXTS[role]["GOOD"]], is_async)
    assert {name: getattr(got, name) for name in GOOD_VALUES[role]} == GOOD_VALUES[role]
    assert (got.repaired, got.usage.calls, got.usage.reasked_calls) == (True, 2, 1)
    assert got.usage.tokens == 20
    first, second = (messages for messages, _ in told._asked)
    assert second[: len(first)] == first
    assert [message.type for message in second[len(first) :]] == ["ai", "human"]
    problem = re.fullmatch(r"That reply cannot be used: (the reply .+)\. Give .*", second[-1].text)
    assert problem, second[-1].text
    assert len(problem[1]) < 800


@pytest.mark.full
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("reply", "expected"), [pytest.param(*row[1:], id=row[0]) for row in FORMS]
)
async def test_a_form(role: Role, reply: str, expected: str) -> None:
    await check(role, filled_in(reply, role), expected)


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
async def test_every_row_in_every_way_in_a_loop_and_without(role: Role) -> None:
    for _, reply, expected in FORMS:
        await check(role, filled_in(reply, role), expected, EVERY_WAY)
    for owner, _, reply, expected in FIELDS:
        if owner == role:
            await check(role, reply, expected, EVERY_WAY)


@pytest.mark.full
@pytest.mark.parametrize(
    ("score", "expected"), [pytest.param(*row[1:], id=row[0]) for row in SCORES]
)
async def test_a_score(score: str, expected: float | str) -> None:
    value = expected if isinstance(expected, str) else {"score": expected}
    await check("score", SCORE % score, value)


@pytest.mark.parametrize(
    ("numbers", "expected"), [pytest.param(*row[1:], id=row[0]) for row in EVIDENCES]
)
async def test_evidence(numbers: str, expected: str) -> None:
    value = UNUSABLE if expected == UNUSABLE else {"score": 0.7, "quote": expected}
    await check("score", EVIDENCE % numbers, value)


@pytest.mark.full
@pytest.mark.parametrize(
    ("role", "reply", "expected"),
    [pytest.param(row[0], *row[2:], id=f"{row[0]}-{row[1]}") for row in FIELDS],
)
async def test_a_field(role: Role, reply: str, expected: dict[str, Any] | str) -> None:
    await check(role, reply, expected)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    "reply", [pytest.param(row[1], id=row[0]) for row in FORMS if row[2] == EMPTY]
)
async def test_nothing_on_the_first_use_is_asked_in_the_next_way(role: Role, reply: str) -> None:
    kind, task = PLAYERS[role]
    told = Told(replies=[filled_in(reply, role)] * 3 + [TEXTS[role]["GOOD"]], in_calls=True)
    chat = ChatModel(told, RetryPolicy(attempts=1), RateLimits())
    got = await player_of(kind, chat).ainvoke(task)
    assert [way for _, way in told._asked] == ["json_schema", "tools", "json_object", "text"]
    assert (got.repaired, got.usage.calls, got.usage.tokens) == (False, 4, 40)
    assert chat.output_modes.current == "text"
    await player_of(kind, chat).ainvoke(task)
    assert [way for _, way in told._asked][4:] == ["text"]


def test_the_table_is_as_long_as_promised() -> None:
    for table in (FORMS, SCORES, EVIDENCES, FIELDS):
        names = [row[:2] if table is FIELDS else row[0] for row in table]
        assert len(names) == len(set(names))
    bad = [row for row in FORMS if row[2] != GOOD and row[0] != "plain"]
    assert len(FORMS) >= 90
    assert len(bad) >= 50
