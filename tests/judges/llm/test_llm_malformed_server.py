"""Malformed replies over a real connection: what the client library would lose, raise or invent."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler

from deepera_graph import EvidenceReranker, llm_backend
from deepera_graph.testing import answer_in_json
from support.openai_server import ChatServer, Reply, Request

QUESTION = "Does tea lower fasting glucose?"
TEXTS = ["Tea lowered it.", "Milk did not.", "Broken tea."]
GOOD = '{"reason": "r", "evidence": [1], "score": 0.85}'
OTHER = '{"reason": "r", "evidence": [1], "score": 0.15}'
TWICE = '{"reason": "r", "evidence": [1], "score": 0.15, "score": 0.85}'
METHODS = ["json_schema", "tools", "json_object", "text"]
UNUSABLE, EMPTY, REFUSED, FAILED = "(asked twice)", "is empty", "refused", "failed"
QUICK = {"attempts": 2, "first_wait": 0, "timeout": 5}


def method_of(request: Request) -> str:
    if request.body.get("tools"):
        return "tools"
    return str((request.response_format or {"type": "text"})["type"])


def call(arguments: Any, name: str = "JudgementReply", number: int = 1) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": f"c{number}", "type": "function", "function": function}


def in_calls(*calls: dict[str, Any], content: str | None = None, **more: Any) -> Reply:
    return Reply(content=content, tool_calls=list(calls), **more)


def answering(method: str, broken: Reply, mended: bool = False) -> Callable[[Request], Any]:
    """A server that knows one way of asking, and gives *broken* for the third text."""

    def answer(request: Request) -> Any:
        if method_of(request) != method:
            return Reply(status=400, content="not supported")
        is_again = len(request.messages) > 2
        is_theirs = "You judge" in request.system and "Broken" in str(request.messages[1])
        if is_theirs and not (is_again and mended):
            return broken
        system, user = str(request.messages[0]["content"]), str(request.messages[1]["content"])
        plain = json.dumps(answer_in_json({"Tea": 0.9, "Broken": 0.85}, system, user))
        if method != "tools":
            return plain
        return in_calls(call(plain, request.body["tools"][0]["function"]["name"]))

    return answer


class Switchboard:
    """One server and one reranker for each way of asking, for all tests: connections are dear."""

    def __init__(self) -> None:
        self._answer: Callable[[Request], Any] = lambda request: None
        self.server = ChatServer(self._follow)
        self._rerankers: dict[str, EvidenceReranker] = {}

    def rerank(self, method: str, answer: Callable[[Request], Any], is_async: bool = False) -> Any:
        self._answer = answering(method, Reply(content=GOOD))
        reranker = self._reranker(method)
        self._answer = answer
        self.server.reset_counts()
        if is_async:
            return asyncio.run(reranker.arerank(QUESTION, TEXTS)), self.server.requests
        return reranker.rerank(QUESTION, TEXTS), self.server.requests

    def _follow(self, request: Request) -> Any:
        return self._answer(request)

    def _reranker(self, method: str) -> EvidenceReranker:
        if method not in self._rerankers:
            backend = llm_backend("openai:m", base_url=self.server.base_url, retry=QUICK)
            self._rerankers[method] = EvidenceReranker(backend, max_failed_share=0.5)
            self._rerankers[method].rerank(QUESTION, TEXTS[:1])  # finds the way of asking
        return self._rerankers[method]


@pytest.fixture(scope="module")
def board() -> Iterator[Switchboard]:
    board = Switchboard()
    with board.server:
        yield board


def the_third(result: Any) -> Any:
    [one] = [one for one in result.passages if one.id == "3"]
    return one


# What a message holds, for one way of asking; the score, or why there is none.
MESSAGES: list[tuple[str, str, Reply, float | str]] = [
    ("arguments", "tools", in_calls(call(GOOD)), 0.85),
    ("arguments-as-an-object", "tools", in_calls(call(json.loads(GOOD))), 0.85),
    ("arguments-single-quoted", "tools", in_calls(call(GOOD.replace('"', "'"))), 0.85),
    ("arguments-in-a-fence", "tools", in_calls(call(f"```json\n{GOOD}\n```")), 0.85),
    ("arguments-not-json", "tools", in_calls(call("score is 0.85")), UNUSABLE),
    ("arguments-cut", "tools", in_calls(call(GOOD[:-5])), UNUSABLE),
    ("arguments-cut-by-length", "tools", in_calls(call(GOOD[:-5]), finish_reason="length"),
     "cut off at its limit of tokens"),
    ("arguments-with-a-field-twice", "tools", in_calls(call(TWICE)), "names a field twice"),
    ("arguments-a-list", "tools", in_calls(call("[0.85]")), UNUSABLE),
    ("arguments-a-number", "tools", in_calls(call("0.85")), UNUSABLE),
    ("arguments-a-bare-number", "tools", in_calls(call(0.85)), UNUSABLE),
    ("arguments-a-text", "tools", in_calls(call('"0.85"')), UNUSABLE),
    ("arguments-null-in-text", "tools", in_calls(call("null")), UNUSABLE),
    ("arguments-null", "tools", in_calls(call(None)), "is an empty object"),
    ("arguments-empty", "tools", in_calls(call("")), "is an empty object"),
    ("arguments-empty-object", "tools", in_calls(call("{}")), "is an empty object"),
    ("arguments-nan", "tools", in_calls(call(GOOD.replace("0.85", "NaN"))), UNUSABLE),
    ("arguments-percent", "tools", in_calls(call(GOOD.replace("0.85", '"85%"'))), UNUSABLE),
    ("wrong-name", "tools", in_calls(call(GOOD, "send_mail")), EMPTY),
    ("no-name", "tools", in_calls(call(GOOD, "")), EMPTY),
    ("wrong-and-right-name", "tools", in_calls(call(OTHER, "f"), call(GOOD, number=2)), 0.85),
    ("two-calls-that-differ", "tools", in_calls(call(GOOD), call(OTHER, number=2)), "that differ"),
    ("two-calls-the-same", "tools", in_calls(call(GOOD), call(GOOD, number=2)), 0.85),
    ("a-call-and-a-broken-one", "tools", in_calls(call(GOOD), call(OTHER[:-3], number=2)),
     "that is not JSON beside"),
    ("content-beside-the-call", "tools", in_calls(call(GOOD), content="I think so."), 0.85),
    ("another-answer-beside-the-call", "tools", in_calls(call(GOOD), content=OTHER), 0.85),
    ("text-in-place-of-a-call", "tools", Reply(content=GOOD), 0.85),
    ("prose-in-place-of-a-call", "tools", Reply(content="It is 0.85."), UNUSABLE),
    ("refusal-and-call", "tools", in_calls(call(GOOD), refusal="No."), REFUSED),
    ("refusal", "json_schema", Reply(refusal="I will not."), REFUSED),
    ("refusal-and-content", "json_schema", Reply(content=GOOD, refusal="No."), REFUSED),
    ("filter", "json_schema", Reply(content="", finish_reason="content_filter"), REFUSED),
    ("filter-in-the-middle", "json_schema", Reply(content=GOOD, finish_reason="content_filter"),
     "content filter"),
    ("length", "json_schema", Reply(content=GOOD[:-5], finish_reason="length"), "cut off"),
    ("length-and-nothing", "json_object", Reply(content="", finish_reason="length"), "cut off"),
    ("length-in-thinking", "text", Reply(content="<think>hm", finish_reason="length"), "cut off"),
    ("length-after-the-answer", "json_object",
     Reply(content=GOOD + " \n" * 99, finish_reason="length"), 0.85),
    ("null-content", "json_schema", Reply(content=None), EMPTY),
    ("call-where-none-was-offered", "json_object", in_calls(call(GOOD)), 0.85),
    ("foreign-call-where-none-was-offered", "text", in_calls(call(GOOD, "f")), EMPTY),
    ("prose-and-call-where-none-was-offered", "text", in_calls(call(GOOD), content="Hm."),
     UNUSABLE),
]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(
    ("method", "reply", "expected", "is_async"),
    [
        pytest.param(*row[1:], place % 2 == 0, id=row[0])  # sync and async in turn
        for place, row in enumerate(MESSAGES)
    ],
)
def test_a_message(
    board: Switchboard, method: str, reply: Reply, expected: float | str, is_async: bool
) -> None:
    result, requests = board.rerank(method, answering(method, reply), is_async)
    one = the_third(result)
    assert next(kept.id for kept in result.kept) == "1"
    assert result.backend_failure is None
    about_it = [r for r in requests if "Broken" in str(r.messages) and "You judge" in r.system]
    if isinstance(expected, float):
        assert (one.score, one.status, len(about_it)) == (expected, "scored", 1)
        return
    assert (one.score, one.status, one.kept) == (None, "failed", False)
    assert expected in one.reason
    times = 1 if REFUSED in one.reason else 2
    assert len(about_it) == times
    assert result.usage["score"].calls == 2 + times
    assert result.usage["score"].failed_calls == 0


@pytest.mark.full
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", ["No idea.", GOOD.replace("0.85", "85"), GOOD + OTHER, "<think>"])
def test_a_second_reply_that_is_good_counts_in_every_way(
    board: Switchboard, method: str, bad: str
) -> None:
    reply = in_calls(call(bad)) if method == "tools" else Reply(content=bad)
    result, requests = board.rerank(method, answering(method, reply, mended=True))
    one = the_third(result)
    assert (one.score, one.status, one.kept) == (0.85, "repaired", True)
    assert result.usage["score"].reasked_calls == 1
    [again] = [request for request in requests if len(request.messages) > 2]
    assert method_of(again) == method
    assert "That reply cannot be used: the reply" in again.user
    assert bad not in str(again.messages)
    counted = [len(str(m["content"]).split()) for r in requests if "You judge" in r.system
               and method_of(r) == method for m in r.messages]  # fmt: skip
    assert result.usage["score"].input_tokens == sum(counted)


def body(**changes: Any) -> bytes:
    whole: dict[str, Any] = {
        "id": "c", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": GOOD}}
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }  # fmt: skip
    return json.dumps({**whole, **changes}).encode()


def choice(**message: Any) -> list[dict[str, Any]]:
    return [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}]


# Whole bodies of status 200; the score, or None.
BODIES: list[tuple[str, bytes, float | None]] = [
    ("an-answer", body(), 0.85),
    ("blocks", body(choices=choice(content=[{"type": "text", "text": GOOD}])), 0.85),
    ("blocks-in-pieces", body(choices=choice(content=[
        {"type": "text", "text": GOOD[:20]}, {"type": "text", "text": GOOD[20:]}])), 0.85),
    ("blocks-with-thinking", body(choices=choice(content=[
        {"type": "thinking", "thinking": OTHER}, {"type": "text", "text": GOOD}])), 0.85),
    ("blocks-that-differ", body(choices=choice(content=[
        {"type": "text", "text": GOOD}, {"type": "text", "text": OTHER}])), None),
    ("reasoning-beside", body(choices=choice(content=GOOD, reasoning_content=OTHER)), 0.85),
    ("no-usage", body(usage=None), 0.85),
    ("no-finish-reason", body(choices=[{"index": 0, "message": {
        "role": "assistant", "content": GOOD}}]), 0.85),
    ("no-choices", body(choices=[]), None),
    ("null-choices", body(choices=None), None),
    ("null-message", body(choices=[{"index": 0, "finish_reason": "stop", "message": None}]), None),
    ("html", b"<!DOCTYPE html><html><body><h1>It works! 0.85</h1></body></html>", None),
    ("bare-answer", GOOD.encode(), None),
    ("bare-text", b'"0.85"', None),
    ("bare-number", b"0.85", None),
    ("list", b"[]", None),
    ("null", b"null", None),
    ("nothing", b"", None),
    ("cut", body()[:-40], None),
    ("no-utf-8", b"\xff\xfe" + body(), None),
    ("error-inside", json.dumps({"error": {"message": "boom", "code": 500}}).encode(), None),
]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(
    ("raw", "score", "kind"),
    [
        *(pytest.param(*row[1:], "application/json", id=row[0]) for row in BODIES),
        *(pytest.param(*row[1:], "text/html", id=f"{row[0]}-as-html") for row in BODIES[::5]),
    ],
)
def test_a_body(board: Switchboard, raw: bytes, score: float | None, kind: str) -> None:
    reply = Reply(raw=raw, headers={"content-type": kind})
    result, _ = board.rerank("json_schema", answering("json_schema", reply))
    one = the_third(result)
    assert next(kept.id for kept in result.kept) == "1"
    assert result.backend_failure is None
    if kind == "application/json" or score is None:
        assert one.score == score
        assert one.status == ("failed" if score is None else "scored")
        assert score is not None or one.reason
    else:
        assert one.score in {score, None}  # a library may go by the name of the content


@pytest.mark.full
def test_a_page_where_a_reply_should_be_makes_one_ask_for_the_address(board: Switchboard) -> None:
    page = Reply(raw=b"<html>It works!</html>", headers={"content-type": "text/html"})
    result, _ = board.rerank("json_schema", answering("json_schema", page))
    reason = the_third(result).reason
    assert "no reply of a chat model, is its address right? (str: '<html>It works!" in reason
    assert "ValueError" not in reason


@pytest.mark.full
def test_a_reply_without_choices_is_said_to_have_none(board: Switchboard) -> None:
    empty = Reply(raw=b'{"id": "x", "object": "chat.completion", "choices": []}')
    result, _ = board.rerank("json_schema", answering("json_schema", empty))
    reason = the_third(result).reason
    assert "no reply of a chat model, is its address right? (it has no choices)" in reason
    assert "IndexError" not in reason


class Ends(BaseCallbackHandler):
    """How often a model began, ended well, and failed."""

    def __init__(self) -> None:
        self.began = self.ended = self.failed = 0

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.began += 1

    def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
        self.ended += 1

    def on_llm_error(self, *args: Any, **kwargs: Any) -> None:
        self.failed += 1


@pytest.mark.full
def test_a_malformed_reply_ends_its_trace_with_its_tokens() -> None:
    with ChatServer(answering("tools", in_calls(call("[0.85]")))) as server:
        backend = llm_backend("openai:scripted", base_url=server.base_url, retry=QUICK)
        ends = Ends()
        EvidenceReranker(backend).rerank(QUESTION, TEXTS, config={"callbacks": [ends]})
    assert (ends.began, ends.ended, ends.failed) == (server.calls, server.calls - 1, 1)
