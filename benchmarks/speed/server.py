"""A chat server of OpenAI's protocol on this machine that takes as long as a model would.

It runs in a process of its own, prints its address on the first line, and ends when its standard
input does. Every call becomes a line of the log file: what it was, when, how many tokens.
"""

import asyncio
import dataclasses
import json
import sys
import time
from collections.abc import Hashable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from latency import PrefixCache, Turnstile, draw
from oracle import Answer, Oracle, UnknownPromptError
from protocol import first_bytes, last_bytes, piece_bytes, usage_of
from scene import Scene
from texts import make_questions
from tokens import splitter
from wire import Reply, error_pieces, read_request, texts

Json = dict[str, Any]
_TOKENS_A_MESSAGE = 4  # role and delimiters, as in ChatML
_PIECES = 8  # of a streamed answer
_LEFT = 499  # the client closed the connection


@dataclasses.dataclass(slots=True)
class Call:
    """One line of the log; times in seconds of the monotonic clock, which processes share.

    Attributes:
        kind: What was asked for, e.g. the name of the schema.
        status: HTTP status; 499 when the client left.
        arrived: When the request was read.
        started: When one of the places was free.
        first: When the first token was due.
        ended: When the answer was sent.
        service: Seconds that the model takes for it, without waiting for a place.
        late: Seconds that the answer was sent after it was due: what this server adds.
        prompt: Tokens of the prompt.
        cached: Those of them found in the prefix cache.
        output: Tokens of the answer.
    """

    kind: str
    arrived: float
    status: int = 200
    started: float = 0.0
    first: float = 0.0
    ended: float = 0.0
    service: float = 0.0
    late: float = 0.0
    prompt: int = 0
    cached: int = 0
    output: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class _Asked:
    """A request and what will be answered; *drawn* is its lot among the stragglers."""

    call: Call
    body: Json
    answer: Answer
    tokens: Sequence[Hashable]
    drawn: float


