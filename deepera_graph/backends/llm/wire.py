"""What comes over the wire of OpenAI's chat protocol, before a client library reads it.

The library would lose things: a field named twice in the arguments of a tool call is read as its
last value, arguments that are no object raise, and with the error the tokens are gone. And a server
that repeats the API key in an error gets it into every log and trace that shows the error.
"""

import json
from collections.abc import Collection
from typing import Any

_HIDDEN = b"***"
_MARK = "\ufeff"  # a byte order mark: no JSON, and skipped when we read it
_OF_THE_BODY = frozenset({"content-length", "content-encoding", "transfer-encoding"})


def watch(client: Any, secrets: Collection[str]) -> None:
    """Have an asynchronous HTTP client (httpx, httpx2) give answers without secrets.

    Arguments of a tool call that a library would misread are marked, so that it hands them on as
    they are. Streams are left alone.
    """
    send = client.send
    hidden = sorted((one.encode() for one in secrets if one), key=len, reverse=True)

    async def watched(request: Any, **options: Any) -> Any:
        response = await send(request, **options)
        if "event-stream" in response.headers.get("content-type", ""):
            return response
        body = await response.aread()
        told = _with_marked_arguments(_without(body, hidden))
        if told == body:
            return response
        headers = [(k, v) for k, v in response.headers.multi_items() if k not in _OF_THE_BODY]
        return type(response)(
            response.status_code, headers=headers, content=told, request=response.request
        )

    client.send = watched


def _without(body: bytes, secrets: list[bytes]) -> bytes:
    for secret in secrets:
        body = body.replace(secret, _HIDDEN)
    return body


def _with_marked_arguments(body: bytes) -> bytes:
    if b'"tool_calls"' not in body:
        return body
    try:
        answer = json.loads(body)
        for choice in answer["choices"]:
            for call in choice["message"].get("tool_calls") or ():
                call["function"]["arguments"] = marked(call["function"].get("arguments"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return body  # not an answer of this protocol: let the library say so
    return json.dumps(answer).encode()


def marked(arguments: object) -> str:
    """Return the arguments as text; with a mark before all that is not one clear object."""
    if arguments is None:
        return ""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    try:
        value = json.loads(text, object_pairs_hook=_once, strict=False)
    except (ValueError, RecursionError):
        value = None
    return text if isinstance(value, dict) or not text.strip() else _MARK + text


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a field is named twice")
    return values
