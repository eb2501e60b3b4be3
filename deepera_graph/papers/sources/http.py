"""One way to ask a service over HTTP: in time, politely, from the cache if it was asked before.

The clients of these services (pyalex, arxiv, semanticscholar, Biopython's Entrez) sleep and ask
again by themselves, for as long as a service says, block the loop, and drop the headers that say
why; none takes a time limit in total. So requests are httpx's here, and only these are retried. No
key is in any log.
"""

import asyncio
import json
import logging
import os
import re
import ssl
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from math import isfinite
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import httpx

from deepera_graph import __version__
from deepera_graph.chat.errors import read_retry_after
from deepera_graph.errors import SettingsError
from deepera_graph.papers.sources.base import SourceStatus
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.text.plain import HIDDEN, hide_secrets
from deepera_graph.web import is_this_machine

T = TypeVar("T")
TTL = 7 * 24 * 3600  # seconds for which an answer is kept
_ATTEMPTS = 3
_PAUSE = 1.0  # seconds before a second attempt, where a service names none; twice that before a 3rd
_MOST_BYTES = 32_000_000
SHOWN = 120  # characters of what a service said
_OK, _REFUSED, _TOO_MANY, _REDIRECTS = 200, (401, 403), 429, range(300, 400)
_AGAIN = (500, 502, 503, 504)
UNREADABLE = (  # of another form than is documented
    AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError,
)  # fmt: skip


