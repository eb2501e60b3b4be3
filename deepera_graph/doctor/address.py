"""The address of a server: whether it is reached, and speaks OpenAI's protocol."""

import json
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from openai import DefaultHttpxClient

from deepera_graph.doctor.finding import Finding
from deepera_graph.doctor.trouble import explain, proxy_for, shown_url

_NAME = "address"
_MOST_BYTES = 4_000_000
_CHAT = "/chat/completions"


@dataclass(frozen=True, slots=True)
class Address:
    """What listing the models of a server gave.

    Attributes:
        finding: What to tell.
        models: The names it lists; empty if it lists none.
        status: The HTTP status, None if there was no answer.
    """

    finding: Finding
    models: tuple[str, ...] = ()
    status: int | None = None


def look_at_address(base_url: str, key: str, *, seconds: float) -> Address:
    """Ask a server for its models; if that fails over HTTP, also where its routes mostly are."""
    seen = _ask(base_url, key, seconds=seconds)
    better = _likelier(base_url)
    if seen.status is None or seen.finding.status == "ok" or better == base_url.removesuffix("/"):
        return seen
    if _ask(better, key, seconds=seconds).models:
        advice = f"use --base-url {shown_url(better)}, which does speak the protocol"
        return Address(Finding(_NAME, "fail", seen.finding.found, advice), status=seen.status)
    return seen


def _likelier(base_url: str) -> str:
    """Return the address without the route of the chat, or with ``/v1`` at its end."""
    bare = base_url.rstrip("/")
    if bare.endswith(_CHAT):
        return bare.removesuffix(_CHAT)
    return bare if bare.endswith("/v1") else f"{bare}/v1"


def _ask(base_url: str, key: str, *, seconds: float) -> Address:
    try:
        return _read(base_url, *_get(f"{base_url.removesuffix('/')}/models", key, seconds=seconds))
    except Exception as error:  # noqa: BLE001 - the client library in use has types of its own
        return Address(Finding(_NAME, "fail", *explain(error, base_url, seconds)))


def _get(url: str, key: str, *, seconds: float) -> tuple[Any, bytes]:
    headers = {"Authorization": f"Bearer {key}"}
    deadline = time.monotonic() + seconds
    with (
        DefaultHttpxClient(timeout=seconds) as client,  # proxies and certificates as in calls
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


def _read(base_url: str, answer: Any, body: bytes) -> Address:
    where, status = shown_url(base_url), answer.status_code
    models = _models(body) if status == HTTPStatus.OK else None
    proxy = proxy_for(base_url)
    if models is not None:
        through = f" through the proxy {proxy}" if proxy else ""
        found = f"{where} answers{through}, and lists {len(models)} model(s)"
        return Address(Finding(_NAME, "ok", found), models, status)
    if status in {401, 403}:
        found = f"{where} answers, and refuses the key (HTTP {status})"
        return Address(Finding(_NAME, "ok", found), status=status)
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if kind == "text/html" or body.lstrip()[:1] == b"<":
        found = f"{where} answers with a web page (HTTP {status}), not with OpenAI's protocol"
        advice = "the address of such a server mostly ends in /v1; or this is some other service"
        return Address(Finding(_NAME, "fail", found, advice), status=status)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        found, advice = f"{where} answers HTTP {status}", "look into the log of the server"
    else:
        found = f"{where} answers, but has no list of models (HTTP {status})"
        advice = "if asking the model fails too, correct the address: most end in /v1"
    return Address(Finding(_NAME, "warn", found, advice), status=status)


def _models(body: bytes) -> tuple[str, ...] | None:
    """Return the names in a list of models; None if it is no such list."""
    try:
        listed = json.loads(body)["data"]
        return tuple(str(one["id"]) for one in listed)
    except (ValueError, KeyError, TypeError):
        return None
