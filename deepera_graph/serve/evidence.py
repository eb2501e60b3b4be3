"""``POST /v1/evidence``: the full result of one question, at once or event by event."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StrictFloat
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from deepera_graph.agents.run import Event
from deepera_graph.errors import DeepEraError
from deepera_graph.export import describe_result
from deepera_graph.passages import PassageLike, read_passages
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.serve.backing.judging import ServerJudges
from deepera_graph.serve.backing.stores import FoundPassages, Sources
from deepera_graph.serve.config import RequestLimits
from deepera_graph.serve.reading import PlainRoute, check_size, unless_gone
from deepera_graph.serve.replies import (
    EVENTS,
    RequestRefusedError,
    as_refused,
    reply,
    write_error,
    write_event,
)
from deepera_graph.serve.traffic import RequestNote, end_task, in_time, note_of

_PING = b": still at work\n\n"
_SECONDS_A_PING = 10.0
_NAMES = {"selected": "kept", "summarized": "summary", "answered": "answer"}
_PLACES = ("passages", "library", "source")
_OFFERED = 5  # names of libraries in a message


class EvidenceRequest(BaseModel):
    """A question, and the passages or the place where they are searched for."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(description="What is asked.")
    passages: list[str | dict[str, Any]] | None = Field(
        None, description="Texts, or objects: id, text, title, metadata, score."
    )
    library: str | None = Field(None, description="Instead: a library of /v1/libraries.")
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
        given: dict[str, Any] = {
            "top_n": self.n,
            "answer": self.answer,
            "threshold": self.threshold,
        }
        if self.summarize is not None:
            given["content"] = "both" if self.summarize else "passage"
        return {name: value for name, value in given.items() if value is not None}


class UnkeptPassage(BaseModel):
    """A passage that was dropped, or could not be judged, and why."""

    id: str
    rank: int
    score: float | None
    status: str
    reason: str


class EvidenceReply(BaseModel):
    """Everything that was found, as `deepera ask --format json` writes it."""

    model_config = ConfigDict(extra="allow")

    question: str
    intent: dict[str, Any]
    outcome: str = Field(description="ok, no_evidence, nothing_retrieved, degraded, budget_stop.")
    threshold: float
    ranking: list[dict[str, Any]] = Field(
        description="All passages that were judged, best first: id, score, kept, band, direction, "
        "quote, summary, reason, citation and more."
    )
    answer: dict[str, Any] | None
    direction_counts: dict[str, int]
    usage: dict[str, Any]
    seconds: dict[str, float]
    warnings: list[str]
    manifest: dict[str, Any]
    judge: str
    request_id: str
    kept: list[str] = Field(description="Ids of what was kept, best first.")
    dropped: list[UnkeptPassage]
    failed: list[UnkeptPassage]
    not_needed: list[str]


class JudgeInfo(BaseModel):
    """A judge that requests may name."""

    name: str
    default: bool
    in_process: bool = Field(description="Whether it asks no chat model.")
    threshold: float | None
    about: dict[str, Any]


class JudgesReply(BaseModel):
    """Who can judge, the configured judge first."""

    judges: list[JudgeInfo]


class LibrariesReply(BaseModel):
    """The libraries that can be searched: name, n_passages and more."""

    libraries: list[dict[str, Any]]


class SourceInfo(BaseModel):
    """A source of passages beside libraries."""

    name: str


class SourcesReply(BaseModel):
    """Other sources that can be searched."""

    sources: list[SourceInfo]


def evidence_router(judging: ServerJudges, sources: Sources, limits: RequestLimits) -> APIRouter:
    """Return the paths that questions are asked on, and what they may name."""
    router, answer = APIRouter(route_class=PlainRoute), partial(_answer, judging, sources, limits)

    @router.post(
        "/v1/evidence",
        response_model=EvidenceReply,
        summary="The evidence for a question among passages.",
        responses={200: {"content": {EVENTS: {}}}},
    )
    async def evidence(asked: EvidenceRequest, request: Request) -> Response:
        return await answer(asked, request)

    @router.get("/v1/judges", response_model=JudgesReply, summary="Who can judge.")
    async def judges() -> Response:
        return reply({"judges": await asyncio.to_thread(judging.describe)})

    @router.get(
        "/v1/libraries", response_model=LibrariesReply, summary="Libraries that can be searched."
    )
    async def libraries() -> Response:
        return reply({"libraries": await sources.list_libraries()})

    @router.get("/v1/collections", deprecated=True, summary="The old name of /v1/libraries.")
    async def collections(request: Request) -> Response:
        note_of(request).told = "/v1/collections is now /v1/libraries; the old name ends with 0.11"
        return reply({"collections": await sources.list_libraries()})

    @router.get(
        "/v1/sources", response_model=SourcesReply, summary="Other sources that can be searched."
    )
    async def list_sources() -> Response:
        return reply({"sources": [{"name": one} for one in sources.names]})

    return router


