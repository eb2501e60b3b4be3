"""A scripted server of the OpenAI chat completions protocol, on a free port of this machine.

Use:
    with ChatServer(lambda request: {"score": 0.9}, latency=0.1) as server:
        model = ChatOpenAI(model="any", base_url=server.base_url, api_key="any")
"""

import asyncio
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import responses
from typing import Any, Literal, Self

Json = dict[str, Any]

_CODES = {401: "invalid_api_key", 404: "not_found", 429: "rate_limit_exceeded"}
_MODELS = {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "tests"}]}
_used_ports: set[int] = set()


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
        return "\n".join(_texts(self.messages, "system", "developer"))

    @property
    def user(self) -> str:
        """Text of the last user message, empty when there is none."""
        return ["", *_texts(self.messages, "user")][-1]

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
    raw: bytes | None = None
    fault: Literal["reset", "half", "hang"] | None = None
    code: str | None = None


class ChatServer:
    """A server that runs while its `with` block lasts.

    *answer* runs in the server's only thread, one request at a time: it must not block. When it
    raises, the client gets status 500 and leaving the block raises `AssertionError`.

    `in_flight` counts the chat requests that have arrived and whose answer has not begun to leave,
    `max_in_flight` is its highest value, `answered` counts the whole answers, of any status.
    """

    def __init__(self, answer: Callable[[Request], Reply | str | Json], latency: float = 0) -> None:
        self.in_flight = self.max_in_flight = self.answered = 0
        self._answer, self._latency = answer, latency
        self._requests: list[Request] = []
        self._errors: list[BaseException] = []
        self._writers: set[asyncio.StreamWriter] = set()
        self._lock, self._ready, self._stop = threading.Lock(), threading.Event(), asyncio.Event()

    def __enter__(self) -> Self:
        listener = _listen()
        self.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        serve = self._serve(listener)
        self._thread = threading.Thread(target=asyncio.run, args=(serve,), daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._errors and (error is None or isinstance(error, Exception)):
            failure = AssertionError(f"the server's answer script raised {self._errors[0]!r}")
            if error is not None:
                failure.add_note(f"the block itself ended with {error!r}")
            raise failure from self._errors[0]

    @property
    def requests(self) -> list[Request]:
        """Chat requests so far, in order of arrival."""
        with self._lock:
            return list(self._requests)

    @property
    def calls(self) -> int:
        """How many chat requests have arrived."""
        return len(self._requests)

    def reset_counts(self) -> None:
        """Forget the requests so far; those in flight stay in flight."""
        with self._lock:
            self._requests, self.answered, self.max_in_flight = [], 0, self.in_flight

    async def _serve(self, listener: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._converse, sock=listener, backlog=1024)
        self._ready.set()
        await self._stop.wait()
        self._loop.remove_reader(listener)  # `close` now would trip up a connection half accepted
        while len(asyncio.all_tasks()) > 1:
            for writer in self._writers:  # an aborted connection reads as left by its client
                writer.transport.abort()
            await asyncio.sleep(0)
        server.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until either side ends it."""
        self._writers.add(writer)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._exchange(reader, writer):
                    await writer.drain()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        finally:
            writer.close()
            self._writers.discard(writer)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection may carry another."""
        method, path, headers, body = await _read(reader)
        if (method, path) == ("POST", "/v1/chat/completions"):
            try:
                parsed: Json = json.loads(body)
            except ValueError as error:
                writer.write(b"".join(_error(Reply(status=400, content=f"not JSON: {error}"))))
                return True
            return await self._chat(self._arrive(path, headers, parsed), reader, writer)
        if (method, path) == ("GET", "/v1/models"):
            writer.write(b"".join(_whole(200, {}, _dump(_MODELS))))
        else:
            writer.write(b"".join(_error(Reply(status=404, content=f"no such route: {path}"))))
        return True

    def _arrive(self, path: str, headers: dict[str, str], body: Json) -> Request:
        with self._lock:
            request = Request(len(self._requests), time.monotonic(), path, headers, body)
            self._requests.append(request)
            self.in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self.in_flight)
        return request

    async def _chat(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        reply, pieces = self._follow(request)
        latency = self._latency if reply.latency is None else reply.latency
        there = False
        try:
            patience = None if reply.fault == "hang" else latency
            there = await _outlasts(reader, patience) and not writer.is_closing()
        finally:  # before a byte leaves, or the client's next request could overlap this one
            with self._lock:
                self.in_flight -= 1
                self.answered += there and reply.fault is None
        if there and reply.fault == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        elif there:
            n_sent = (len(pieces) + 1) // 2 if reply.fault == "half" else len(pieces)
            writer.write(b"".join(pieces[:n_sent]))
        return there and reply.fault is None

    def _follow(self, request: Request) -> tuple[Reply, list[bytes]]:
        """The scripted reply and its bytes, or what tells the client that the script failed."""
        try:
            answer = self._answer(request)
            reply = answer if isinstance(answer, Reply) else Reply(content=_content(answer))
            return reply, _pieces(request, reply)
        except BaseException as error:  # noqa: BLE001 -- kept for `__exit__`; `pytest.fail` too
            self._errors.append(error)
            reply = Reply(status=500, content=repr(error), headers={"x-should-retry": "false"})
            return reply, _error(reply)


def _listen() -> socket.socket:
    """A port no earlier server of this process had: `ChatOpenAI` shares its clients by URL."""
    while (listener := socket.create_server(("127.0.0.1", 0))).getsockname()[1] in _used_ports:
        listener.close()
    _used_ports.add(listener.getsockname()[1])
    return listener


async def _read(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *fields = head.rstrip().split("\r\n")
    method, target, _ = line.split(" ")
    pairs = (field.partition(":") for field in fields)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return method, target.partition("?")[0], headers, body


async def _outlasts(reader: asyncio.StreamReader, seconds: float | None) -> bool:
    """Whether the client waits out *seconds*; `None` waits until it leaves."""
    try:
        async with asyncio.timeout(seconds):
            await reader.read(1)  # a waiting client sends nothing: only its leaving ends this
    except TimeoutError:
        return True
    return False


def _texts(messages: Sequence[Json], *roles: str) -> list[str]:
    contents = [message.get("content") or "" for message in messages]
    texts = [c if isinstance(c, str) else "".join(p.get("text", "") for p in c) for c in contents]
    return [t for t, m in zip(texts, messages, strict=True) if not roles or m.get("role") in roles]


def _content(answer: object) -> str:
    if isinstance(answer, str | dict):
        return answer if isinstance(answer, str) else json.dumps(answer)
    raise TypeError(f"an answer is a Reply, a str or a dict, got {answer!r}")


def _dump(value: object) -> bytes:
    return json.dumps(value).encode()


def _pieces(request: Request, reply: Reply) -> list[bytes]:
    """The response, cut where a fault may cut it."""
    if reply.raw is not None:
        return _whole(reply.status, reply.headers, reply.raw)
    if reply.status >= 400:
        return _error(reply)
    words = sum(len(text.split()) for text in _texts(request.messages))
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
    return _whole(reply.status, reply.headers, _dump(body))


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
    lines = [b"data: %b\n\n" % data for data in [*map(_dump, events), b"[DONE]"]]
    fields = {"content-type": "text/event-stream", "transfer-encoding": "chunked", **reply.headers}
    chunks = [b"%x\r\n%b\r\n" % (len(line), line) for line in lines]
    return [_head(reply.status, fields), *chunks, b"0\r\n\r\n"]


def _error(reply: Reply) -> list[bytes]:
    kind = "invalid_request_error" if reply.status < 500 else "server_error"
    message = reply.content or responses.get(reply.status, "Unknown")
    error = {"message": message, "type": kind, "code": reply.code or _CODES.get(reply.status)}
    return _whole(reply.status, reply.headers, _dump({"error": error}))


def _whole(status: int, headers: Mapping[str, str], body: bytes) -> list[bytes]:
    middle = len(body) // 2
    fields = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    return [_head(status, fields), body[:middle], body[middle:]]


def _head(status: int, fields: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {responses.get(status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
