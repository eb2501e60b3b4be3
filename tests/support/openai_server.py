"""A scripted server of the OpenAI chat completions protocol, on a free port of this machine.

Use:
    with ChatServer(lambda request: {"score": 0.9}, latency=0.1) as server:
        model = ChatOpenAI(model="any", base_url=server.base_url, api_key="any")
"""

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from support.openai_wire import (
    Json,
    Reply,
    Request,
    content,
    dump,
    error_pieces,
    pieces,
    read_request,
    whole,
)

__all__ = ["ChatServer", "Reply", "Request"]

_MODELS = {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "tests"}]}
_PATIENCE = 20.0
_used_ports: set[int] = set()


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
        method, path, headers, body = await read_request(reader)
        if (method, path) == ("POST", "/v1/chat/completions"):
            try:
                parsed: Json = json.loads(body)
            except ValueError as error:
                writer.write(
                    b"".join(error_pieces(Reply(status=400, content=f"not JSON: {error}")))
                )
                return True
            return await self._chat(self._arrive(path, headers, parsed), reader, writer)
        if (method, path) == ("GET", "/v1/models"):
            writer.write(b"".join(whole(200, {}, dump(_MODELS))))
        else:
            writer.write(
                b"".join(error_pieces(Reply(status=404, content=f"no such route: {path}")))
            )
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
            await self._hold(reply.after)
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

    async def _hold(self, n_requests: int) -> None:
        """Wait until so many requests have arrived."""
        ends = time.monotonic() + _PATIENCE
        while len(self._requests) < n_requests:
            if time.monotonic() > ends:
                came = f"{len(self._requests)} of {n_requests} requests came together"
                self._errors.append(AssertionError(came))
                return
            await asyncio.sleep(0.001)

    def _follow(self, request: Request) -> tuple[Reply, list[bytes]]:
        """The scripted reply and its bytes, or what tells the client that the script failed."""
        try:
            answer = self._answer(request)
            reply = answer if isinstance(answer, Reply) else Reply(content=content(answer))
            return reply, pieces(request, reply)
        except BaseException as error:  # noqa: BLE001 -- kept for `__exit__`; `pytest.fail` too
            self._errors.append(error)
            reply = Reply(status=500, content=repr(error), headers={"x-should-retry": "false"})
            return reply, error_pieces(reply)


def _listen() -> socket.socket:
    """A port no earlier server of this process had: `ChatOpenAI` shares its clients by URL."""
    while (listener := socket.create_server(("127.0.0.1", 0))).getsockname()[1] in _used_ports:
        listener.close()
    _used_ports.add(listener.getsockname()[1])
    return listener


async def _outlasts(reader: asyncio.StreamReader, seconds: float | None) -> bool:
    """Whether the client waits out *seconds*; `None` waits until it leaves."""
    try:
        async with asyncio.timeout(seconds):
            await reader.read(1)  # a waiting client sends nothing: only its leaving ends this
    except TimeoutError:
        return True
    return False
