"""The files of the page, read once, with headers that let a browser load nothing else."""

import hashlib
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER: Final = "/page/"
_TYPES = {
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


def page_routes() -> list[Route]:
    """Return the routes of the page: ``/``, and its other files below ``/page/``."""
    routes = []
    for file in sorted(files("deepera_graph.serve.page").iterdir(), key=lambda one: one.name):
        suffix = file.name[file.name.rfind(".") :]
        if suffix in _TYPES:
            path = "/" if file.name == "index.html" else FOLDER + file.name
            give = _giving(file.read_bytes(), _TYPES[suffix])
            routes.append(Route(path, give, methods=["GET"], include_in_schema=False))
    return routes


def _giving(content: bytes, type: str) -> Callable[[Request], Awaitable[Response]]:
    headers = {**_HEADERS, "ETag": f'"{hashlib.sha256(content).hexdigest()[:20]}"'}

    async def give(request: Request) -> Response:
        known = request.headers.get("if-none-match", "")
        if headers["ETag"] in (one.strip().removeprefix("W/") for one in known.split(",")):
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=type, headers=headers)

    return give
