"""What every request passes: its limits, its turn, its end, its count."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from traceback import extract_tb
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar
from uuid import uuid4

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deepera_graph.errors import DeepEraError
from deepera_graph.serve.config import ServeConfig, is_key
from deepera_graph.serve.metrics import Metrics
from deepera_graph.serve.replies import (
    EVENTS,
    RequestRefusedError,
    as_refused,
    reply_error,
    write_error,
)
from deepera_graph.web import find_stranger, gather_body, replay_body

REQUEST_ID = "x-request-id"
NOTE = "x-deepera-note"  # such as that a name is an old one
GONE = 499  # the client went away; nginx's number for it
_RETRY_AFTER = 1  # seconds
_HEALTH = "/health"
OPEN = frozenset({"/", "/check", _HEALTH, "/docs", "/openapi.json", "/favicon.ico"})  # need no key
OPEN_FOLDERS = ("/page/",)  # files of the page
FOR_CLIENTS = frozenset({"/rerank", "/v1/rerank", "/v2/rerank"})
_GIVEN_ID = re.compile(r"[\w.:/+=-]{1,128}", re.ASCII)
_logger = logging.getLogger("deepera_graph.serve")


@dataclass(slots=True)
class RequestNote:
    """What is known of a request, for the log; nothing of what it says."""

    id: str
    seconds: float  # that it may take
    ends: float  # when they are over, by the clock of the loop
    judge: str = ""
    n_passages: int | None = None
    question: str = ""  # is logged only if that is asked for
    status: int = 0
    failure: str = ""
    streams: bool = False  # events, of which the last has not been sent
    told: str = ""  # to the client, beside the reply


class Boundary:
    """An ASGI application around another one: nothing gets to that without passing here."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        config: ServeConfig,
        metrics: Metrics,
        name_path: Callable[[Scope], str],
    ) -> None:
        self._app, self._config, self._metrics = app, config, metrics
        self._name_path = name_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, headers = perf_counter(), Headers(scope=scope)
        seconds = self._config.limits.seconds
        ends = asyncio.get_running_loop().time() + seconds
        note = RequestNote(_find_id(headers), seconds, ends)
        scope.setdefault("state", {})["note"] = note
        begin_request()
        tell = _telling(send, note)
        try:
            await self._answer(scope, headers, receive, tell)
        except DeepEraError as error:
            await self._refuse(as_refused(error), scope, receive, tell, note)
        except asyncio.CancelledError:
            await self._refuse(_stopped(), scope, receive, tell, note)
            raise
        except Exception as error:  # noqa: BLE001 - the last one to hear of it
            _log_crash(note, error, with_message=self._config.log_content)
            await self._refuse(crashed(note), scope, receive, tell, note)
        finally:
            self._end(scope, note, perf_counter() - started)

    async def _answer(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        if self._config.keys:
            self._check_key(scope, headers)
        else:
            self._check_page(scope, headers)
        body = await self._read_body(headers, receive, note_of(scope))
        await self._app(scope, replay_body(body, receive), send)

    def _check_page(self, scope: Scope, headers: Headers) -> None:
        if stranger := find_stranger(scope, headers):
            raise RequestRefusedError(403, "forbidden", stranger)

    def _check_key(self, scope: Scope, headers: Headers) -> None:
        path = scope["path"]
        if path in OPEN or path.startswith(OPEN_FOLDERS):
            return
        scheme, _, token = headers.get("authorization", "").strip().partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        if not is_key(given, self._config.keys):
            what = "the key is not known" if given else "a key is needed"
            raise RequestRefusedError(401, "unauthorized", f"{what}: Authorization: Bearer KEY")

    async def _read_body(self, headers: Headers, receive: Receive, note: RequestNote) -> bytes:
        """Read all of a body, and refuse one that is too large or takes too long."""
        limits = self._config.limits
        declared = headers.get("content-length", "")
        too_large = RequestRefusedError(
            413, "too_large", f"a body may have {limits.body_bytes} bytes"
        )
        is_large = declared.isdecimal() and int(declared) > limits.body_bytes
        if is_large and "100-continue" in headers.get("expect", "").lower():
            raise too_large
        try:
            async with asyncio.timeout_at(note.ends):
                body = await gather_body(receive, limits.body_bytes)
        except ConnectionAbortedError as error:
            raise RequestRefusedError(GONE, "gone", str(error)) from error
        except TimeoutError:
            message = f"the body took longer than {note.seconds:g} seconds"
            raise RequestRefusedError(408, "timeout", message) from None
        if body is None:
            raise too_large
        return body

    async def _refuse(
        self,
        error: RequestRefusedError,
        scope: Scope,
        receive: Receive,
        send: Send,
        note: RequestNote,
    ) -> None:
        note.failure = error.kind
        if note.status:  # a reply has begun, and cannot be taken back
            if note.streams:
                await send({"type": "http.response.body", "body": write_error(error)})
            return
        note.status = error.status
        if error.status == GONE:
            return
        with suppress(OSError):
            for_clients = scope["path"] in FOR_CLIENTS
            await reply_error(error, for_clients=for_clients)(scope, receive, send)

    def _end(self, scope: Scope, note: RequestNote, seconds: float) -> None:
        path = self._name_path(scope)
        self._metrics.note_request(scope["method"], path, note.status, seconds)
        if note.failure:
            self._metrics.note_failure(note.failure)
        if path == _HEALTH and note.status < 400:
            return  # asked every few seconds by whoever watches the server
        more = {"judge": note.judge, "passages": note.n_passages, "failure": note.failure}
        if self._config.log_content:
            more["question"] = note.question and repr(note.question)
        told = "".join(
            f" {name}={value}" for name, value in more.items() if value not in ("", None)
        )
        line = f"{scope['method']} {path} {note.status} {seconds * 1000:.1f} ms id={note.id}{told}"
        _logger.info("%s", line)


def _find_id(headers: Headers) -> str:
    given = headers.get(REQUEST_ID, "")
    return given if _GIVEN_ID.fullmatch(given) else uuid4().hex


def _telling(send: Send, note: RequestNote) -> Send:
    async def tell(message: Message) -> None:
        if message["type"] == "http.response.start":
            note.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers[REQUEST_ID] = note.id
            if note.told:
                headers[NOTE] = note.told
            note.streams = headers.get("content-type", "").startswith(EVENTS)
        elif not message.get("more_body"):
            note.streams = False
        await send(message)

    return tell


def _log_crash(note: RequestNote, error: Exception, *, with_message: bool) -> None:
    """Log where an error comes from; what it says may hold a passage."""
    where = " < ".join(
        f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}"
        for frame in reversed(extract_tb(error.__traceback__)[-8:])
    )
    said = f": {error}" if with_message else ""
    _logger.error("%s id=%s%s at %s", type(error).__name__, note.id, said, where)


