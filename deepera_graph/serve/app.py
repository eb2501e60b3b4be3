"""The application: its paths, what they share, and how it is run.

| path | what |
|---|---|
| ``POST /v1/evidence`` | the full result of a question, or a stream of its events |
| ``GET /v1/judges``, ``/v1/libraries``, ``/v1/sources`` | what requests may name |
| ``POST /v1/check`` | verdicts on what a manuscript cites, or a stream of events |
| ``POST /v1/rerank``, ``/v2/rerank``, ``/rerank`` | what rerank clients send |
| ``GET /``, ``/page/...`` | the page for people |
| ``POST /v1/passages``, ``/v1/export``, ``/v1/table`` | a file as passages, a result otherwise |
| ``GET /info`` | what clients of text-embeddings-inference ask |
| ``GET /health``, ``/metrics``, ``/docs`` | whether it can answer, how it does, how it is asked |
| ``/papers/...`` | the base of papers, if there is one: `deepera_graph.papers.rest` |
"""

import asyncio
import logging
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from threading import Timer
from typing import TYPE_CHECKING, Any, Literal

from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse, PlainTextResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from deepera_graph import __version__
from deepera_graph.errors import DeepEraError
from deepera_graph.serve.backing.judging import ServerJudges
from deepera_graph.serve.backing.stores import Sources, StoredCollections
from deepera_graph.serve.check import check_router
from deepera_graph.serve.config import ServeConfig
from deepera_graph.serve.evidence import evidence_router
from deepera_graph.serve.metrics import FOLDER, Metrics
from deepera_graph.serve.page import page_router, read_files
from deepera_graph.serve.replies import (
    ErrorReply,
    RequestRefusedError,
    as_refused,
    reply,
    reply_error,
)
from deepera_graph.serve.rerank import rerank_router
from deepera_graph.serve.traffic import FOR_CLIENTS, Boundary, RequestThreads, crashed, note_of
from deepera_graph.web import describe_paths, end_quietly, run_server

if TYPE_CHECKING:
    from deepera_graph.papers.base import PaperBase

ABOUT = (
    "With keys, a request needs the header <code>Authorization: Bearer KEY</code>. With "
    "<code>Accept: text/event-stream</code>, <code>/v1/evidence</code> answers event by event. "
)
EXAMPLES: Mapping[str, Any] = {
    "/v1/evidence": {
        "question": "Does wax coating keep apples firm?",
        "passages": [
            "Wax-coated apples lost 6% of their firmness, uncoated ones 31% (p < 0.001).",
            "Whether wax keeps apples firm has been debated for decades.",
        ],
    },
    "/v1/rerank": {
        "query": "Does wax coating keep apples firm?",
        "documents": ["Wax-coated apples stayed firm (p < 0.001).", "Apples were waxed."],
        "top_n": 1,
    },
    "/rerank": {
        "query": "Does wax coating keep apples firm?",
        "texts": ["Wax-coated apples stayed firm (p < 0.001).", "Apples were waxed."],
    },
}
_PAPERS = "/papers"
_SECONDS_TO_LOAD = 5.0  # a judge that is still loading at the end is waited for as long
_KINDS = {404: "missing", 405: "method"}
_FORM = "%(asctime)s %(levelname)s %(name)s %(message)s"
_THREADS = "OMP_NUM_THREADS"
_SECONDS_LEFT = 5.0  # for threads, once all requests have ended


