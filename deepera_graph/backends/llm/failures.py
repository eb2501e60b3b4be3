"""Every provider's errors in our own words; a message never holds a key."""

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from json import JSONDecodeError

from deepera_graph.backends.llm.harmless import one_line
from deepera_graph.errors import CallError
from deepera_graph.usage import Usage

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


def call_error(error: Exception, secrets: Collection[str] = ()) -> CallError:
    """Say what went wrong with a call, and whether trying again may help; without the *secrets*."""
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    causes = _causes(error)
    timed_out = bool(causes & _TIMED_OUT)
    unreachable = status is None and not timed_out and bool(causes & _NEVER_CONNECTED)
    return CallError(
        _message(error, status, secrets, unreachable=unreachable),
        status=status,
        transport=status is None and (timed_out or bool(causes & (_CONNECTION | _NEVER_CONNECTED))),
        retry_after=_retry_after(error),
        unusable=status in _UNUSABLE or unreachable,
        usage=Usage(failed_calls=1),
    )


def tells(error: BaseException | None, secrets: Collection[str]) -> bool:
    """Whether an error, or one that caused it, would show a secret to whoever prints it."""
    while error is not None:
        if any(secret in f"{error} {error!r}" for secret in secrets):
            return True
        error = error.__cause__ or error.__context__
    return False


def _message(
    error: Exception, status: int | None, secrets: Collection[str], *, unreachable: bool
) -> str:
    if status in {401, 403}:
        return f"the server refused the API key (HTTP {status})"
    if unreachable:
        return f"the server cannot be reached ({brief(_deepest(error), secrets)})"
    if isinstance(error, JSONDecodeError | UnicodeDecodeError):
        return f"the server's answer is not JSON ({brief(error, secrets)})"
    if status is not None:
        return f"HTTP {status}: {brief(error, secrets)}"
    return f"{type(error).__name__}: {brief(_deepest(error), secrets)}"


def brief(error: BaseException, secrets: Collection[str] = ()) -> str:
    """Return the message of an error in one line, without *secrets* or what looks like a key."""
    text = str(error)
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    text = _SECRET.sub("***", one_line(text)) or type(error).__name__
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
        if isinstance(cause, StopIteration):  # how the JSON reader stops, and says nothing
            break
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
    when = when if when.tzinfo else when.replace(tzinfo=UTC)  # written with the zone -0000
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
