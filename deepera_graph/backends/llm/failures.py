"""Every provider's errors in our own words; a message never holds a key."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from deepera_graph.errors import CallError
from deepera_graph.usage import Usage

_UNUSABLE = frozenset({401, 403, 404})
_TIMED_OUT = frozenset({"TimeoutError", "APITimeoutError", "TimeoutException"})
_CONNECTION = frozenset({"APIConnectionError", "ConnectionError", "TransportError", "HTTPError"})
_NEVER_CONNECTED = frozenset({"ConnectError", "ConnectionRefusedError", "gaierror"})
_SECRET = re.compile(r"\b(?:sk|pk|key)-[\w*-]{6,}|\bBearer\s+\S+", re.IGNORECASE)
_LONGEST = 300


def call_error(error: Exception) -> CallError:
    """Say what went wrong with a call, and whether trying again may help."""
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    causes = _causes(error)
    timed_out = bool(causes & _TIMED_OUT)
    unreachable = status is None and not timed_out and bool(causes & _NEVER_CONNECTED)
    return CallError(
        _message(error, status, unreachable=unreachable),
        status=status,
        transport=status is None and (timed_out or bool(causes & (_CONNECTION | _NEVER_CONNECTED))),
        retry_after=_retry_after(error),
        unusable=status in _UNUSABLE or unreachable,
        usage=Usage(failed_calls=1),
    )


def _message(error: Exception, status: int | None, *, unreachable: bool) -> str:
    if status in {401, 403}:
        return f"the server refused the API key (HTTP {status})"
    if unreachable:
        return f"the server cannot be reached ({brief(_deepest(error))})"
    if status is not None:
        return f"HTTP {status}: {brief(error)}"
    return f"{type(error).__name__}: {brief(_deepest(error))}"


def brief(error: BaseException) -> str:
    """Return the message of an error in one line, without anything that looks like a key."""
    text = _SECRET.sub("***", " ".join(str(error).split())) or type(error).__name__
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


def _causes(error: BaseException | None) -> set[str]:
    """Names of the types of an error and of all that caused it."""
    names: set[str] = set()
    while error is not None:
        names |= {kind.__name__ for kind in type(error).__mro__}
        error = error.__cause__ or error.__context__
    return names


def _deepest(error: BaseException) -> BaseException:
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def _retry_after(error: Exception) -> float | None:
    """Seconds from ``retry-after-ms`` or ``Retry-After``: a number or a date (RFC 9110, 10.2.3)."""
    headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", None) or {}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit)
        except (KeyError, ValueError):
            continue
    try:
        when = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
