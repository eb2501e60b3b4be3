"""The application: its paths, and what they share, on one page.

| path | what |
|---|---|
| ``POST /v1/evidence`` | the full result of a question, or a stream of its events |
| ``GET /v1/judges``, ``/v1/collections``, ``/v1/sources`` | what requests may name |
| ``POST /v1/rerank``, ``/v2/rerank``, ``/rerank`` | what rerank clients send |
| ``GET /``, ``/page/...`` | the page for people |
| ``POST /v1/passages``, ``/v1/export``, ``/v1/table`` | a file as passages, a result otherwise |
| ``GET /info`` | what clients of text-embeddings-inference ask |
| ``GET /health``, ``/metrics``, ``/docs`` | whether it can answer, how it does, how it is asked |
| ``/papers/...`` | the base of papers, if there is one: `deepera_graph.papers.rest` |
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from deepera_graph import __version__
from deepera_graph.errors import DeepEraError
from deepera_graph.serve.backing.judging import ServerJudges
from deepera_graph.serve.backing.stores import Sources, StoredCollections
from deepera_graph.serve.config import ServeConfig
from deepera_graph.serve.evidence import Evidence, EvidenceRequest
from deepera_graph.serve.metrics import Metrics
from deepera_graph.serve.page.calls import ExportRequest, PageCalls, TableRequest
from deepera_graph.serve.page.files import read_files
from deepera_graph.serve.replies import RequestRefusedError, as_refused, reply, reply_error
from deepera_graph.serve.rerank import Rankings, RerankRequest
from deepera_graph.serve.traffic import FOR_CLIENTS, Boundary, RequestThreads, crashed, note_of
from deepera_graph.web import describe_paths

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


def create_app(config: ServeConfig | None = None, *, on_end: Callable[[], object] = int) -> ASGIApp:
    """Return the application; the judge is loaded once it is started.

    Args:
        config: What is served; the local judge if None.
        on_end: Called when all requests have ended, as the last thing.

    Raises:
        SettingsError: The judge or a setting cannot be used.
        StoreError: The base of papers cannot be opened.
    """
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

    app = FastAPI(
        title="DeepEra", version=__version__, docs_url=None, redoc_url=None, lifespan=live
    )
    _add_errors(app)
    _add_evidence(app, judging, sources, config)
    _add_rerank(app, judging, config)
    _add_state(app, judging, metrics)
    _add_page(app, config)
    _add_docs(app, _mount_papers(app, papers))
    known = frozenset(str(getattr(one, "path", "")) for one in app.routes)
    name_path = partial(_name_path, known)
    return Boundary(app, config=config, metrics=metrics, name_path=name_path)


def _open_papers(config: ServeConfig) -> "PaperBase | None":
    if config.papers is None:
        return None
    from deepera_graph.papers import PaperBase  # noqa: PLC0415 - only where there is one

    return PaperBase.open(config.papers)


def _add_evidence(
    app: FastAPI, judging: ServerJudges, sources: Sources, config: ServeConfig
) -> None:
    evidence = Evidence(judging, sources, config.limits)

    async def answer(request: Request) -> Response:
        return await evidence.answer(request)

    async def judges() -> Response:
        return reply({"judges": await asyncio.to_thread(judging.describe)})

    async def collections() -> Response:
        return reply({"collections": await sources.list_collections()})

    async def list_sources() -> Response:
        return reply({"sources": [{"name": one} for one in sources.names]})

    _add(
        app, "POST", "/v1/evidence", answer, "The evidence for a question among passages.",
        form=EvidenceRequest,
    )  # fmt: skip
    _add(app, "GET", "/v1/judges", judges, "Who can judge.")
    _add(app, "GET", "/v1/collections", collections, "Collections that can be searched.")
    _add(app, "GET", "/v1/sources", list_sources, "Other sources that can be searched.")


def _add_rerank(app: FastAPI, judging: ServerJudges, config: ServeConfig) -> None:
    rankings = Rankings(judging, config.limits)

    async def rerank(request: Request) -> Response:
        return await rankings.rerank(request)

    async def rerank_either(request: Request) -> Response:
        return await rankings.rerank_either(request)

    async def info(request: Request) -> Response:
        return await rankings.info(request)

    about = "Passages by how good they are as evidence, as Cohere and Jina are asked."
    _add(app, "POST", "/v1/rerank", rerank, about, form=RerankRequest)
    _add(app, "POST", "/v2/rerank", rerank, about, form=RerankRequest)
    either = "The same; or with `texts`, as text-embeddings-inference is asked."
    _add(app, "POST", "/rerank", rerank_either, either, form=RerankRequest)
    _add(app, "GET", "/info", info, "What is served, as text-embeddings-inference says it.")


def _add_state(app: FastAPI, judging: ServerJudges, metrics: Metrics) -> None:
    async def health() -> Response:
        about = {"judge": judging.default, "version": __version__}
        if judging.is_ready:
            return reply({"status": "ok", **about})
        status = "failed" if judging.problem else "loading"
        more = {"problem": judging.problem} if judging.problem else {}
        return reply({"status": status, **about, **more}, 503)

    async def show() -> Response:
        return metrics.show()

    _add(app, "GET", "/health", health, "Whether the judge is loaded: 200, else 503.")
    app.add_api_route("/health", health, methods=["HEAD"], include_in_schema=False)
    _add(app, "GET", "/metrics", show, "Counters for Prometheus.")


def _mount_papers(app: FastAPI, papers: "PaperBase | None") -> Mapping[str, FastAPI]:
    """Serve a base of papers below its path; return what is below which path."""
    if papers is None:
        return {}
    from deepera_graph.papers.rest import create_app as create_papers  # noqa: PLC0415 - seldom

    below = create_papers(papers, alone=False)
    app.mount(_PAPERS, below)
    return {_PAPERS: below}


def _add_docs(app: FastAPI, mounted: Mapping[str, FastAPI]) -> None:
    async def docs() -> Response:
        schema = app.openapi()
        more = {
            f"{path}{below}": how
            for path, other in mounted.items()
            for below, how in other.openapi()["paths"].items()
        }
        whole = {**schema, "paths": {**schema["paths"], **more}}
        return HTMLResponse(describe_paths(whole, about=ABOUT, examples=EXAMPLES))

    app.add_api_route("/docs", docs, include_in_schema=False)


def _add_page(app: FastAPI, config: ServeConfig) -> None:
    calls = PageCalls(config.limits)
    _add(app, "POST", "/v1/passages", calls.read_file, "The passages of a file: ?name=NAME.")
    about = "A result as CSV, BibTeX, RIS and more."
    _add(app, "POST", "/v1/export", calls.export, about, form=ExportRequest)
    about = "The studies of a result: a table with their map."
    _add(app, "POST", "/v1/table", calls.tabulate, about, form=TableRequest)
    for file in read_files():
        app.add_api_route(file.path, file.give, include_in_schema=False)


def _add(
    app: FastAPI, method: str, path: str, answer: Any, about: str, *, form: Any = None
) -> None:
    more: dict[str, Any] = {}
    if form is not None:
        schema = form.model_json_schema()
        content = {"application/json": {"schema": schema}}
        more = {"openapi_extra": {"requestBody": {"required": True, "content": content}}}
    name = f"{method}{path}".replace("/", "_").lower()
    app.add_api_route(
        path, answer, methods=[method], response_class=Response, summary=about,
        operation_id=name, **more,
    )  # fmt: skip


def _add_errors(app: FastAPI) -> None:
    """Have every error told in one form."""

    async def tell(request: Request, error: Exception) -> Response:
        refused = (
            as_refused(error) if isinstance(error, DeepEraError) else _as_refused(request, error)
        )
        note_of(request.scope).failure = refused.kind
        return reply_error(refused, for_clients=request.url.path in FOR_CLIENTS)

    async def tell_crash(request: Request, _: Exception) -> Response:  # `Boundary` logs it
        return reply_error(crashed(note_of(request.scope)))

    app.add_exception_handler(DeepEraError, tell)
    app.add_exception_handler(HTTPException, tell)
    app.add_exception_handler(Exception, tell_crash)


def _as_refused(request: Request, error: Any) -> RequestRefusedError:
    message = f"{request.method} {request.url.path!r:.80}: {error.detail}"
    return RequestRefusedError(error.status_code, _KINDS.get(error.status_code, "http"), message)


def _name_path(known: Collection[str], scope: Scope) -> str:
    """Return the path of a request as counters name it: as it was declared, if it was."""
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        return scope["path"] if scope["path"] in known else "other"
    root = scope.get("root_path", "")
    return f"{root}{path}" if root and not path.startswith(root) else str(path)
