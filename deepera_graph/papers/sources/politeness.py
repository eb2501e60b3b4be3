"""Manners towards services that are free: who asks, how often, and no key in any log."""

import logging
import os
import re
import time
from collections.abc import Collection
from threading import Lock
from urllib.parse import quote, quote_plus

from deepera_graph import __version__
from deepera_graph.errors import SettingsError

CONTACT_VARIABLE = "DEEPERA_CONTACT"
_MAIL = re.compile(r"[^@\s,;<>]+@[^@\s,;<>]+\.[^@\s,;<>]+")
_IN_URL = re.compile(r"(?<=[?&])(api_key|email|mailto)=[^&\s'\"]*")
_LOGIN = re.compile(r"(?<=://)[^\s/@]+(?=@)")
_LOCAL = ("127.0.0.1", "localhost", "::1")
HIDDEN = "***"
_SHORTEST = 6  # of a secret: a shorter one is a placeholder, and would blank out words


def read_contact(contact: str | None = None) -> str:
    """Return the address that services may write to, of the argument or the environment.

    Raises:
        SettingsError: It is no address of mail.
    """
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
    return _LOGIN.sub(HIDDEN, _IN_URL.sub(rf"\1={HIDDEN}", hide_secrets(text, secrets)))


def hide_secrets(text: str, secrets: Collection[str]) -> str:
    """Return what a service has sent without keys that it echoes, as they are or as in addresses.

    That is done before any text is cut: a part of a key would be found no more.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            for written in (secret, quote_plus(secret), quote(secret)):
                text = text.replace(written, HIDDEN)
    return text


class _NoKeys(logging.Filter):
    """Takes keys out of the addresses that httpx logs of every request."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record through, without keys."""
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
        """Take the next turn, and return the seconds until then; None if it is past a deadline.

        Args:
            interval: Seconds between two turns.
            deadline: On the clock of `time.monotonic`.
        """
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


def is_local(name: str) -> bool:
    """Tell whether a host is this machine, which needs no pauses."""
    return name in _LOCAL
