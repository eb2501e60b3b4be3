"""What a server lets through: pages of its own, and bodies of a size that it can hold."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from deepera_graph.web.serving import (
    JSON,
    describe_problem,
    is_own_page,
    is_this_machine,
    names_this_machine,
    to_json,
)

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
    """Return why a request is one that a page of another host has a browser send; else nothing.

    A browser says which page asks (`Origin`). A page whose name was made to mean this machine
    is told by that name (`Host`), as it is none of a server that listens to this machine alone.
    Every browser sends it; probes of HTTP/1.0 may not.

    Source:
        https://developer.mozilla.org/en-US/docs/Web/HTTP/Headers/Origin, and Jackson et al.
        (2007), Protecting browsers from DNS rebinding attacks, section 5.1.
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    if not is_own_page(origin, host):
        return f"pages of {origin!r:.80} may not ask"
    listens_at = (scope.get("server") or ("", 0))[0]
    if host and is_this_machine(listens_at) and not names_this_machine(host):
        return f"this server is not named {host!r:.80}"
    return ""


async def gather_body(receive: Receive, most: int) -> bytes | None:
    """Return a body, or None if it has more than *most* bytes; what is more is not held.

    Raises:
        ConnectionAbortedError: The client went away.
    """
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
