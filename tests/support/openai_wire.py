"""OpenAI's chat completions protocol on the wire: requests in, bytes out."""

import asyncio
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import responses
from typing import Any, Literal

Json = dict[str, Any]

_CODES = {401: "invalid_api_key", 404: "not_found", 429: "rate_limit_exceeded"}


@dataclass(frozen=True, slots=True)
class Request:
    """One chat request: *number* counts arrivals from 0, *arrived* is in monotonic seconds, the
    names of *headers* are in lower case."""

    number: int
    arrived: float
    path: str
    headers: dict[str, str]
    body: Json

    @property
    def messages(self) -> list[Json]:
        """The messages as sent."""
        return list(self.body.get("messages", []))

    @property
    def system(self) -> str:
        """Text of the system (or developer) messages, joined by line breaks."""
        return "\n".join(texts(self.messages, "system", "developer"))

    @property
    def user(self) -> str:
        """Text of the last user message, empty when there is none."""
        return ["", *texts(self.messages, "user")][-1]

    @property
    def model(self) -> str:
        """Name of the model asked for."""
        return str(self.body.get("model", ""))

    @property
    def response_format(self) -> Json | None:
        """The form the answer must have, when the request sets one."""
        form: Json | None = self.body.get("response_format")
        return form


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the server does with one request.

    From status 400 up, *content* and *code* are the error's. *usage* is (prompt, completion)
    tokens, by default words counted. *latency* is in seconds. *raw* is sent in place of the body.
    *after* holds it until so many requests have arrived, or fails the block after 20 seconds.
    Faults: ``reset`` drops the connection unanswered, ``half`` sends half of the promised body,
    ``hang`` never answers.
    """

    content: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    finish_reason: str = "stop"
    tool_calls: Sequence[Mapping[str, Any]] | None = None
    refusal: str | None = None
    usage: tuple[int, int] | None = None
    latency: float | None = None
    after: int = 0
    raw: bytes | None = None
    fault: Literal["reset", "half", "hang"] | None = None
    code: str | None = None


async def read_request(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *fields = head.rstrip().split("\r\n")
    method, target, _ = line.split(" ")
    pairs = (field.partition(":") for field in fields)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return method, target.partition("?")[0], headers, body


def texts(messages: Sequence[Json], *roles: str) -> list[str]:
    contents = [message.get("content") or "" for message in messages]
    texts = [c if isinstance(c, str) else "".join(p.get("text", "") for p in c) for c in contents]
    return [t for t, m in zip(texts, messages, strict=True) if not roles or m.get("role") in roles]


def content(answer: object) -> str:
    if isinstance(answer, str | dict):
        return answer if isinstance(answer, str) else json.dumps(answer)
    raise TypeError(f"an answer is a Reply, a str or a dict, got {answer!r}")


def dump(value: object) -> bytes:
    return json.dumps(value).encode()


def pieces(request: Request, reply: Reply) -> list[bytes]:
    """The response, cut where a fault may cut it."""
    if reply.raw is not None:
        return whole(reply.status, reply.headers, reply.raw)
    if reply.status >= 400:
        return error_pieces(reply)
    words = sum(len(text.split()) for text in texts(request.messages))
    prompt, completion = reply.usage or (words, len((reply.content or "").split()))
    total = prompt + completion
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    head = {"id": f"chatcmpl-{request.number}", "created": int(time.time()), "model": request.model}
    called = reply.tool_calls and reply.finish_reason == "stop"
    end = {"index": 0, "finish_reason": "tool_calls" if called else reply.finish_reason}
    if request.body.get("stream"):
        options = request.body.get("stream_options") or {}
        return _stream(reply, head, end, usage if options.get("include_usage") else None)
    message: Json = {"role": "assistant", "content": reply.content, "refusal": reply.refusal}
    if reply.tool_calls:
        message["tool_calls"] = reply.tool_calls
    choices = [{"message": message, "logprobs": None, **end}]
    body = {"object": "chat.completion", "choices": choices, "usage": usage, **head}
    return whole(reply.status, reply.headers, dump(body))


def _stream(reply: Reply, head: Json, end: Json, usage: Json | None) -> list[bytes]:
    """The server-sent events of *reply*, one HTTP chunk each."""
    head = {"object": "chat.completion.chunk", **head}
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in re.findall(r"\s*\S+|\s+$", reply.content or "")]
    deltas += [{"refusal": reply.refusal}] if reply.refusal else []
    calls = enumerate(reply.tool_calls or [])
    deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in calls]
    choices: list[Json] = [{"index": 0, "delta": d, "finish_reason": None} for d in deltas]
    events: list[Json] = [{"choices": [c], **head} for c in [*choices, {"delta": {}, **end}]]
    events += [{"choices": [], "usage": usage, **head}] if usage else []
    lines = [b"data: %b\n\n" % data for data in [*map(dump, events), b"[DONE]"]]
    fields = {"content-type": "text/event-stream", "transfer-encoding": "chunked", **reply.headers}
    chunks = [b"%x\r\n%b\r\n" % (len(line), line) for line in lines]
    return [_head(reply.status, fields), *chunks, b"0\r\n\r\n"]


def error_pieces(reply: Reply) -> list[bytes]:
    kind = "invalid_request_error" if reply.status < 500 else "server_error"
    message = reply.content or responses.get(reply.status, "Unknown")
    error = {"message": message, "type": kind, "code": reply.code or _CODES.get(reply.status)}
    return whole(reply.status, reply.headers, dump({"error": error}))


def whole(status: int, headers: Mapping[str, str], body: bytes) -> list[bytes]:
    middle = len(body) // 2
    fields = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    return [_head(status, fields), body[:middle], body[middle:]]


def _head(status: int, fields: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {responses.get(status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
