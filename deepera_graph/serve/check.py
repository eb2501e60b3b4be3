"""``POST /v1/check``: whether what a manuscript cites says what it is cited for."""

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from deepera_graph.agents.run import Event
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.evidence.check.graph import CheckRun, ManuscriptCheck
from deepera_graph.evidence.check.library import WorkLibrary
from deepera_graph.evidence.check.manuscript import (
    BIB_HINT,
    FORMS,
    Manuscript,
    name_bibliographies,
    read_manuscript,
)
from deepera_graph.evidence.check.references import BIBLIOGRAPHIES
from deepera_graph.evidence.check.report import CheckReport
from deepera_graph.passages import read_passages
from deepera_graph.serve.backing.judging import ServerJudges
from deepera_graph.serve.backing.stores import Sources
from deepera_graph.serve.config import RequestLimits
from deepera_graph.serve.evidence import stream_events
from deepera_graph.serve.page import name_file, without_folder, write_file
from deepera_graph.serve.reading import PlainRoute, unless_gone
from deepera_graph.serve.replies import EVENTS, RequestRefusedError, reply
from deepera_graph.serve.traffic import RequestNote, in_time, note_of


def _decode(value: Any) -> bytes:
    try:
        return b64decode(value, validate=True)
    except (ValueError, TypeError):
        raise ValueError("must be base64") from None


class GivenFile(BaseModel):
    """A file, as part of a request."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="Whose ending says what it is.")
    content: Annotated[bytes, BeforeValidator(_decode, json_schema_input_type=str)] = Field(
        description="In base64."
    )


class CheckRequest(BaseModel):
    """A manuscript, and where the works are that it cites."""

    model_config = ConfigDict(extra="forbid")

    manuscript: str | GivenFile = Field(
        description=f"Markdown with its references under a heading, or a file: {', '.join(FORMS)}."
    )
    references: GivenFile | None = Field(
        None, description=f"Its list of references: {', '.join(BIBLIOGRAPHIES)}."
    )
    passages: list[str | dict[str, Any]] | None = Field(
        None, description="What there is to read of the works: objects with text, title, metadata."
    )
    library: str | None = Field(None, description="Instead: a library of /v1/libraries.")
    source: str | None = Field(
        None,
        description="Services of /v1/sources with commas between them, or all, which are asked for "
        "works that are not there; without it nothing is sent anywhere.",
    )
    judge: str | None = Field(None, description="A judge of /v1/judges.")


class CheckReply(BaseModel):
    """A verdict on every pair of a sentence and a reference that it cites."""

    model_config = ConfigDict(extra="allow")

    manuscript: dict[str, Any] = Field(
        description="Title, claims and references, as they are read."
    )
    counts: dict[str, int] = Field(description="Of the pairs, by verdict.")
    pairs: list[dict[str, Any]] = Field(
        description="Each with claim, key, reference, source, link, read, verdict, score, quote, "
        "page, notes and other, the best other study where nothing supports the claim."
    )
    notes: list[str]
    usage: dict[str, int]
    judge: str
    request_id: str


def check_router(judging: ServerJudges, sources: Sources, limits: RequestLimits) -> APIRouter:
    """Return the path that manuscripts are checked on."""
    router = APIRouter(route_class=PlainRoute)

    @router.post(
        "/v1/check",
        response_model=CheckReply,
        summary="Whether the works that a manuscript cites say what they are cited for.",
        responses={200: {"content": {EVENTS: {}}}},
    )
    async def check(asked: CheckRequest, request: Request) -> Response:
        note = note_of(request)
        note.judge = judging.find(asked.judge)
        reranker = await asyncio.to_thread(judging.reranker, note.judge, content="passage")
        async with in_time(note):
            manuscript = await asyncio.to_thread(_read_manuscript, asked, limits)
            if manuscript.n_pairs > limits.documents:
                message = f"a request may have {limits.documents} pairs of claim and reference, got"
                raise RequestRefusedError(422, "too_many", f"{message} {manuscript.n_pairs}")
            works = await _find_works(asked, manuscript, sources, limits)
        note.n_passages = manuscript.n_pairs
        services = None if asked.source is None else sources.open_services(asked.source)
        checker = ManuscriptCheck(reranker, library=works, literature=services)

        def describe(report: CheckReport) -> dict[str, Any]:
            return {**report.to_dict(), "judge": note.judge, "request_id": note.id}

        if EVENTS in request.headers.get("accept", ""):
            return stream_events(note, _stream(judging, note, checker, manuscript), describe)
        checked = await unless_gone(request, _check(judging, note, checker, manuscript))
        return reply(describe(checked))

    return router


async def _check(
    judging: ServerJudges, note: RequestNote, checker: ManuscriptCheck, manuscript: Manuscript
) -> CheckReport:
    async with judging.turn(note):
        return await checker.acheck(manuscript)


async def _stream(
    judging: ServerJudges, note: RequestNote, checker: ManuscriptCheck, manuscript: Manuscript
) -> AsyncIterator[Event]:
    async with judging.turn(note):
        async for event in CheckRun(checker, manuscript).astream():
            yield event


def _read_manuscript(asked: CheckRequest, limits: RequestLimits) -> Manuscript:
    """Read a manuscript; of files that it names none is read but those that are given."""
    given = asked.manuscript
    if isinstance(given, str):
        name, content = "manuscript.md", given.encode("utf-8", "replace")
    else:
        name, content = name_file(given.name, FORMS), given.content
    with TemporaryDirectory(prefix="deepera-") as folder:
        path = write_file(folder, name, content, limits)
        listed = None
        if asked.references is not None:
            file = name_file(asked.references.name, BIBLIOGRAPHIES)
            listed = write_file(folder, f"references {file}", asked.references.content, limits)
        try:
            if listed is None and (named := name_bibliographies(path)):
                raise InputError(f"{name} names {', '.join(named):.80}: give it as references")
            read = read_manuscript(path, bibliography=listed)
        except (InputError, SettingsError) as error:
            message = without_folder(folder, str(error)).replace(
                BIB_HINT, "; give it as references"
            )
            raise RequestRefusedError(422, "input", message) from error
    return replace(read, path=Path(name))


async def _find_works(
    asked: CheckRequest, manuscript: Manuscript, sources: Sources, limits: RequestLimits
) -> WorkLibrary:
    if asked.passages is not None and asked.library is not None:
        raise RequestRefusedError(422, "input", "give passages or library, got both")
    if asked.library is not None:
        return await sources.find_works(asked.library, manuscript)
    if len(given := asked.passages or []) > limits.documents:
        message = f"a request may have {limits.documents} passages, got {len(given)}"
        raise RequestRefusedError(422, "too_many", message)
    return WorkLibrary(read_passages(given))
