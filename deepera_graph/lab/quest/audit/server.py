"""The page on which raters label the pairs of an audit: served on this machine alone.

Its address holds a secret, so that no other page in the browser can read or post labels; requests
under another host name are refused, against DNS rebinding. Nothing is loaded from other hosts.

Source: https://owasp.org/www-community/attacks/DNS_Rebinding_Attack and OWASP's cheat sheet on
cross-site request forgery.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict
from functools import partial
from hmac import compare_digest
from importlib.resources import files
from secrets import token_urlsafe
from threading import Lock
from typing import TYPE_CHECKING, Any

from deepera_graph.errors import DeepEraError, InputError, SettingsError
from deepera_graph.lab.quest.audit.drawing import GRADES, Audit, describe_value
from deepera_graph.lab.quest.audit.labels import (
    FAILURES,
    LONGEST_NOTE,
    LabelBook,
    read_labels,
    read_rater,
)
from deepera_graph.packages import import_extra
from deepera_graph.web import (
    JSON,
    add_errors,
    describe_problem,
    is_own_page,
    names_this_machine,
    read_body,
    serve_app,
    to_json,
)

if TYPE_CHECKING:
    from fastapi import Response

HOST = "127.0.0.1"
_BLIND = "this page never shows the judge's grades"
_LARGEST = 32_768  # bytes of a request
_PAGE = files("deepera_graph.lab.quest.audit.page")
_FILES = {
    "": ("page.html", "text/html; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class AuditDesk:
    """What the page asks for: pairs, and the labels of raters, each opened when first named.

    A *blind* one never shows the judge's grades, not even after a label.
    """

    def __init__(self, audit: Audit, *, blind: bool = False) -> None:
        if not blind:
            audit.check_key("it can be labelled with --blind")
        self.audit = audit
        self.blind = blind
        self._books: dict[str, LabelBook] = {}
        self._open = ExitStack()
        self._lock = Lock()

    def close(self) -> None:
        """Close the labels of all raters."""
        with self._lock:
            self._books.clear()
            self._open.close()

    def describe(self) -> dict[str, Any]:
        """Return the pairs without grades, and who has labelled how many."""
        pairs = [
            {
                **asdict(one),
                "constraints": [
                    [name, describe_value(value)] for name, value in one.constraints.items()
                ],
            }
            for one in self.audit.pairs.values()
        ]
        return {
            "pairs": pairs,
            "grades": GRADES,
            "failures": FAILURES,
            "longest_note": LONGEST_NOTE,
            "blind": self.blind,
            "raters": self._count_labels(),
        }

    def _count_labels(self) -> dict[str, int]:
        try:
            found = read_labels(self.audit, {})
        except InputError:
            return {}
        return {
            rater: sum(one.label is not None for one in given.values())
            for rater, given in found.items()
        }

    def open_book(self, rater: str) -> LabelBook:
        """Return the labels of a rater."""
        name = read_rater(rater)
        with self._lock:
            if name not in self._books:
                self._books[name] = self._open.enter_context(LabelBook(self.audit, name))
            return self._books[name]

    def describe_rater(self, rater: str) -> dict[str, Any]:
        """Return what a rater has said, with the judge's grades that were shown."""
        book = self.open_book(rater)
        return {
            "rater": book.rater,
            "labels": {pair: self._describe(book, pair) for pair in book.labels},
        }

    def put(self, rater: str, pair: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Keep what a rater says of a pair."""
        book = self.open_book(rater)
        book.put(pair, given)
        return self._describe(book, pair)

    def show(self, rater: str, pair: str) -> dict[str, Any]:
        """Show the judge's grade of a pair that has its label."""
        if self.blind:
            raise SettingsError(_BLIND)
        book = self.open_book(rater)
        book.show(pair)
        return self._describe(book, pair)

    def show_all(self, rater: str) -> dict[str, Any]:
        """Show the judge's grades of all pairs to a rater who has labelled them all."""
        if self.blind:
            raise SettingsError(_BLIND)
        book = self.open_book(rater)
        if missing := [one for one in self.audit.pairs if book.of(one).label is None]:
            raise InputError(f"{len(missing)} pairs have no label yet, the first is {missing[0]}")
        for pair in self.audit.pairs:
            book.show(pair)
        return self.describe_rater(rater)

    def _describe(self, book: LabelBook, pair: str) -> dict[str, Any]:
        said = book.of(pair)
        plain: dict[str, Any] = asdict(said)
        if said.shown and not self.blind:
            plain["judge"] = asdict(self.audit.key[pair])
        return plain


def create_app(desk: AuditDesk, *, token: str) -> Any:
    """Return the FastAPI application; all its paths begin with the secret *token*."""
    # Raises `SettingsError` if the extra ``serve`` is not installed.
    fastapi = import_extra("fastapi", extra="serve", what="deepera-lab bench quest audit label")
    app = fastapi.FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    _guard(app, token)
    add_errors(app)
    _add_files(app)
    _add_calls(app, desk)
    return app


def _guard(app: Any, token: str) -> None:
    """Answer only who knows the token and names this host; say nothing else to others."""
    from fastapi import Request, Response  # noqa: PLC0415 - of an extra
    from fastapi.responses import RedirectResponse  # noqa: PLC0415

    async def guard(request: Request, call_next: Any) -> Response:
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        given = request.url.path.split("/")[1]
        if not names_this_machine(host) or not is_own_page(origin, host):
            answer = _to_response("forbidden", "only this machine is answered", 403)
        elif not compare_digest(given.encode(), token.encode()):
            answer = _to_response("not_found", "open the address that the command has written", 404)
        elif request.url.path == f"/{token}":
            answer = RedirectResponse(f"/{token}/")
        else:
            answer = await call_next(request)
        answer.headers.update(_HEADERS)
        return answer

    app.middleware("http")(guard)


def _to_response(kind: str, message: str, status: int) -> "Response":
    return _to_json(describe_problem(kind, message), status)


def _to_json(plain: Any, status: int = 200) -> "Response":
    from fastapi import Response  # noqa: PLC0415 - of an extra

    return Response(to_json(plain), status_code=status, media_type=JSON)


def _add_files(app: Any) -> None:
    from fastapi import Response  # noqa: PLC0415 - of an extra

    def add(path: str, name: str, kind: str) -> None:
        async def send() -> Response:
            return Response((_PAGE / name).read_bytes(), media_type=kind)

        app.add_api_route(f"/{{token}}/{path}", send, response_class=Response)

    for path, (name, kind) in _FILES.items():
        add(path, name, kind)


async def _read_body(request: Any) -> bytes:
    """Return the body of a request; nothing of one that no page of ours has sent."""
    is_json = request.headers.get("content-type", "").startswith("application/json")
    is_short = int(request.headers.get("content-length") or 0) <= _LARGEST
    body: bytes = await request.body() if is_json and is_short else b""
    return body


async def _answer(call: Callable[..., Any], body: bytes | None = None) -> "Response":
    """Return what a call gives, of the object in a body if there is one, or what is wrong."""
    from starlette.concurrency import run_in_threadpool  # noqa: PLC0415 - of an extra

    try:
        given = () if body is None else (read_body(body),)
        return _to_json(await run_in_threadpool(call, *given))
    except SettingsError as error:
        return _to_response("settings", str(error), 409)
    except DeepEraError as error:
        return _to_response("input", str(error), 422)
    except OSError as error:
        return _to_response("disk", f"not saved: {error.strerror or error}", 507)


def _add_calls(app: Any, desk: AuditDesk) -> None:
    from fastapi import Request, Response  # noqa: PLC0415 - of an extra

    async def audit() -> Response:
        return await _answer(desk.describe)

    async def labels(rater: str = "") -> Response:
        return await _answer(lambda: desk.describe_rater(rater))

    async def put(request: Request, pair: str, rater: str = "") -> Response:
        return await _answer(partial(desk.put, rater, pair), await _read_body(request))

    async def show(pair: str, rater: str = "") -> Response:
        return await _answer(lambda: desk.show(rater, pair))

    async def show_all(rater: str = "") -> Response:
        return await _answer(lambda: desk.show_all(rater))

    for method, path, call in (
        ("GET", "audit", audit),
        ("GET", "labels", labels),
        ("PUT", "labels/{pair}", put),
        ("POST", "labels/{pair}/judge", show),
        ("POST", "judge", show_all),
    ):
        app.add_api_route(f"/{{token}}/v1/{path}", call, methods=[method], response_class=Response)


def serve_audit(
    audit: Audit,  # what was drawn
    *,
    port: int = 0,  # 0 takes a free one
    blind: bool = False,  # never show the judge's grades
    on_ready: Callable[[str], None] = lambda address: None,  # is told the address, with its secret
) -> None:
    """Serve the page on this machine until the process is interrupted."""
    # Raises `SettingsError` if the extra ``serve`` is not installed, or the port is taken.
    token = token_urlsafe(24)
    desk = AuditDesk(audit, blind=blind)
    app = create_app(desk, token=token)
    with closing(desk), suppress(KeyboardInterrupt):  # which is how it is ended
        serve_app(
            app,
            HOST,
            port,
            what="deepera-lab bench quest audit label",
            on_start=lambda address: on_ready(f"{address}/{token}/"),
        )
