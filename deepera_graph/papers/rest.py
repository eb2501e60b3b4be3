"""A base over HTTP: the calls of `deepera_graph.papers.calls`, and the paths of a related client.

Every path takes GET with a query string, and POST with a JSON object. A path with an id may hold
it as it is or percent-encoded; ids hold slashes, as DOIs do.

Source:
    The second set of paths is what the client of https://github.com/pty12345/PaperScout asks for.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, unquote

from deepera_graph import web
from deepera_graph.errors import DeepEraError, SettingsError
from deepera_graph.packages import import_extra
from deepera_graph.papers.base import PaperBase
from deepera_graph.papers.calls import CALLS, PaperCallReply, answer_call, describe_error
from deepera_graph.papers.paper import century_of, days_of, read_date
from deepera_graph.papers.results import Neighbours, to_json

HOST, PORT = "127.0.0.1", 8080
_LARGEST = 1 << 20  # bytes of a body
_PAPERS = re.compile(r"/(?:v1/papers|paper)/(.*?)(?:/(references|citations))?", re.DOTALL)
_PATHS = {
    "/v1/search": "search",
    "/v1/title": "title",
    "/v1/papers/{id:path}": "get",  # and /references or /citations after it
    "/v1/get": "get",  # these three take any id, as an argument
    "/v1/references": "references",
    "/v1/citations": "citations",
    "/search": "search",
    "/query": "search",
    "/lookup": "title",
    "/paper/{id:path}": "get",
}
_NO_LETTER = re.compile(r"\W+")
_OTHER_NAMES = {"q": "query", "top_k": "k"}
_AND = re.compile(r"\s+(?:and|AND)\s+|\s*&&\s*")
_TERM = re.compile(r"""(id|date|year)\s*(<=|>=|==?|<|>)\s*(["']?)([\d.-]+)\3""")
_OF_ARXIV = re.compile(r"(\d{2})(0[1-9]|1[0-2])(?:\.(\d*))?")
_FIRST_OF_YEAR, _DAY = "-01-01", timedelta(days=1)
_FILTERS = 'id <= "2404", date < "2024-04-15" or year >= 2019, with "and" between several'


def create_app(base: PaperBase, *, alone: bool = True) -> Any:
    """Return the FastAPI application that answers for a base."""
    # *alone*, as a server of its own, it has ``/docs``, a page that describes it, and refuses
    # bodies over a mebibyte and pages of other hosts. What it is part of does so.
    fastapi = import_extra("fastapi", extra="serve", what="deepera papers serve")
    app = fastapi.FastAPI(title="DeepEra papers", version="1", redoc_url=None, docs_url=None)
    for path, name in _PATHS.items():
        _add_path(app, base, path, name)
    for path in ("/v1/health", "/health"):
        _add_health(app, base, path)
    if alone:

        @app.get("/docs", include_in_schema=False)  # type: ignore[untyped-decorator]
        async def docs() -> Any:
            page = web.describe_paths({"": app.openapi()})
            return fastapi.responses.HTMLResponse(page)

        app.add_middleware(web.Guard, body_bytes=_LARGEST)
    web.add_errors(app)
    return app


def _add_path(app: Any, base: PaperBase, path: str, name: str) -> None:
    from fastapi import Request, Response  # noqa: PLC0415 - of an extra
    from starlette.concurrency import run_in_threadpool  # noqa: PLC0415

    async def handle(request: Request) -> Response:
        try:
            is_other = not path.startswith("/v1")
            called, given = name, _read_arguments(request, await request.body(), is_other)
            if "{id:path}" in path:
                called, given["id"] = _read_path(request)
            answer = await run_in_threadpool(answer_call, base, called, given)
        except DeepEraError as error:
            answer = describe_error(error)
        return Response(answer.text, status_code=answer.code, media_type=web.JSON)

    for method in ("GET", "POST"):
        app.add_api_route(
            path,
            handle,
            methods=[method],
            response_model=CALLS[name].gives | Neighbours if "{id" in path else CALLS[name].gives,
            summary=CALLS[name].about,
            openapi_extra={"parameters": _describe_parameters(path, name)},
            operation_id=_NO_LETTER.sub("_", f"{method}{path}"),
        )


def _add_health(app: Any, base: PaperBase, path: str) -> None:
    from fastapi import Response  # noqa: PLC0415 - of an extra
    from starlette.concurrency import run_in_threadpool  # noqa: PLC0415

    async def health() -> Response:
        answer = await run_in_threadpool(_describe_health, base)
        return Response(answer.text, status_code=answer.code, media_type=web.JSON)

    app.add_api_route(
        path, health, response_class=Response, summary="Whether it can answer, and what it holds."
    )


def serve(
    base: PaperBase,
    *,
    host: str = HOST,
    port: int = PORT,
    on_start: Callable[[str], object] | None = None,
) -> None:
    """Answer for a base until the process is interrupted; pages of other hosts are refused."""
    # Port 0 is any that is free; *on_start* is called with the address once it is listened at.
    # Raises `SettingsError` if the extra ``serve`` is not installed, or nobody can listen there.
    with suppress(KeyboardInterrupt):  # which is how it is ended
        web.serve_app(create_app(base), host, port, what="deepera papers serve", on_start=on_start)


def _read_arguments(request: Any, body: bytes, is_other: bool) -> dict[str, Any]:
    if request.method == "POST":
        given = web.read_body(body or b"{}")
    else:
        query = request.scope["query_string"].decode("latin-1")
        given = {}
        for name, value in parse_qsl(query, keep_blank_values=True, errors="replace"):
            if name == "where":  # a condition each; lists within one have commas
                given[name] = [*given.get(name, ()), value]
            else:
                given[name] = f"{given[name]},{value}" if name in given else value
    if not is_other:
        return given
    named = {_OTHER_NAMES.get(name, name): value for name, value in given.items()}
    if asked := named.pop("filter", None):
        limits = read_filter(str(asked))
        if both := limits.keys() & named.keys() - {"undated"}:
            raise SettingsError(f"give filter or {', '.join(sorted(both))}, not both")
        named = {**limits, **named}
    return named


def read_filter(text: str) -> dict[str, Any]:
    """Return the limits of a scope that a filter on id, date or year stands for."""
    # Ids are those of arXiv, compared as texts: ``id <= "2404"`` ends with March 2024, as
    # ``2404.00001`` is more than ``2404``. What is not known to meet the filter does not pass:
    # papers of a vague date, too.
    spans = [_read_term(one.strip(), text) for one in _AND.split(text.strip())]
    first = [one for one, _ in spans if one]
    if not all(one.isoformat().endswith(_FIRST_OF_YEAR) for one in first):
        raise SettingsError(f"a filter begins with a whole year, got {text!r:.80}")
    last = [one for _, one in spans if one]
    limits: dict[str, Any] = {"undated": "drop"}
    if last:
        limits["as_of"] = min(last).isoformat()
    if first:
        limits["year_from"] = max(first).year
    return limits


def _read_term(term: str, text: str) -> tuple[date | None, date | None]:
    """Return the first and the last day that one comparison lets through; None is no limit."""
    found = _TERM.fullmatch(term)
    if not found:
        raise SettingsError(f"filter must be like {_FILTERS}, got {text!r:.80}")
    name, sign, _, value = found.groups()
    low, high = _read_bound(name, value, text)
    spans: dict[str, tuple[date | None, date | None]] = {
        "<=": (None, high),
        "<": (None, low - _DAY),
        ">=": (low, None),
        ">": (high + _DAY, None),
    }
    return spans.get(sign, (low, high))


def _read_bound(name: str, value: str, text: str) -> tuple[date, date]:
    """Return the days that a value stands for: before the first is less, after the last is more."""
    if name == "id":
        return _read_id(value, text)
    known = read_date(value)
    if not known or len(known) < len(value) or (name == "year" and len(known) != len("2024")):
        raise SettingsError(f"{name} must be like {_FILTERS}, got {value!r:.80} in {text!r:.80}")
    low, high = (datetime.strptime(str(one), "%Y%m%d").date() for one in days_of(known))
    return low, high


def _read_id(value: str, text: str) -> tuple[date, date]:
    found = _OF_ARXIV.fullmatch(value)
    rest = "" if found is None else found[3] or ""
    if found is None or rest.strip("9"):
        raise SettingsError(
            "a filter compares ids with months of arXiv, such as 2404 or 2404.99999, got "
            f"{text!r:.80}"
        )
    begin = date(century_of(int(found[1])) + int(found[1]), int(found[2]), 1)
    if not rest:  # no id of the month is as small as its name alone
        return begin, begin - _DAY
    after = (begin + timedelta(days=31)).replace(day=1)
    return after, after - _DAY


def _read_path(request: Any) -> tuple[str, str]:
    """Return the call and the id of a path, which is taken apart before it is decoded."""
    raw = request.scope.get("raw_path") or request.scope["path"].encode()
    path = raw.decode("latin-1").partition("?")[0]
    found = _PAPERS.fullmatch(path.removeprefix(request.scope.get("root_path", "")))
    id, call = (found[1], found[2]) if found else ("", None)
    return call or "get", unquote(id, errors="replace")


def _describe_health(base: PaperBase) -> PaperCallReply:
    try:
        about = base.describe()
    except DeepEraError as error:
        return describe_error(error)
    modes = ["sparse", "dense", "hybrid"] if base.has_vectors else ["sparse"]
    return PaperCallReply(
        200, to_json({"status": "ok", "modes": modes, **about, "names": base.venues()})
    )


def _describe_parameters(path: str, name: str) -> list[dict[str, Any]]:
    """Describe what a path takes as the tool of the same call does; one with an id is of three."""
    # Lists are texts with commas between names.
    names = ("get", "references") if (in_path := "{id:path}" in path) else (name,)
    told = (CALLS[each].arguments["properties"] for each in names)
    schemas = {one: schema for properties in told for one, schema in properties.items()}
    return [
        {
            "name": one,
            "in": (where := "path" if in_path and one == "id" else "query"),
            "required": where == "path" or one == CALLS[name].needs,
            "description": schema["description"],
            "schema": {key: value for key, value in schema.items() if key != "description"},
            **({"explode": False} if schema["type"] == "array" and one != "where" else {}),
        }
        for one, schema in schemas.items()
    ]
