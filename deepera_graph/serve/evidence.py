"""``POST /v1/evidence``: the full result of one question, at once or event by event."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from math import isfinite
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, ValidationError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from deepera_graph.agents.run import Event
from deepera_graph.errors import DeepEraError, InputError
from deepera_graph.export.tables import describe_result
from deepera_graph.passages import PassageLike, check_length, read_passages
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.serve.backing.judging import ServerJudges
from deepera_graph.serve.backing.stores import FoundPassages, Sources
from deepera_graph.serve.config import RequestLimits
from deepera_graph.serve.replies import (
    RequestRefusedError,
    as_refused,
    describe,
    name_problems,
    reply,
)
from deepera_graph.serve.traffic import GONE, RequestNote, end_task, in_time, note_of
from deepera_graph.web import read_body, to_json

ModelT = TypeVar("ModelT", bound=BaseModel)
DoneT = TypeVar("DoneT")
_MOST_TOLD = 3  # things that are wrong with a body
_DEEPEST = 100  # levels of lists and objects


async def read_plain(request: Request) -> dict[str, Any]:
    """Read a body; HTTP 400 if it is no JSON object, or one that nobody could write."""
    try:
        plain = read_body(await request.body())
        _check_values(plain)
    except InputError as error:
        raise RequestRefusedError(400, "input", str(error)) from error
    return plain


def _check_values(plain: dict[str, Any]) -> None:
    """Raise `InputError` for what no reply could repeat: 1e999, or data nested too deep to copy."""
    level: list[Any] = [plain]
    for _ in range(_DEEPEST):
        if any(isinstance(one, float) and not isfinite(one) for one in level):
            raise InputError("the body: a number in it is too large")
        level = [part for one in level for part in _parts_of(one)]
        if not level:
            return
    raise InputError(f"the body: it is nested more than {_DEEPEST} levels deep")


def _parts_of(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def read_form(plain: dict[str, Any], form: type[ModelT]) -> ModelT:
    """Read plain data in a form; what does not fit is HTTP 422."""
    try:
        return form.model_validate(plain)
    except ValidationError as error:
        problems = name_problems(error, form, "field")
        n_more = len(problems) - _MOST_TOLD
        told = [*problems[:_MOST_TOLD], *([f"and {n_more} more"] if n_more > 0 else [])]
        raise RequestRefusedError(422, "input", "; ".join(told)) from error


def check_size(question: str, texts: Sequence[str], limits: RequestLimits) -> None:
    """Raise `RequestRefusedError`, HTTP 422, if there is too much to read, or no question."""
    if not question.strip():
        raise RequestRefusedError(422, "input", "the question is empty")
    check_length(question)
    if len(texts) > limits.documents:
        message = f"a request may have {limits.documents} passages, got {len(texts)}"
        raise RequestRefusedError(422, "too_many", message)
    n = len(question) + sum(map(len, texts))
    if n > limits.characters:
        message = f"a request may have {limits.characters} characters, got {n}"
        raise RequestRefusedError(422, "too_many", message)


async def unless_gone(request: Request, work: Coroutine[Any, Any, DoneT]) -> DoneT:
    """Return what *work* gives; if the client goes away before, give it up."""
    doing: asyncio.Task[DoneT] = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_wait_until_gone(request))
    try:
        await asyncio.wait((doing, watching), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise RequestRefusedError(GONE, "gone", "the client went away")
        return doing.result()
    finally:
        await end_task(watching)
        await end_task(doing)


async def _wait_until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        continue


EVENTS = "text/event-stream"
_PING = b": still at work\n\n"
_SECONDS_A_PING = 10.0
_NAMES = {"selected": "kept", "summarized": "summary", "answered": "answer"}


class EvidenceRequest(BaseModel):
    """A question, and the passages or the place where they are searched for."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(description="What is asked.")
    passages: list[str | dict[str, Any]] | None = Field(
        None, description="Texts, or objects: id, text, title, metadata, score."
    )
    collection: str | None = Field(None, description="Instead: a collection of /v1/collections.")
    source: str | None = Field(
        None, description="Instead: sources of /v1/sources with commas between them, or all."
    )
    k: int = Field(30, ge=1, description="Most passages that are searched for.")
    where: dict[str, Any] | str | list[str] | None = Field(
        None,
        description='Conditions that must hold: "year>=2015", a list of such, or as an object '
        '{"year": {"gte": 2015}}. Sources are limited by year, date, journal and id.',
    )
    judge: str | None = Field(None, description="A judge of /v1/judges.")
    threshold: StrictFloat | None = Field(
        None, ge=0, le=1, description="Lowest score that is kept."
    )
    n: int | None = Field(None, ge=1, description="Most passages kept.")
    summarize: bool | None = Field(None, description="Whether kept passages are summarized.")
    answer: bool | None = Field(None, description="Whether an answer is drawn from them.")

    def settings(self) -> dict[str, Any]:
        """Return what of the settings is asked for, by name."""
        given: dict[str, Any] = {"top_n": self.n, "answer": self.answer}
        if self.summarize is not None:
            given["content"] = "both" if self.summarize else "passage"
        if self.threshold is not None:
            given["threshold"] = self.threshold
        return {name: value for name, value in given.items() if value is not None}


