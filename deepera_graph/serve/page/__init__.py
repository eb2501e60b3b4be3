"""The page at ``/``: a question, its passages, and what judges say of them, in a browser.

Its files are served as they are: HTML, one style sheet and ES modules, with no build step and
nothing from other hosts.
"""

import asyncio
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from io import BytesIO
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, ParamSpec, TypeVar, get_args
from zipfile import ZipFile

from fastapi import APIRouter, Query
from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.evidence.check.report import CheckFormat, CheckReport, export_check
from deepera_graph.evidence.table.cells import RULED
from deepera_graph.evidence.table.table import COLUMNS, EvidenceTable
from deepera_graph.evidence.table.writing import TableFormat, export_table, result_studies
from deepera_graph.export import ExportFormat, export_result
from deepera_graph.packages import call_foreign
from deepera_graph.pipeline.select import find_band
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.retrieval.documents import DOCX, FORMS, PDF
from deepera_graph.retrieval.sources import read_passages
from deepera_graph.serve.config import RequestLimits
from deepera_graph.serve.reading import PlainRoute
from deepera_graph.serve.replies import RequestRefusedError, reply
from deepera_graph.serve.traffic import Gate, in_time, note_of
from deepera_graph.settings.ranges import check_choice
from deepera_graph.text.records import LINES, REFERENCES, TABLES

FOLDER: Final = "/page/"
PAGES: Final = {"index.html": "/", "check.html": "/check"}
_MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
# Source: https://www.w3.org/TR/CSP3/; the last three are not covered by `default-src`.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # kept, and asked about each time: it is as old as the server
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page, and where it is served."""

    path: str
    type: str
    content: bytes
    tag: str

    async def give(self, request: Request) -> Response:
        """Return the file; HTTP 304 if the browser has it already."""
        headers = {**_HEADERS, "ETag": self.tag}
        known = request.headers.get("if-none-match", "").split(",")
        if self.tag in (one.strip().removeprefix("W/") for one in known):
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type=self.type, headers=headers)


def read_files() -> list[PageFile]:
    """Return the files of the pages: ``/``, ``/check``, and the others below ``/page/``."""
    found = []
    for file in sorted(files("deepera_graph.serve.page").iterdir(), key=lambda one: one.name):
        type = _MEDIA.get(file.name[file.name.rfind(".") :])
        if type is not None:
            path = PAGES.get(file.name, FOLDER + file.name)
            content = file.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
            found.append(PageFile(path, type, content, tag))
    return found


P = ParamSpec("P")
T = TypeVar("T")
KINDS = (*LINES, ".json", *TABLES, *REFERENCES, *FORMS)
_DOCUMENTS = (b"%PDF-", b"PK\x03\x04")  # begin so
_ODD_LETTER = re.compile(r"[^\w.\- ]")
_MOST_LETTERS, _MOST_BYTES = 80, 240  # of a file's name; file systems take 255 bytes
_MOST_UNPACKED = 4  # times the limit of a body
_TYPES: Mapping[str, str] = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "text": "text/plain; charset=utf-8",
    "markdown": "text/markdown; charset=utf-8",
    "html": "application/octet-stream",  # to be kept, never shown under this server's name
    "svg": "application/octet-stream",
    "bibtex": "application/x-bibtex; charset=utf-8",
    "ris": "application/x-research-info-systems; charset=utf-8",
}


class ExportRequest(BaseModel):
    """A result as ``/v1/evidence`` gave it, and what is to be made of it."""

    model_config = ConfigDict(extra="forbid")

    result: dict[str, Any] = Field(description="As /v1/evidence or /v1/check gave it.")
    format: str = Field(
        description=f"One of {', '.join(get_args(ExportFormat))}; of a check, one of "
        f"{', '.join(get_args(CheckFormat))}."
    )
    threshold: float | None = Field(
        None, ge=0, le=1, description="Lowest score that is kept; the result's own if None."
    )


class TableRequest(BaseModel):
    """A result as ``/v1/evidence`` gave it, whose studies are tabulated by rules."""

    model_config = ConfigDict(extra="forbid")

    result: dict[str, Any] = Field(description="As /v1/evidence gave it.")
    format: str = Field("html", description=f"One of {', '.join(get_args(TableFormat))}.")
    columns: list[str] = Field([*COLUMNS], description=f"Of {', '.join(RULED)}.")
    threshold: float | None = Field(
        None, ge=0, le=1, description="Lowest score that is kept; the result's own if None."
    )


class PassagesReply(BaseModel):
    """The passages of a file."""

    passages: list[dict[str, Any]] = Field(description="As /v1/evidence takes them.")
    skipped: list[str] = Field(description="What was left out of the file, and why.")


def page_router(limits: RequestLimits) -> APIRouter:
    """Return the paths that the page asks on."""
    router, gate = APIRouter(route_class=PlainRoute), Gate(limits.at_once, limits.queue)

    async def work(request: Request, do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with in_time(note_of(request)), gate:
            return await asyncio.to_thread(do, *args, **kwargs)

    @router.post(
        "/v1/passages",
        response_model=PassagesReply,
        summary="The passages of a file: ?name=NAME.",
        openapi_extra={
            "requestBody": {"required": True, "content": {"application/octet-stream": {}}}
        },
    )
    async def read_file(
        request: Request, name: Annotated[str, Query(description="Of the file.")] = ""
    ) -> Response:
        return reply(await work(request, _read_file, name, await request.body(), limits))

    @router.post(
        "/v1/export", response_class=Response, summary="A result as CSV, BibTeX, RIS and more."
    )
    async def export(asked: ExportRequest, request: Request) -> Response:
        return await work(request, _export, asked)

    @router.post(
        "/v1/table",
        response_class=Response,
        summary="The studies of a result: a table with their map.",
    )
    async def tabulate(asked: TableRequest, request: Request) -> Response:
        return await work(request, _tabulate, asked)

    return router


def name_file(name: str, kinds: Sequence[str]) -> str:
    """Return a file's name as one of this machine may have it; HTTP 422 for another kind."""
    base = name.replace("\\", "/").rpartition("/")[2]
    cut = _ODD_LETTER.sub("_", base)[-_MOST_LETTERS:].encode()[-_MOST_BYTES:]
    plain = cut.decode(errors="ignore").lstrip(". ")
    if not plain.lower().endswith(tuple(kinds)):
        raise RequestRefusedError(
            422, "input", f"a file must be one of {', '.join(kinds)}, got {name!r:.80}"
        )
    return plain