class ServiceError(Exception):
    """A service gave no answer that can be used; another time it *may pass*."""

    def __init__(
        self,
        reason: str,
        status: SourceStatus = "failed",
        retry_after: float | None = None,
        *,
        may_pass: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason, self.status, self.retry_after = reason, status, retry_after
        self.may_pass = may_pass


class Web:
    """The requests of one search, up to its deadline."""

    def __init__(
        self,
        name: str,
        *,
        deadline: float,  # on the clock of `time.monotonic`
        interval: float,  # seconds between two requests to a host; none to this machine
        contact: str,
        secrets: Collection[str],  # what no text may show
        headers: Mapping[str, str],  # sent along, a key among them
        kept: JudgementCache | None,
    ) -> None:
        hide_keys_in_logs()
        self._name, self._deadline, self._interval = name, deadline, interval
        self._secrets, self._kept = secrets, kept
        self._client = httpx.AsyncClient(
            headers={"User-Agent": user_agent(contact), **headers}, verify=_certificates()
        )
        self.asked = ""  # the first address, without what is secret
        self.n_fetched, self.n_kept = 0, 0  # answered by the service, and by the cache

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def get(
        self,
        address: str,
        parameters: Mapping[str, Any],
        read: Callable[[str], T],
        *,
        apart: Mapping[str, str] | None = None,
    ) -> T:
        """Ask for an address, and return what is *read* in the answer."""
        url = f"{address}?{urlencode(parameters)}" if parameters else address
        self.asked = self.asked or url
        key = sha256(f"{self._name} {url}".encode()).hexdigest()
        if (known := self._look_up(key)) is not None:
            with suppress(ServiceError, *UNREADABLE):
                found = read(known)
                self.n_kept += 1
                return found
        who = urlencode(apart or {})
        text = await self._fetch(f"{url}{'&' if parameters else '?'}{who}" if who else url)
        found = read(text)
        self._keep(key, text)
        return found

    async def _fetch(self, url: str) -> str:
        parts = urlsplit(url)
        host = find_host(f"{self._name} {parts.netloc}")
        here = is_this_machine(parts.hostname or "")  # which needs no pauses
        for attempt in range(1, _ATTEMPTS + 1):
            if host.closed_for > self._left():
                raise ServiceError(
                    "it asked to wait, and is not asked before", "rate_limited", host.closed_for
                )
            wait = host.reserve(0.0 if here else self._interval, self._deadline)
            if wait is None:
                raise ServiceError("others are waiting for their turn, too", "rate_limited")
            await asyncio.sleep(max(wait, host.closed_for))
            try:
                return await self._send(url, host)
            except ServiceError as error:
                pause = _PAUSE * 2 ** (attempt - 1) * (not here)
                if error.retry_after is not None:
                    pause = error.retry_after
                    host.close(pause)
                if not error.may_pass or attempt == _ATTEMPTS or pause >= self._left():
                    raise
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def _send(self, url: str, host: "Host") -> str:
        try:
            async with self._client.stream("GET", url, timeout=max(self._left(), 0.01)) as response:
                body = await self._read_body(response)
        except httpx.TimeoutException:
            raise ServiceError("it did not answer in time") from None
        except (httpx.TransportError, httpx.DecodingError, httpx.InvalidURL) as error:
            said = hide(f"{error}", self._secrets)[:SHOWN] or type(error).__name__
            # a connection that broke, and not one that there is none of: offline, wrong address
            may_pass = isinstance(error, httpx.RemoteProtocolError | httpx.ReadError)
            raise ServiceError(f"it cannot be reached: {said}", may_pass=may_pass) from None
        self.n_fetched += 1
        text = hide_secrets(body.decode("utf-8", "replace"), self._secrets, _SHORTEST)
        self._check(response, text, host)
        return text

    async def _read_body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for block in response.aiter_bytes():
            body += block
            if len(body) > _MOST_BYTES:
                raise ServiceError(f"its answer is longer than {_MOST_BYTES // 10**6} MB")
        return bytes(body)

    def _check(self, response: httpx.Response, text: str, host: "Host") -> None:
        """Raise an error unless the body can be an answer; heed what the headers say."""
        code = response.status_code
        said = "" if code == _OK else hide(_message_of(text), self._secrets)
        is_limit = code == _TOO_MANY or (code != _OK and "rate limit" in said.lower())
        wait = _read_wait(response.headers, is_well=code == _OK, is_limit=is_limit)
        if code == _OK:
            if wait is not None:
                host.close(wait)
            return
        reason = f"HTTP {code}{f': {said}' if said else ''}"
        if is_limit:
            raise ServiceError(reason, "rate_limited", wait, may_pass=True)
        if code in _AGAIN:
            status: SourceStatus = "failed" if wait is None else "rate_limited"
            raise ServiceError(reason, status, wait, may_pass=True)
        if code in _REDIRECTS:
            reason += ", a redirection, which is not followed as a key might go along"
        is_key = code in _REFUSED and any(self._secrets)
        raise ServiceError(reason + "; is the key right?" * is_key)

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _look_up(self, key: str) -> str | None:
        known = None if self._kept is None else self._kept.get(key)
        if known is None:
            return None
        return known["text"] if time.time() - known["fetched"] < TTL else None

    def _keep(self, key: str, text: str) -> None:
        if self._kept is not None:
            self._kept.forget(key)
            kept = {"fetched": int(time.time()), "text": text}
            self._kept.put(key, f"source {self._name}", kept)


@cache
def _certificates() -> ssl.SSLContext:
    return httpx.create_ssl_context()


def _read_wait(headers: Mapping[str, str], *, is_well: bool, is_limit: bool) -> float | None:
    """Return the seconds for which a service asks to be left alone, if it does; finite, >= 0."""
    wait = None if is_well else read_retry_after(headers)
    spent = _is_spent(headers)
    if wait is None and (spent or (is_limit and spent is None)):
        wait = _read_reset(headers)
    return wait if wait is not None and isfinite(wait) else None


def _is_spent(headers: Mapping[str, str]) -> bool | None:
    """Tell whether the credits of the day are spent; None if nothing is said of them."""
    # A limit while there are some left is on requests a second, and lifted soon.
    for name in ("x-ratelimit-remaining-usd", "x-ratelimit-remaining"):
        with suppress(KeyError, ValueError):
            needed = float(headers.get("x-ratelimit-cost-required-usd") or 0)
            left = float(headers[name])
            return left <= 0 or (name.endswith("usd") and left < needed)
    return None


def _read_reset(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until a limit is lifted, of ``X-RateLimit-Reset``: seconds, or a time."""
    try:
        reset = float(headers["x-ratelimit-reset"])
    except (KeyError, ValueError):
        return None
    return max(0.0, reset - time.time() if reset > 10**9 else reset)


def _message_of(text: str) -> str:
    """Return what a service says is wrong, in a line."""
    if is_html(text):
        return "an HTML page"
    with suppress(ValueError, RecursionError):
        plain = json.loads(text)
        if isinstance(plain, dict):
            said = (plain.get(name) for name in ("message", "error", "errMsg", "detail"))
            text = next((one for one in said if isinstance(one, str)), "")
    return " ".join(text.split())[:SHOWN]


def is_html(text: str) -> bool:
    """Tell a page for people from an answer."""
    return text[:200].lstrip("\ufeff \t\r\n").lower().startswith(("<!doctype html", "<html"))


CONTACT_VARIABLE = "DEEPERA_CONTACT"
_MAIL = re.compile(r"[^@\s,;<>]+@[^@\s,;<>]+\.[^@\s,;<>]+")
_IN_URL = re.compile(r"(?<=[?&])(api_key|email|mailto)=[^&\s'\"]*")
_LOGIN = re.compile(r"(?<=://)[^\s/@]+(?=@)")
_SHORTEST = 6  # letters of a secret


def read_contact(contact: str | None = None) -> str:
    """Return the address that services may write to, of the argument or the environment."""
    found = os.environ.get(CONTACT_VARIABLE, "").strip() if contact is None else contact
    if found and not _MAIL.fullmatch(found):
        raise SettingsError(
            f"contact must be an address of mail such as name@example.org, got {found!r:.80}"
        )
    return found


def user_agent(contact: str) -> str:
    """Return how requests introduce themselves."""
    return f"deepera-graph/{__version__}" + (f" (mailto:{contact})" if contact else "")


def hide(text: str, secrets: Collection[str]) -> str:
    """Return a text without keys, and without logins and contacts in addresses."""
    known = hide_secrets(text, secrets, _SHORTEST)
    return _LOGIN.sub(HIDDEN, _IN_URL.sub(rf"\1={HIDDEN}", known))


class _NoKeys(logging.Filter):
    """Takes keys out of the addresses that httpx logs of every request."""

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        if (bare := hide(said, ())) != said:
            record.msg, record.args = bare, ()
        return True


def hide_keys_in_logs() -> None:
    """Have httpx log no key; once is enough, and it does no harm to others."""
    logger = logging.getLogger("httpx")
    if not any(isinstance(one, _NoKeys) for one in logger.filters):
        logger.addFilter(_NoKeys())


class Host:
    """When a host may be asked next; threads and event loops of a process share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._next = self._closed_until = 0.0

    def reserve(self, interval: float, deadline: float) -> float | None:
        """Take the next turn, and return the seconds until then; None if it is past a deadline."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            if turn > deadline:
                return None
            self._next = turn + interval
            return turn - now

    def close(self, seconds: float) -> None:
        """Have nobody ask for some seconds, as the host wishes."""
        with self._lock:
            self._closed_until = max(self._closed_until, time.monotonic() + seconds)

    @property
    def closed_for(self) -> float:
        """Seconds for which it is not to be asked, >= 0."""
        with self._lock:
            return max(0.0, self._closed_until - time.monotonic())


_hosts: dict[str, Host] = {}
_lock = Lock()


def find_host(address: str) -> Host:
    """Return the one `Host` of a service at an address with its port."""
    with _lock:
        return _hosts.setdefault(address, Host())