class Evidence:
    """Answers questions."""

    def __init__(self, judging: ServerJudges, sources: Sources, limits: RequestLimits) -> None:
        self._judging, self._sources, self._limits = judging, sources, limits

    async def answer(self, request: Request) -> Response:
        """Answer at once, or with a stream of events if the client accepts that."""
        asked = read_form(await read_plain(request), EvidenceRequest)
        check_size(asked.question, (), self._limits)
        judge = self._judging.find(asked.judge)
        settings = asked.settings()
        reranker = await asyncio.to_thread(self._judging.reranker, judge, **settings)
        note = note_of(request)
        note.judge, note.question = judge, asked.question
        found = await unless_gone(request, self._find(asked, note))
        note.n_passages = len(found.passages)
        if found.keep:
            keep = self._judging.reranker
            reranker = await asyncio.to_thread(keep, judge, found.keep, **settings)
        if EVENTS in request.headers.get("accept", ""):
            stream = self._stream(note, reranker, found)
            headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
            return StreamingResponse(stream, media_type=EVENTS, headers=headers)
        judged = await unless_gone(request, self._judging.rerank(note, reranker, found.passages))
        return reply(describe_reply(found.complete(judged), note))

    async def _find(self, asked: EvidenceRequest, note: RequestNote) -> FoundPassages:
        """Return the passages of a request, or search for them."""
        places = {"passages": asked.passages, "collection": asked.collection}
        places["source"] = asked.source
        given = [name for name, value in places.items() if value is not None]
        if len(given) != 1:
            named = " and ".join(given) or "none"
            raise RequestRefusedError(
                422, "input", f"give passages, collection or source, got {named}"
            )
        how = (asked.question, min(asked.k, self._limits.documents), asked.where)
        async with in_time(note):
            if asked.collection is not None:
                return await self._sources.search_collection(asked.collection, *how)
            if asked.source is not None:
                return await self._sources.search_source(asked.source, *how)
        return FoundPassages(self._check_passages(asked))

    def _check_passages(self, asked: EvidenceRequest) -> Sequence[PassageLike]:
        passages = asked.passages or []
        if asked.where is not None:
            raise RequestRefusedError(422, "input", "where goes with a collection or a source")
        check_size(asked.question, [_text_of(one) for one in passages], self._limits)
        read_passages(passages)  # says what is wrong with one
        return passages

    async def _stream(
        self, note: RequestNote, reranker: EvidenceReranker, found: FoundPassages
    ) -> AsyncIterator[bytes]:
        events = self._judging.stream(note, reranker, found.passages)
        try:
            async for event in _with_pings(events):
                if event is not None and event["event"] == "result":
                    plain = describe_reply(found.complete(event["result"]), note)
                    yield _write_event("result", plain)
                else:
                    yield _PING if event is None else _write(event)
        except DeepEraError as error:
            refused = as_refused(error)
            note.failure = refused.kind
            yield _write_event("error", describe(refused))


def describe_reply(result: RerankResult, note: RequestNote) -> dict[str, Any]:
    """Return a result as plain data: as commands write it, and what was dropped and why."""
    plain = describe_result(result, whole=True)
    return {
        **plain,
        "judge": note.judge,
        "request_id": note.id,
        "kept": [one.id for one in result.kept],
        "dropped": [_why(one) for one in result.dropped],
        "failed": [_why(one) for one in result.failed],
        "not_needed": [one.id for one in result.not_needed],
    }


def _why(passage: RankedPassage) -> dict[str, Any]:
    names = ("id", "rank", "score", "status", "reason")
    return {name: getattr(passage, name) for name in names}


def _write(event: Event) -> bytes:
    name = str(event["event"])
    plain = {key: value for key, value in event.items() if key != "event"}
    return _write_event(_NAMES.get(name, name), plain)


def _write_event(name: str, plain: Any) -> bytes:
    """Return an event as EventSource reads it; JSON has no line feed of its own.

    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
    """
    return b"event: " + name.encode() + b"\ndata: " + to_json(plain) + b"\n\n"


async def _with_pings(events: AsyncIterator[Event]) -> AsyncIterator[Event | None]:
    """Yield events, and None whenever none has come for a while, so that no proxy hangs up.

    All events are made in one task, as a limit on their time needs it.
    """
    made = asyncio.Queue[Event | None]()

    async def make() -> None:
        try:
            async for event in events:
                made.put_nowait(event)
        finally:
            made.put_nowait(None)

    making = asyncio.create_task(make())
    try:
        while True:
            try:
                event = await asyncio.wait_for(made.get(), _SECONDS_A_PING)
            except TimeoutError:
                yield None
                continue
            if event is None:
                break
            yield event
        await making  # raises what went wrong
    finally:
        await end_task(making)


def _text_of(passage: str | dict[str, Any]) -> str:
    return passage if isinstance(passage, str) else str(passage.get("text") or "")