async def _answer(
    judging: ServerJudges,
    sources: Sources,
    limits: RequestLimits,
    asked: EvidenceRequest,
    request: Request,
) -> Response:
    """Answer at once, or with a stream of events if the client accepts that."""
    check_size(asked.question, (), limits)
    judge, settings = judging.find(asked.judge), asked.settings()
    reranker = await asyncio.to_thread(judging.reranker, judge, **settings)
    note = note_of(request)
    note.judge, note.question = judge, asked.question
    found = await unless_gone(request, _find(asked, note, sources, limits))
    note.n_passages = len(found.passages)
    if found.keep:
        reranker = await asyncio.to_thread(judging.reranker, judge, found.keep, **settings)
    if EVENTS in request.headers.get("accept", ""):
        events = judging.stream(note, reranker, found.passages)
        return stream_events(note, events, lambda one: describe_reply(found.complete(one), note))
    judged = await unless_gone(request, judging.rerank(note, reranker, found.passages))
    return reply(describe_reply(found.complete(judged), note))


async def _find(
    asked: EvidenceRequest, note: RequestNote, sources: Sources, limits: RequestLimits
) -> FoundPassages:
    """Return the passages of a request, or search for them."""
    given = [name for name in _PLACES if getattr(asked, name) is not None]
    if len(given) != 1:
        named = " and ".join(given) or "none"
        told = f"give passages, library or source, got {named}"
        libraries = [] if given else await sources.offer()
        if libraries:
            some = ", ".join(map(repr, libraries[:_OFFERED]))
            more = ", ..." if len(libraries) > _OFFERED else ""
            told += f"; the libraries here are {some}{more}"
        raise RequestRefusedError(422, "input", told)
    how = (asked.question, min(asked.k, limits.documents), asked.where)
    async with in_time(note):
        if asked.library is not None:
            return await sources.search_library(asked.library, *how)
        if asked.source is not None:
            return await sources.search_source(asked.source, *how)
    return FoundPassages(_check_passages(asked, limits))


def _check_passages(asked: EvidenceRequest, limits: RequestLimits) -> Sequence[PassageLike]:
    passages = asked.passages or []
    if asked.where is not None:
        raise RequestRefusedError(422, "input", "where goes with a library or a source")
    check_size(asked.question, [_text_of(one) for one in passages], limits)
    read_passages(passages)  # says what is wrong with one
    return passages


def _text_of(passage: str | dict[str, Any]) -> str:
    return passage if isinstance(passage, str) else str(passage.get("text") or "")


def stream_events(
    note: RequestNote, events: AsyncIterator[Event], describe_result: Callable[[Any], Any]
) -> Response:
    """Return events as they come, the result described; what goes wrong is the last one."""

    async def write() -> AsyncIterator[bytes]:
        try:
            async for event in _with_pings(events):
                if event is None:
                    yield _PING
                    continue
                name = str(event.pop("event"))
                plain = describe_result(event["result"]) if name == "result" else event
                yield write_event(_NAMES.get(name, name), plain)
        except DeepEraError as error:
            refused = as_refused(error)
            note.failure = refused.kind
            yield write_error(refused)

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(write(), media_type=EVENTS, headers=headers)


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
    return {name: getattr(passage, name) for name in UnkeptPassage.model_fields}


async def _with_pings(events: AsyncIterator[Event]) -> AsyncIterator[Event | None]:
    """Yield events, and None whenever none has come for a while, so that no proxy hangs up."""
    # All events are made in one task, as a limit on their time needs it; `EventSourceResponse` of
    # FastAPI and of sse-starlette cancels at every await instead (see `end_task`).
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