class Server:
    """Serves chat completions; *log* gets a JSON line a call."""

    def __init__(self, scene: Scene, log: TextIO) -> None:
        self._scene, self._log = scene, log
        self._split = splitter(scene.tokens)
        questions = make_questions(scene.seed, scene.questions, scene.passages)
        self._oracle = Oracle(questions, self._split, scene.reason, scene.summary)
        self._cache = PrefixCache(scene.speed.block)
        self._turnstile = Turnstile(scene.speed.requests_per_minute)
        self._places = asyncio.Semaphore(scene.speed.at_once)
        self._question = ""
        self._writers: set[asyncio.StreamWriter] = set()

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until its client leaves."""
        self._writers.add(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._exchange(reader, writer):
                await writer.drain()
        self._writers.discard(writer)
        writer.close()

    async def close(self) -> None:
        """End all connections."""
        while len(asyncio.all_tasks()) > 1:
            for writer in self._writers:  # an aborted connection reads as left by its client
                writer.transport.abort()
            await asyncio.sleep(0)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        method, path, _, data = await read_request(reader)
        call = Call("", time.monotonic())
        if (method, path) != ("POST", "/v1/chat/completions"):
            self._refuse(call, writer, Reply(status=404, content=f"no such route: {path}"))
            return True
        wait = self._turnstile.wait(call.arrived)
        if wait:
            headers = {"retry-after": f"{wait:.3f}", "retry-after-ms": f"{wait * 1000:.0f}"}
            refusal = Reply(status=429, content="too many requests", headers=headers)
            self._refuse(call, writer, refusal)
            return True
        body: Json = json.loads(data)
        prompt = "\n".join(texts(body["messages"]))
        try:
            answer = self._oracle.answer(body, prompt)
        except UnknownPromptError as error:
            self._refuse(call, writer, Reply(status=400, content=str(error)))
            return True
        call.kind = answer.kind
        self._forget(prompt)
        tokens = self._tokens(body)
        call.prompt, call.output = len(tokens), len(self._split(answer.text))
        drawn = draw(self._scene.seed, prompt)
        return await self._serve(_Asked(call, body, answer, tokens, drawn), reader, writer)

    async def _serve(
        self, asked: _Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer when a model would; whether the client is still there."""
        call = asked.call
        is_free = not self._places.locked()
        async with self._places:
            call.started = call.arrived if is_free else time.monotonic()
            call.cached = self._cache.find(asked.tokens)
            first, call.service = self._scene.speed.seconds(
                call.prompt - call.cached, call.output, asked.drawn
            )
            call.first = call.started + first
            there = await _stays(reader, call.first)
            self._cache.add(asked.tokens)
            if there and asked.body.get("stream"):
                await self._stream(asked, writer)
            there = there and await _stays(reader, call.started + call.service)
        call.ended = time.monotonic()
        call.late = call.ended - call.started - call.service
        call.status = 200 if there else _LEFT
        self._note(call)
        if there:
            usage = usage_of(call.prompt, call.cached, call.output)
            writer.write(b"".join(last_bytes(asked.body, asked.answer, usage)))
        return there

    async def _stream(self, asked: _Asked, writer: asyncio.StreamWriter) -> None:
        """Send the answer piece by piece, as its tokens come."""
        call, body, answer = asked.call, asked.body, asked.answer
        writer.write(first_bytes(body))
        size = max(1, -(-len(answer.text) // _PIECES))
        pieces = [answer.text[at : at + size] for at in range(0, len(answer.text), size)]
        end = call.started + call.service
        for number, piece in enumerate(pieces, start=1):
            due = call.first + (end - call.first) * number / len(pieces)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            writer.write(piece_bytes(body, answer, piece, is_first=number == 1))

    def _tokens(self, body: Json) -> list[Hashable]:
        """Return the tokens of a prompt: tools or schema first, then the messages."""
        fixed = {name: body[name] for name in ("tools", "response_format") if name in body}
        found: list[Hashable] = list(self._split(json.dumps(fixed))) if fixed else []
        for message in body["messages"]:
            found += [message.get("role"), *[None] * (_TOKENS_A_MESSAGE - 1)]
            found += self._split("".join(texts([message])))
        return found

    def _forget(self, prompt: str) -> None:
        question = self._oracle.question_of(prompt)
        if self._scene.cold and question != self._question:
            self._cache.clear()
        self._question = question

    def _refuse(self, call: Call, writer: asyncio.StreamWriter, reply: Reply) -> None:
        call.status, call.ended = reply.status, time.monotonic()
        self._note(call)
        writer.write(b"".join(error_pieces(reply)))

    def _note(self, call: Call) -> None:
        self._log.write(json.dumps(dataclasses.asdict(call)) + "\n")
        self._log.flush()


async def serve(scene: Scene, log: TextIO) -> None:
    """Serve until standard input ends."""
    server = Server(scene, log)
    listening = await asyncio.start_server(server.converse, "127.0.0.1", 0, backlog=1024)
    port = listening.sockets[0].getsockname()[1]
    sys.stdout.write(f"http://127.0.0.1:{port}/v1\n")
    sys.stdout.flush()
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, sys.stdin.read)
    listening.close()
    await server.close()


async def _stays(reader: asyncio.StreamReader, until: float) -> bool:
    """Wait, and return whether the client did too."""
    try:
        async with asyncio.timeout(max(0.0, until - time.monotonic())):
            await reader.read(1)  # a waiting client sends nothing: only its leaving ends this
    except TimeoutError:
        return True
    return False


def main() -> None:
    """Serve the scene given as the first argument; the second is the path of the log."""
    scene, path = Scene.read(sys.argv[1]), Path(sys.argv[2])
    with path.open("w", encoding="utf-8") as log:
        asyncio.run(serve(scene, log))


if __name__ == "__main__":
    main()