def write_file(folder: str, name: str, content: bytes, limits: RequestLimits) -> Path:
    """Write a file to be read; HTTP 413 for one that unpacks to far more than a body may have."""
    n_bytes, most = 0, _MOST_UNPACKED * limits.body_bytes
    with suppress(InputError):  # no archive, or a broken one, as its reader will say
        n_bytes = call_foreign(name, partial(_measure_archive, content), error=InputError)
    if n_bytes > most:
        raise RequestRefusedError(413, "too_large", f"{name} unpacks to more than {most} bytes")
    path = Path(folder, name)
    path.write_bytes(content)
    return path


def _measure_archive(content: bytes) -> int:
    with ZipFile(BytesIO(content)) as archive:
        return sum(one.file_size for one in archive.infolist())


def _read_file(name: str, content: bytes, limits: RequestLimits) -> dict[str, Any]:
    """Return the passages of a file, and what was left out of it and why."""
    plain = name_file(name, KINDS)
    if content.lstrip().startswith(_DOCUMENTS) and not plain.lower().endswith((PDF, DOCX)):
        message = f"{plain} is a document: name it {PDF} or {DOCX}, as it is"
        raise RequestRefusedError(422, "input", message)
    skipped: list[str] = []
    with TemporaryDirectory(prefix="deepera-") as folder:
        path = write_file(folder, plain, content, limits)
        try:
            documents = read_passages(path, on_skip=lambda one: skipped.append(str(one)))
            found = list(islice(documents, limits.documents + 1))
        except (InputError, SettingsError) as error:
            raise RequestRefusedError(422, "input", without_folder(folder, str(error))) from error
    if len(found) > limits.documents:
        message = f"{plain} has more than the {limits.documents} passages that a request may have"
        raise RequestRefusedError(422, "too_many", message)
    if not found:
        why = without_folder(folder, skipped[0]) if skipped else f"{plain} has no passage"
        raise RequestRefusedError(422, "input", why)
    passages = [_to_plain(one, folder, plain) for one in found]
    return {"passages": passages, "skipped": [without_folder(folder, one) for one in skipped]}


