"""The page at ``/``: a question, its passages, and what judges say of them, in a browser.

Its files are served as they are: HTML, one style sheet and ES modules, with no build step and
nothing from other hosts.
"""

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

FOLDER: Final = "/page/"
PAGES: Final = {"index.html": "/", "check.html": "/check"}
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
        type = _TYPES.get(file.name[file.name.rfind(".") :])
        if type is not None:
            path = PAGES.get(file.name, FOLDER + file.name)
            content = file.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
            found.append(PageFile(path, type, content, tag))
    return found