def create_app(config: ServeConfig | None = None, *, on_end: Callable[[], object] = int) -> ASGIApp:
    """Return the application, of the local judge if None; it is loaded once that is started."""
    # *on_end* is called when all requests have ended, as the last thing.
    config = config or ServeConfig()
    metrics = Metrics()
    judging = ServerJudges(config, metrics)
    papers = _open_papers(config)
    collections = None if config.collections is None else StoredCollections(config.collections)
    sources = Sources(collections, papers, config.literature)

    @asynccontextmanager
    async def live(_: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_default_executor(RequestThreads())
        loading = asyncio.create_task(asyncio.to_thread(judging.warm_up))
        try:
            yield
        finally:
            await asyncio.wait((loading,), timeout=_SECONDS_TO_LOAD)
            judging.close()
            sources.close()
            on_end()

    routers = (
        evidence_router(judging, sources, config.limits),
        rerank_router(judging, config.limits),
        check_router(judging, sources, config.limits),
        _state_router(judging, metrics),
        page_router(config.limits),
    )
    app = FastAPI(
        title="DeepEra",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=live,
        exception_handlers={DeepEraError: _tell, HTTPException: _tell, Exception: _tell_crash},
        responses={"default": {"model": ErrorReply, "description": "Why it is not answered."}},
        generate_unique_id_function=_name_operation,
    )
    for router in routers:
        app.include_router(router)
    for file in read_files():
        app.add_api_route(file.path, file.give, include_in_schema=False)
    below = {} if papers is None else {_PAPERS: _make_papers_app(papers)}
    for path, other in below.items():
        app.mount(path, other)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        schemas = {path: other.openapi() for path, other in {"": app, **below}.items()}
        return HTMLResponse(describe_paths(schemas, about=ABOUT, examples=EXAMPLES))

    known = {
        one.path
        for one in (*app.routes, *(one for each in routers for one in each.routes))
        if hasattr(one, "path")
    }
    name_path = partial(_name_path, known)
    return Boundary(app, config=config, metrics=metrics, name_path=name_path)


def _open_papers(config: ServeConfig) -> "PaperBase | None":
    if config.papers is None:
        return None
    from deepera_graph.papers import PaperBase  # noqa: PLC0415 - only where there is one

    return PaperBase.open(config.papers)


def _make_papers_app(papers: "PaperBase") -> FastAPI:
    from deepera_graph.papers.rest import create_app as create_papers  # noqa: PLC0415 - seldom

    made: FastAPI = create_papers(papers, alone=False)
    return made


class HealthReply(BaseModel):
    """Whether the judge is loaded."""

    status: Literal["ok", "loading", "failed"]
    judge: str
    version: str
    problem: str | None = Field(None, description="Why it cannot be loaded.")


def _state_router(judging: ServerJudges, metrics: Metrics) -> APIRouter:
    router = APIRouter()

    @router.head("/health", include_in_schema=False)
    @router.get(
        "/health",
        response_model=HealthReply,
        summary="Whether the judge is loaded: 200, else 503.",
    )
    async def health() -> Response:
        about = {"judge": judging.default, "version": __version__}
        if judging.is_ready:
            return reply({"status": "ok", **about})
        status = "failed" if judging.problem else "loading"
        more = {"problem": judging.problem} if judging.problem else {}
        return reply({"status": status, **about, **more}, 503)

    @router.get("/metrics", response_class=PlainTextResponse, summary="Counters for Prometheus.")
    async def show() -> Response:
        return metrics.show()

    return router


async def _tell(request: Request, error: Exception) -> Response:
    """Have every error told in one form."""
    if isinstance(error, HTTPException):
        status = error.status_code
        message = f"{request.method} {request.url.path!r:.80}: {error.detail}"
        refused = RequestRefusedError(status, _KINDS.get(status, "http"), message)
    else:
        refused = as_refused(error)  # type: ignore[arg-type]  # the only other one it is called for
    note_of(request.scope).failure = refused.kind
    return reply_error(refused, for_clients=request.url.path in FOR_CLIENTS)


async def _tell_crash(request: Request, error: Exception) -> Response:  # `Boundary` logs it
    return reply_error(crashed(note_of(request.scope)))


def _name_operation(route: APIRoute) -> str:
    [method] = route.methods or {"GET"}
    return f"{method}{route.path}".replace("/", "_").lower()


def _name_path(known: Collection[str], scope: Scope) -> str:
    """Return the path of a request as counters name it: as it was declared, if it was."""
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        return scope["path"] if scope["path"] in known else "other"
    root = scope.get("root_path", "")
    return f"{root}{path}" if root and not path.startswith(root) else str(path)


def run(config: ServeConfig, listening: socket.socket, *, grace: int, quiet: bool) -> None:
    """Answer until SIGTERM or Ctrl-C, and then for *grace* seconds at most what is in flight."""
    how = {
        "factory": True,
        "workers": config.workers,
        "log_level": None,  # as the configuration of the log says
        "log_config": _describe_log(logging.WARNING if quiet else logging.INFO),
        "timeout_graceful_shutdown": grace,
        "server_header": False,
        "lifespan": "on",
    }
    if config.workers == 1:
        end_quietly()
        run_server(partial(_make, config), listening, **how)
        return
    with tempfile.TemporaryDirectory(prefix="deepera-metrics-") as folder:
        os.environ[FOLDER] = folder
        os.environ.setdefault(_THREADS, str(max(1, (os.cpu_count() or 1) // config.workers)))
        run_server(partial(_make, config), listening, **how)


def _make(config: ServeConfig) -> Any:
    """Make the application in the process that runs it."""
    return create_app(config, on_end=_leave_soon)


def _leave_soon() -> None:
    """End the process, even if a judge goes on with what nobody waits for."""
    leaving = Timer(_SECONDS_LEFT, os._exit, (0,))
    leaving.daemon = True
    leaving.start()


def _describe_log(level: int) -> dict[str, Any]:
    """Return how is logged: one line a request, to stderr, without what it says."""
    handlers = {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["told"]}
    }
    own = {"handlers": ["stderr"], "level": level, "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": _FORM}},
        "filters": {"told": {"()": _Told}},
        "handlers": handlers,
        "loggers": {"deepera_graph.serve": own, "uvicorn": {**own, "level": "WARNING"}},
    }


class _Told(logging.Filter):
    """Leaves out the trace of a request that `Boundary` cut short, and has told of."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))
