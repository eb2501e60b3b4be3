"""Every provider's errors in our own words; neither a message nor a response holds a key."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from deepera_graph.chat.parsing import DoubleFieldError, refuse_doubles, sanitize_line
from deepera_graph.errors import CallError
from deepera_graph.text.plain import HIDDEN, hide_secrets
from deepera_graph.usage import Usage

KEY_VARIABLE = "OPENAI_API_KEY"
NO_KEY = "not-needed"  # what servers without keys are sent
_UNUSABLE = frozenset({401, 403, 404})
_TIMED_OUT = frozenset({"TimeoutError", "APITimeoutError", "TimeoutException"})
_CONNECTION = frozenset({"APIConnectionError", "ConnectionError", "TransportError", "HTTPError"})
_NEVER_CONNECTED = frozenset({"ConnectError", "ConnectionRefusedError", "gaierror"})
_SECRET = re.compile(  # of the usual forms, whoever's they are
    r"\b(?:sk|pk|key|xai)-[\w*-]{6,}|\b(?:gsk|hf)_\w{6,}|\bAIza[\w-]{20,}|\bBearer\s+\S+"
    r"|(?<=://)[^\s/@]+:[^\s/@]+(?=@)",
    re.IGNORECASE,
)
_LONGEST = 300
_NO_OBJECT = "Unexpected response type"  # langchain-openai, of an HTML page or a text


def to_call_error(error: Exception, secrets: Collection[str] = ()) -> CallError:
    """Say what went wrong with a call, and whether trying again may help; without the *secrets*."""
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    causes = _names_of_causes(error)
    timed_out = bool(causes & _TIMED_OUT)
    unreachable = status is None and not timed_out and bool(causes & _NEVER_CONNECTED)
    return CallError(
        _message(error, status, secrets, unreachable=unreachable),
        status=status,
        transport=status is None and (timed_out or bool(causes & (_CONNECTION | _NEVER_CONNECTED))),
        retry_after=read_retry_after(
            getattr(getattr(error, "response", None), "headers", None) or {}
        ),
        unusable=status in _UNUSABLE or unreachable,
        usage=Usage(failed_calls=1),
    )


def reveals_secret(error: BaseException | None, secrets: Collection[str]) -> bool:
    """Whether an error, or one that caused it, would show a secret to whoever prints it."""
    while error is not None:
        if any(secret in f"{error} {error!r}" for secret in secrets):
            return True
        error = error.__cause__ or error.__context__
    return False


def shorten(error: BaseException | str, secrets: Collection[str] = ()) -> str:
    """Return the message of an error in one line, without *secrets* or what looks like a key."""
    text = hide_secrets(str(error), secrets)
    text = _SECRET.sub(HIDDEN, sanitize_line(text)) or type(error).__name__
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


def _message(
    error: Exception, status: int | None, secrets: Collection[str], *, unreachable: bool
) -> str:
    if status in {401, 403}:
        none = (
            ", as it was sent none: name the variable that holds it (api_key_env=, --api-key-env)"
        )
        return f"the server refused the API key (HTTP {status}){none if NO_KEY in secrets else ''}"
    if unreachable:
        return f"the server cannot be reached ({shorten(_root_cause(error), secrets)})"
    if isinstance(error, JSONDecodeError | UnicodeDecodeError):
        return f"the server's answer is not JSON ({shorten(error, secrets)})"
    if str(error).startswith(_NO_OBJECT) or isinstance(error, IndexError):
        shown = shorten(error, secrets).partition("got ")[2] or "it has no choices"
        return f"the server's answer is no reply of a chat model, is its address right? ({shown})"
    if status is not None:
        return f"HTTP {status}: {_redirection(error, status, secrets) or shorten(error, secrets)}"
    return f"{type(error).__name__}: {shorten(_root_cause(error), secrets)}"


def _redirection(error: Exception, status: int, secrets: Collection[str]) -> str:
    """Return where a server wants to be asked instead; nothing of another failure."""
    if not 300 <= status < 400:
        return ""
    target = getattr(getattr(error, "response", None), "headers", {}).get("location", "")
    return f"the server redirects to {shorten(target, secrets)}, where no prompt is sent"


def _names_of_causes(error: BaseException | None) -> set[str]:
    """Return the names of the types of an error and of all that caused it."""
    names: set[str] = set()
    while error is not None:
        names |= {kind.__name__ for kind in type(error).__mro__}
        error = error.__cause__ or error.__context__
    return names


def _root_cause(error: BaseException) -> BaseException:
    while (cause := error.__cause__ or error.__context__) is not None:
        if isinstance(cause, StopIteration):  # how the JSON reader stops, and says nothing
            break
        error = cause
    return error


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from ``retry-after-ms`` or ``Retry-After``: a number or a date (RFC 9110, 10.2.3)."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit)
        except (KeyError, ValueError):
            continue
    try:
        when = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)  # written with the zone -0000
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


_SHORTEST = 6  # a shorter one is a placeholder
_KEY = re.compile(r"key|token|secret|password|sig", re.IGNORECASE)


def secrets_of(model: BaseChatModel) -> frozenset[str]:
    """Return the keys, the values of extra headers, and the passwords in URLs of a model."""
    found = [one.get_secret_value() for one in vars(model).values() if isinstance(one, SecretStr)]
    for name in ("default_headers", "default_query"):
        held = getattr(model, name, None)
        found += map(str, held.values() if isinstance(held, Mapping) else ())
    for name in ("openai_api_base", "base_url", "openai_proxy"):
        found += passwords_in(getattr(model, name, None))
    return keep_secrets(found)


def keep_secrets(found: Iterable[str]) -> frozenset[str]:
    """Return the keys and passwords among what may be one: a short one would blank out words."""
    return frozenset(one.strip() for one in found if len(one.strip()) >= _SHORTEST)


def has_password(url: str) -> bool:
    """Whether a URL carries a password before its host, or a key after its question mark."""
    return bool(passwords_in(url))


def passwords_in(url: object) -> list[str]:
    """Return the password before the host of a URL, and keys after its question mark."""
    if not isinstance(url, str):
        return []
    try:
        parts = urlsplit(url)
    except ValueError:  # the client will say so
        return []
    found = [value for name, value in parse_qsl(parts.query) if _KEY.search(name)]
    return [*found, parts.password, unquote(parts.password)] if parts.password else found


_MARK = "\ufeff"  # a byte order mark: no JSON, and skipped when we read it
_ABOUT_THE_BODY = frozenset({"content-length", "content-encoding", "transfer-encoding"})


def filter_responses(client: Any, secrets: Collection[str]) -> None:
    """Have an asynchronous HTTP client (httpx, httpx2) give responses without secrets."""
    # Arguments of a tool call that a library would misread are marked, so that it hands them on as
    # they are. Streams are left alone.
    send = client.send

    async def send_filtered(request: Any, **options: Any) -> Any:
        response = await send(request, **options)
        if "event-stream" in response.headers.get("content-type", ""):
            return response
        found = await response.aread()
        body = _mark_arguments(hide_in_body(found, secrets))
        return response if body == found else replace_body(response, body)

    client.send = send_filtered


def hide_in_body(body: bytes, secrets: Collection[str]) -> bytes:
    """Return a body with stars in place of each secret."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        body = body.replace(secret.encode(), HIDDEN.encode())
    return body


def replace_body(response: Any, body: bytes) -> Any:
    """Return a response of an HTTP client that was read, with another body."""
    headers = [(k, v) for k, v in response.headers.multi_items() if k not in _ABOUT_THE_BODY]
    return type(response)(
        response.status_code, headers=headers, content=body, request=response.request
    )


def _mark_arguments(body: bytes) -> bytes:
    if b'"tool_calls"' not in body:
        return body
    try:
        answer = json.loads(body)
        for choice in answer["choices"]:
            for call in choice["message"].get("tool_calls") or ():
                call["function"]["arguments"] = mark_unclear(call["function"].get("arguments"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return body  # not an answer of this protocol: let the library say so
    return json.dumps(answer).encode()


def mark_unclear(arguments: object) -> str:
    """Return the arguments as text; with a mark before all that is not one clear object."""
    if arguments is None:
        return ""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    try:
        value = json.loads(text, object_pairs_hook=refuse_doubles, strict=False)
    except (ValueError, DoubleFieldError, RecursionError):
        value = None
    return text if isinstance(value, dict) or not text.strip() else _MARK + text
