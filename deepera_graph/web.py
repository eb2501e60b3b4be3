"""What all HTTP servers of the package share; it loads no judge, no store and no framework."""

import ipaddress
import json
import re
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from html import escape
from types import MappingProxyType
from typing import Any

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.packages import check_extra, import_extra
from deepera_graph.text.jsonl import parse_object
from deepera_graph.text.plain import HIDDEN

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_MOST_READ = 4  # times the limit of a body that is read, so that its sender hears why it is refused


class Guard:
    """An ASGI application around one without keys; it answers what may not ask by itself.

    Args:
        app: The application.
        body_bytes: Largest body that it is given.
    """

    def __init__(self, app: Any, *, body_bytes: int) -> None:
        self._app, self._body_bytes = app, body_bytes

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        if stranger := find_stranger(scope, headers):
            await _refuse(send, 403, "forbidden", stranger)
            return
        try:
            body = await gather_body(receive, self._body_bytes)
        except ConnectionError:
            return
        if body is None:
            await _refuse(send, 413, "too_large", f"a body may have {self._body_bytes} bytes")
            return
        await self._app(scope, replay_body(body, receive), send)


async def _refuse(send: Send, status: int, kind: str, message: str) -> None:
    headers = [(b"content-type", JSON.encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    body = to_json(describe_problem(kind, message))
    await send({"type": "http.response.body", "body": body})


def find_stranger(scope: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """Return why a request is one that a page of another host has a browser send; else nothing."""
    # A browser says which page asks (`Origin`). A page whose name was made to mean this machine is
    # told by that name (`Host`), as it is none of a server that listens to this machine alone.
    # Every browser sends it; probes of HTTP/1.0 may not.
    # Source: https://developer.mozilla.org/en-US/docs/Web/HTTP/Headers/Origin, and Jackson et al.
    # (2007), Protecting browsers from DNS rebinding attacks, section 5.1.
    host, origin = headers.get("host", ""), headers.get("origin")
    if not is_own_page(origin, host):
        return f"pages of {origin!r:.80} may not ask"
    listens_at = (scope.get("server") or ("", 0))[0]
    if host and is_this_machine(listens_at) and not names_this_machine(host):
        return f"this server is not named {host!r:.80}"
    return ""


async def gather_body(receive: Receive, most: int) -> bytes | None:
    """Return a body, or None if it has more than *most* bytes; what is more is not held."""
    parts, n_read, is_more = [], 0, True
    while is_more and n_read <= _MOST_READ * most:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionAbortedError("the client went away")
        part: bytes = message.get("body", b"")
        n_read, is_more = n_read + len(part), message.get("more_body", False)
        if n_read <= most:
            parts.append(part)
    return b"".join(parts) if n_read <= most else None


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read, and then what is still to come."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark}table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}"
    "pre{overflow-x:auto;padding:.8rem;border:1px solid}h2{margin-top:2rem}"
)
_NO_EXAMPLES: Mapping[str, Any] = MappingProxyType({})


def describe_paths(
    # OpenAPI's, as plain data, by what stands before their paths; the first names all
    schemas: Mapping[str, Mapping[str, Any]],
    *,
    about: str = "",  # more that is said on top, as HTML
    examples: Mapping[str, Any] = _NO_EXAMPLES,  # path to a body that it can be sent
) -> str:
    """Return a page of HTML for what OpenAPI says."""
    parts = [
        part
        for root, schema in schemas.items()
        for path, how in schema["paths"].items()
        for part in _describe(f"{root}{path}", how, schema, examples)
    ]
    info = next(iter(schemas.values()))["info"]
    title = f"{info['title']} {info['version']}"
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1><p>For programs: <a href='openapi.json'>openapi.json</a>. "
        f"{about}An error is <code>{{&quot;error&quot;: {{&quot;kind&quot;, &quot;message&quot;}}}}"
        f"</code>.</p>{''.join(parts)}</body></html>\n"
    )


def _describe(
    path: str, how: Mapping[str, Any], whole: Mapping[str, Any], examples: Mapping[str, Any]
) -> Iterator[str]:
    for method, one in how.items():
        about = escape(one["summary"])
        yield f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{about}</p>"
        body = one.get("requestBody", {}).get("content", {}).get("application/json", {})
        fields = [pair for form in _forms_of(body.get("schema", {}), whole) for pair in form]
        rows = [_row(name, field) for name, field in dict(fields).items()]
        rows += [_row(given["name"], _as_field(given)) for given in one.get("parameters", ())]
        if rows:
            head = "<tr><th>field</th><th>default</th><th>what</th></tr>"
            yield f"<table>{head}{''.join(rows)}</table>"
        if path in examples:
            given = json.dumps(examples[path], indent=1, ensure_ascii=False)
            yield f"<pre>curl localhost:8000{escape(path)} -d '{escape(given)}'</pre>"


def _forms_of(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the fields of a schema, or of each that it may be."""
    if "$ref" in schema:
        schema = whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    yield schema.get("properties", {}).items()
    for one in schema.get("oneOf", ()):
        yield from _forms_of(one, whole)


def _as_field(parameter: Mapping[str, Any]) -> dict[str, Any]:
    """Return a parameter of a path or a query as fields of a body are described."""
    kind = parameter.get("schema", {}).get("type", "")
    said = filter(None, (kind, "required" if parameter.get("required") else ""))
    return {"description": parameter.get("description") or ", ".join(said)}


def _row(name: str, field: Mapping[str, Any]) -> str:
    default = json.dumps(field["default"]) if field.get("default") is not None else ""
    about = escape(field.get("description", ""))
    return (
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(default)}</td><td>{about}</td></tr>"
    )


JSON = "application/json"
_LAST_PORT = 65_535
_WAITING = 2048  # connections that are not accepted yet
_PORT = re.compile(r":\d*$")
_LOGIN = re.compile(r"(?<=//)[^/\s]*@|^[^/\s]*@")
_KEY = re.compile(r"(?i)([?&][^=&\s]*(?:key|token|secret|password|sig)[^=&\s]*=)[^&\s]*")


def read_body(body: bytes) -> dict[str, Any]:
    """Read a body; `InputError` if it is no JSON object."""
    try:
        return parse_object(body)
    except InputError as error:
        raise InputError(f"the body: {error}") from error


def to_json(plain: Any) -> bytes:
    """Return plain data as JSON in UTF-8; half of a surrogate pair becomes a question mark."""
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")


def describe_problem(kind: str, message: str) -> dict[str, Any]:
    """Return an error as plain data; *kind* is one word, for programs."""
    return {"error": {"kind": kind, "message": message}}


def add_errors(app: Any) -> None:
    """Have a path that is not there told as all errors are."""
    from fastapi import Request, Response  # noqa: PLC0415 - of an extra
    from starlette.exceptions import HTTPException  # noqa: PLC0415

    async def tell(request: Request, error: HTTPException) -> Response:
        message = f"{request.method} {request.url.path!r:.80}: {error.detail}"
        body = to_json(describe_problem("settings", message))
        return Response(body, status_code=error.status_code, media_type=JSON)

    app.add_exception_handler(HTTPException, tell)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket at an address; port 0 is any that is free."""
    if not 0 <= port <= _LAST_PORT:
        raise SettingsError(f"port must be from 0 to {_LAST_PORT}, got {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=_WAITING)
    except OSError as error:
        said = str(error.strerror or error).partition(" (while")[0]  # the address, once more
        raise SettingsError(f"cannot listen at {host}:{port}: {said}") from error


def serve_app(
    app: Any,  # the application
    host: str,  # address to listen at
    port: int,  # port, 0 for any that is free
    *,
    what: str,  # the command that needs the extra ``serve``, for the message where it is missing
    # called with the address once it is listened at
    on_start: Callable[[str], object] | None = None,
) -> None:
    """Answer for an ASGI application until the process is interrupted."""
    # Raises `KeyboardInterrupt` if that is how it ends; `SettingsError` if the extra is not
    # installed, or nobody can listen there.
    check_extra("uvicorn", extra="serve", what=what)
    with listen(host, port) as listening:
        if on_start is not None:
            on_start(f"http://{describe_address(listening)}")
        end_quietly()
        try:
            run_server(app, listening)
        except SystemExit as end:  # 0 after SIGTERM
            if end.code:
                raise


def end_quietly() -> None:
    """Have SIGTERM be the end, without an error: uvicorn raises it again once all is answered."""
    # A shell has what it starts with & ignore SIGINT; uvicorn ends by it all the same, so that it
    # is told as Ctrl-C is.
    if threading.current_thread() is threading.main_thread():
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))


def run_server(app: Any, listening: socket.socket, **config: Any) -> None:
    """Have uvicorn answer at a socket; by default it logs warnings alone."""
    uvicorn = import_extra("uvicorn", extra="serve")
    made = uvicorn.Config(app, **{"log_level": "warning", "access_log": False, **config})
    if made.workers > 1:
        uvicorn.supervisors.Multiprocess(made, sockets=[listening]).run()
    else:
        uvicorn.Server(made).run(sockets=[listening])


def describe_address(listening: socket.socket) -> str:
    """Return where is listened, as an address of HTTP has it."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def hide_login(url: str) -> str:
    """Return an address with stars in place of a login before its host, and of keys behind it."""
    return _KEY.sub(rf"\1{HIDDEN}", _LOGIN.sub(f"{HIDDEN}@", url))


def is_this_machine(host: str) -> bool:
    """Tell whether a name or an address means this machine and is reached from it alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def names_this_machine(host: str) -> bool:
    """Tell whether the header ``Host`` means this machine; its port does not matter."""
    return is_this_machine(_PORT.sub("", host))


def is_own_page(origin: str | None, host: str) -> bool:
    """Tell whether what asks is no page, or one of this server, by ``Origin`` and ``Host``."""
    return origin is None or origin.partition("://")[2] == host
