"""The address of a model's server: whether it answers, and what to do where it does not."""

import json
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from openai import DefaultHttpxClient

from deepera_graph.doctor.checks import Finding

REFUSED = frozenset({401, 403})
_ADDRESS = "address"
_MOST_BYTES = 4_000_000
_CHAT = "/chat/completions"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """What listing the models of a server gave: their names, and the HTTP status of its answer."""

    finding: Finding
    models: tuple[str, ...] = ()
    status: int | None = None


def check_address(base_url: str, key: str, *, seconds: float) -> ServerAddress:
    """Ask a server for its models; if that fails over HTTP, also where its routes mostly are."""
    seen = _list_models(base_url, key, seconds=seconds)
    better = _guess_address(base_url)
    if seen.status is None or seen.finding.status == "ok" or better == base_url.removesuffix("/"):
        return seen
    if _list_models(better, key, seconds=seconds).models:
        advice = f"use --base-url {_show_url(better)}, which does speak the protocol"
        return ServerAddress(
            Finding(_ADDRESS, "fail", seen.finding.found, advice), status=seen.status
        )
    return seen


def _guess_address(base_url: str) -> str:
    """Return the address without the route of the chat, or with ``/v1`` at its end."""
    bare = base_url.rstrip("/")
    if bare.endswith(_CHAT):
        return bare.removesuffix(_CHAT)
    return bare if bare.endswith("/v1") else f"{bare}/v1"


def _list_models(base_url: str, key: str, *, seconds: float) -> ServerAddress:
    try:
        return _read(base_url, *_get(f"{base_url.removesuffix('/')}/models", key, seconds=seconds))
    except Exception as error:  # noqa: BLE001 - the client library in use has types of its own
        return ServerAddress(Finding(_ADDRESS, "fail", *explain(error, base_url, seconds)))


def _get(url: str, key: str, *, seconds: float) -> tuple[Any, bytes]:
    headers = {"Authorization": f"Bearer {key}"}
    deadline = time.monotonic() + seconds
    with (
        DefaultHttpxClient(
            timeout=seconds, follow_redirects=False
        ) as client,  # proxies and certificates as in calls
        client.stream("GET", url, headers=headers) as answer,
    ):
        body = b""
        for piece in answer.iter_bytes():
            body += piece
            if len(body) > _MOST_BYTES:
                break
            if time.monotonic() > deadline:
                raise TimeoutError
    return answer, body


def _read(base_url: str, answer: Any, body: bytes) -> ServerAddress:
    where, status = _show_url(base_url), answer.status_code
    models = _read_names(body) if status == HTTPStatus.OK else None
    if models is not None:
        proxy = proxy_for(base_url)
        through = f" through the proxy {proxy}" if proxy else ""
        found = f"{where} answers{through}, and lists {len(models)} model(s)"
        return ServerAddress(Finding(_ADDRESS, "ok", found), models, status)
    if status in REFUSED:
        found = f"{where} answers, and refuses the key (HTTP {status})"
        return ServerAddress(Finding(_ADDRESS, "ok", found), status=status)
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if kind == "text/html" or body.lstrip()[:1] == b"<":
        found = f"{where} answers with a web page (HTTP {status}), not with OpenAI's protocol"
        advice = "the address of such a server mostly ends in /v1; or this is some other service"
        return ServerAddress(Finding(_ADDRESS, "fail", found, advice), status=status)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        found, advice = f"{where} answers HTTP {status}", "look into the log of the server"
    else:
        found = f"{where} answers, but has no list of models (HTTP {status})"
        advice = "if asking the model fails too, correct the address: most end in /v1"
    return ServerAddress(Finding(_ADDRESS, "warn", found, advice), status=status)


def _read_names(body: bytes) -> tuple[str, ...] | None:
    """Return the names in a list of models; None if it is no such list."""
    try:
        return tuple(str(one["id"]) for one in json.loads(body)["data"])
    except (ValueError, KeyError, TypeError):
        return None


def explain(error: BaseException, url: str, timeout: float) -> tuple[str, str]:
    """Return what went wrong with a connection, and what to do."""
    host, proxy = _show_host(url), proxy_for(url)
    found, advice = f"{type(error).__name__}: {error}", "see whether the server runs"
    for cause in _causes(error):
        kinds = {kind.__name__ for kind in type(cause).__mro__}  # those of two client libraries
        known = next((one for one in _TROUBLES if one[0] in kinds), None)
        if known is not None and not isinstance(cause, ssl.SSLWantReadError):  # that one waited
            values = {"host": host, "near": proxy or host, "timeout": timeout}
            found, advice = known[1].format(cause=cause, **values), known[2]
            break
    if not proxy:
        return found, advice
    parts = urlsplit(url)
    return (
        f"{found} (the proxy of {parts.scheme} is {proxy})",
        f"{advice}; if it needs no proxy, export NO_PROXY={parts.hostname}",
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield what lies deepest first: it says most."""
    if error is None:
        return
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _causes(part)
    yield from _causes(error.__cause__ or error.__context__)
    yield error


def proxy_for(url: str) -> str:
    """Return the host of the proxy that requests to *url* go through; empty if none."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy or proxy_bypass(parts.hostname or ""):
        return ""
    return _show_host(proxy if "//" in proxy else f"//{proxy}")


def _show_host(url: str) -> str:
    """Return host and port, without a user name and password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def _show_url(url: str) -> str:
    """Return an address without user name, password and query, all of which may hold a key."""
    return urlsplit(url)._replace(netloc=_show_host(url), query="", fragment="").geturl()


_SILENT = "{host} did not answer within {timeout:g} s"
_WAIT = "see whether it hangs or still loads its model; --timeout gives it longer"
_NO_URL, _WRITE_URL = "no address: {cause}", "write it as http://host:port/v1"
_TROUBLES = (  # the name of an error, what was found, what to do
    (
        "gaierror",
        "the name in {near} does not resolve",
        "correct the address; is this machine online?",
    ),
    (
        "SSLCertVerificationError",
        "the certificate of {host} is not trusted: {cause.verify_message}",
        "export SSL_CERT_FILE=the certificate of its authority, or use http:// on this machine",
    ),
    (
        "SSLError",
        "{host} does not speak TLS ({cause.reason})",
        "if the server speaks plain HTTP, write http:// in place of https://",
    ),
    (
        "ConnectionRefusedError",
        "no server listens at {near}",
        "start the server, or correct the port",
    ),
    ("ProxyError", "the proxy refused: {cause}", "correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY"),
    ("TimeoutError", _SILENT, _WAIT),
    ("TimeoutException", _SILENT, _WAIT),
    (
        "RemoteProtocolError",
        "{host} does not speak HTTP, or broke off: {cause}",
        "correct the port; if the server speaks TLS, write https://",
    ),
    ("ImportError", "{cause}", "pip install socksio, or unset ALL_PROXY"),
    ("InvalidURL", _NO_URL, _WRITE_URL),
    ("UnsupportedProtocol", _NO_URL, _WRITE_URL),
    ("OSError", "the connection to {host} failed: {cause}", "see whether the server runs"),
)
