"""What a failed connection means, in words, and what to do."""

import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

Trouble = tuple[str, str]


def explain(error: BaseException, url: str, timeout: float) -> Trouble:
    """Return what went wrong, and what to do."""
    host, near = shown_host(url), proxy_for(url) or shown_host(url)
    for cause in _chain(error):
        if isinstance(cause, ssl.SSLWantReadError):  # was waiting, when time ran out
            continue
        told = _of_cause(cause, host=host, near=near, timeout=timeout)
        if told:
            return _with_proxy(told, url)
    return _with_proxy((f"{type(error).__name__}: {error}", "see whether the server runs"), url)


def proxy_for(url: str) -> str:
    """Return the host of the proxy that requests to *url* go through; empty if none."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy or proxy_bypass(parts.hostname or ""):
        return ""
    return shown_host(proxy if "//" in proxy else f"//{proxy}")


def shown_host(url: str) -> str:
    """Return host and port, without a user name and password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def shown_url(url: str) -> str:
    """Return an address without user name, password and query, all of which may hold a key."""
    parts = urlsplit(url)
    return parts._replace(netloc=shown_host(url), query="", fragment="").geturl()


def _of_cause(cause: BaseException, **values: str | float) -> Trouble | None:
    names = {kind.__name__ for kind in type(cause).__mro__}  # those of two client libraries
    for name, found, advice in _KINDS:
        if name in names:
            return found.format(cause=cause, **values), advice
    return None


def _with_proxy(told: Trouble, url: str) -> Trouble:
    proxy = proxy_for(url)
    if not proxy:
        return told
    found, advice = told
    return (
        f"{found} (the proxy of {urlsplit(url).scheme} is {proxy})",
        f"{advice}; if it needs no proxy, export NO_PROXY={urlsplit(url).hostname}",
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield what lies deepest first: it says most."""
    if error is None:
        return
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _chain(part)
    yield from _chain(error.__cause__ or error.__context__)
    yield error


_KINDS: tuple[tuple[str, str, str], ...] = (
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
        "nobody listens at {near}",
        "start the server, or correct the port",
    ),
    (
        "ProxyError",
        "the proxy refused: {cause}",
        "correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY",
    ),
    (
        "TimeoutError",
        "{host} did not answer within {timeout:g} s",
        "see whether it hangs or still loads its model; --timeout gives it longer",
    ),
    (
        "TimeoutException",
        "{host} did not answer within {timeout:g} s",
        "see whether it hangs or still loads its model; --timeout gives it longer",
    ),
    (
        "RemoteProtocolError",
        "{host} does not speak HTTP, or broke off: {cause}",
        "correct the port; if the server speaks TLS, write https://",
    ),
    ("ImportError", "{cause}", "pip install socksio, or unset ALL_PROXY"),
    ("InvalidURL", "no address: {cause}", "write it as http://host:port/v1"),
    ("UnsupportedProtocol", "no address: {cause}", "write it as http://host:port/v1"),
    ("OSError", "the connection to {host} failed: {cause}", "see whether the server runs"),
)
