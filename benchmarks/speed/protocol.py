"""Answers as bytes of OpenAI's chat protocol: whole, or piece by piece."""

import json
from typing import Any

from oracle import Answer
from wire import whole

Json = dict[str, Any]
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def first_bytes(body: Json) -> bytes:
    """Return the head of a streamed answer."""
    return _STREAM_HEAD + _event(_chunk(body, {"role": "assistant", "content": ""}))


def piece_bytes(body: Json, answer: Answer, piece: str, *, is_first: bool) -> bytes:
    """Return one piece of a streamed answer."""
    return _event(_chunk(body, _delta(answer, piece, is_first)))


def usage_of(prompt: int, cached: int, output: int) -> Json:
    """Return the tokens of a call as the protocol names them."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def last_bytes(body: Json, answer: Answer, usage: Json) -> list[bytes]:
    """Return the whole answer, or the end of a streamed one."""
    ending = "tool_calls" if answer.is_tool_call else "stop"
    if body.get("stream"):
        events = [_event(_chunk(body, {}, ending))]
        if (body.get("stream_options") or {}).get("include_usage"):
            events.append(
                _event(_head(body, "chat.completion.chunk") | {"choices": [], "usage": usage})
            )
        return [*events, _framed(b"data: [DONE]\n\n"), b"0\r\n\r\n"]
    message: Json = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.is_tool_call:
        message |= {"content": None, "tool_calls": [_called(answer, answer.text)]}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": ending}
    full = _head(body, "chat.completion") | {"choices": [choice], "usage": usage}
    return whole(200, {}, json.dumps(full).encode())


def _head(body: Json, kind: str) -> Json:
    return {"id": "chatcmpl-0", "object": kind, "created": 0, "model": body.get("model", "")}


def _chunk(body: Json, delta: Json, ending: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": ending}
    return _head(body, "chat.completion.chunk") | {"choices": [choice]}


def _delta(answer: Answer, piece: str, is_first: bool) -> Json:
    if not answer.is_tool_call:
        return {"content": piece}
    called = _called(answer, piece) if is_first else {"function": {"arguments": piece}}
    return {"tool_calls": [{"index": 0, **called}]}


def _called(answer: Answer, arguments: str) -> Json:
    function = {"name": answer.tool, "arguments": arguments}
    return {"id": "call-0", "type": "function", "function": function}


def _event(value: Json) -> bytes:
    return _framed(b"data: %b\n\n" % json.dumps(value).encode())


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