def _to_plain(passage: Document, folder: str, name: str) -> dict[str, Any]:
    """Return a passage as ``/v1/evidence`` takes it, without the folder that it was read in."""
    metadata = {**passage.metadata}
    if str(metadata.get("source", "")).startswith(folder):
        metadata["source"] = name
    id = without_folder(folder, str(passage.id))
    return {"id": id, "text": passage.page_content, "metadata": metadata}


def without_folder(folder: str, text: str) -> str:
    """Return what is said of files without the folder that they were read in."""
    return text.replace(f"{folder}/", "").replace(f"{folder}\\", "")


def _export(asked: ExportRequest) -> Response:
    if "pairs" in asked.result:
        return _export_check(asked)
    result, format = _read_result(asked), asked.format
    studies = result_studies(result) if format == "html" else ""
    return _give(export_result(result, format, studies=studies), format)  # type: ignore[arg-type]  # checks it


def _export_check(asked: ExportRequest) -> Response:
    if asked.threshold is not None:
        raise RequestRefusedError(422, "input", "threshold goes with a result of /v1/evidence")
    check_choice("format", asked.format, get_args(CheckFormat))
    report = _read_plain(CheckReport, asked.result, "/v1/check")
    return _give(export_check(report, asked.format), asked.format)  # type: ignore[arg-type]  # checks it


def _tabulate(asked: TableRequest) -> Response:
    check_choice("format", asked.format, get_args(TableFormat))
    table, format = EvidenceTable.of_result(_read_result(asked), asked.columns), asked.format
    return _give(export_table(table, format), format)  # type: ignore[arg-type]  # checks it


def _give(text: str, format: str) -> Response:
    return Response(text.encode("utf-8", "replace"), media_type=_TYPES[format])


def _read_result(asked: ExportRequest | TableRequest) -> RerankResult:
    """Return the result, with what is kept told anew by a threshold."""
    result = _read_plain(RerankResult, asked.result, "/v1/evidence")
    return result if asked.threshold is None else draw_line(result, asked.threshold)


def _read_plain(kind: Any, plain: Mapping[str, Any], path: str) -> Any:
    try:
        return kind.from_dict(plain)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"result is none of {path}: {type(error).__name__}: {error}"
        raise RequestRefusedError(422, "input", f"{message:.200}") from error


def draw_line(result: RerankResult, threshold: float) -> RerankResult:
    """Return a result with another threshold; nobody is asked again."""
    # What was held back although its score reached the old one, for want of a quote, stays out, and
    # no more are kept than the setting `top_n` of the run says. ``verdicts.js`` does the same.
    if threshold == result.threshold:
        return result
    most = result.manifest.get("settings", {}).get("top_n") or len(result.passages)
    settled = len(result.kept) < most and result.fallback is None
    passing = [
        one.id
        for one in result.passages
        if one.score is not None
        and one.score >= threshold
        and (one.kept or not settled or one.score < result.threshold)
    ]
    kept = set(passing[:most])
    is_other = result.outcome not in ("ok", "no_evidence")
    outcome = result.outcome if is_other else "ok" if kept else "no_evidence"
    passages = tuple(_set_kept(one, one.id in kept, result) for one in result.passages)
    return replace(result, passages=passages, threshold=threshold, fallback=None, outcome=outcome)


def _set_kept(passage: RankedPassage, kept: bool, result: RerankResult) -> RankedPassage:
    score = passage.score if kept else None
    band = None if score is None else find_band(score, result.evidence_point, result.missing_words)
    return replace(passage, kept=kept, band=band)