def crashed(note: RequestNote) -> RequestRefusedError:
    """Return what a client is told of an error that nobody expected."""
    message = f"the server failed; its log says more under the request id {note.id}"
    return RequestRefusedError(500, "internal", message)


def _stopped() -> RequestRefusedError:
    """Return what is told when a server that ends has waited long enough for a request."""
    message = "the server was stopped while it was at work on this; ask again"
    return RequestRefusedError(503, "stopped", message, retry_after=_RETRY_AFTER)


@asynccontextmanager
async def in_time(note: RequestNote) -> AsyncIterator[None]:
    """Give up the block with HTTP 504 when the time of a request is over."""
    try:
        async with asyncio.timeout_at(note.ends):
            yield
    except TimeoutError:
        message = f"the request took longer than {note.seconds:g} seconds"
        raise RequestRefusedError(504, "timeout", message) from None


def note_of(scope: Any) -> RequestNote:
    """Return what is noted of a request."""
    found: RequestNote = scope["state"]["note"]
    return found


class Gate:
    """At most *at_once* holders in one event loop, first come first served, and a bounded queue.

    A judge that runs in this process reads passages one by one in threads that all requests share;
    more requests at once than that only take turns, and all of them end later. So a holder whose
    time is over, or whose client is gone, keeps its place until its threads have ended, too.
    """

    def __init__(
        self, at_once: int, queue: int, on_change: Callable[[int, int], None] | None = None
    ) -> None:
        self._turns, self._most_waiting = asyncio.Semaphore(at_once), queue
        self._on_change, self._leaving = on_change, set[asyncio.Task[None]]()
        self.waiting = self.working = 0

    async def __aenter__(self) -> Self:
        """Wait for a turn; HTTP 503 if too many wait already."""
        if self._turns.locked() and self.waiting >= self._most_waiting:
            message = f"{self.waiting} requests wait already; try again later"
            raise RequestRefusedError(503, "busy", message, retry_after=_RETRY_AFTER)
        self._count(waiting=1)
        try:
            await self._turns.acquire()
        finally:
            self._count(waiting=-1)
        self._count(working=1)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not has_working_threads():
            self._leave()
            return
        leaving = asyncio.create_task(self._leave_later())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    async def _leave_later(self) -> None:
        try:
            await wait_for_threads()
        finally:
            self._leave()

    def _leave(self) -> None:
        self._count(working=-1)
        self._turns.release()

    def _count(self, *, waiting: int = 0, working: int = 0) -> None:
        self.waiting, self.working = self.waiting + waiting, self.working + working
        if self._on_change is not None:
            self._on_change(self.waiting, self.working)


P = ParamSpec("P")
T = TypeVar("T")
_of_request: ContextVar[set[Future[Any]] | None] = ContextVar("_of_request", default=None)


async def end_task(task: "asyncio.Future[Any]") -> None:
    """Cancel a task once, and wait until it has ended, whatever cancels who waits here."""
    # A scope of anyio, as Starlette and the SDK of MCP open one for each request, cancels at every
    # await. A task that is cancelled again while LangGraph stops its own tasks leaves them behind:
    # they would go on asking a model for a client that is gone.
    task.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.gather(task, return_exceptions=True)


class RequestThreads(ThreadPoolExecutor):
    """Threads of an event loop that know for which request they work.

    A thread cannot be cancelled: it works on when the task that waits for it has ended.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a thread do something for the request that runs."""
        working, doing = _of_request.get(), super().submit(fn, *args, **kwargs)
        if working is not None:
            working.add(doing)
            doing.add_done_callback(working.discard)
        return doing


def begin_request() -> None:
    """Note from here on what threads do for the request that runs."""
    _of_request.set(set())


def has_working_threads() -> bool:
    """Tell whether threads work for the request that runs."""
    return bool(_of_request.get())


async def wait_for_threads() -> None:
    """Wait until no thread works for the request that runs."""
    while left := list(_of_request.get() or ()):
        await asyncio.wait([asyncio.wrap_future(one) for one in left])
