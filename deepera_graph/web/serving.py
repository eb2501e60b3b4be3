"""Bodies, JSON and errors in one form, addresses that are listened at, and who may ask."""

import ipaddress
import json
import re
import socket
from typing import Any

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.text.files.jsonl import parse_object

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
    """Return a socket at an address; port 0 is any that is free.

    Raises:
        SettingsError: Nobody can listen there.
    """
    if not 0 <= port <= _LAST_PORT:
        raise SettingsError(f"port must be from 0 to {_LAST_PORT}, got {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=_WAITING)
    except OSError as error:
        said = str(error.strerror or error).partition(" (while")[0]  # the address, once more
        raise SettingsError(f"nobody can listen at {host}:{port}: {said}") from error


def describe_address(listening: socket.socket) -> str:
    """Return where is listened, as an address of HTTP has it."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def hide_login(url: str) -> str:
    """Return an address with stars in place of a login before its host, and of keys behind it."""
    return _KEY.sub(r"\1***", _LOGIN.sub("***@", url))


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
