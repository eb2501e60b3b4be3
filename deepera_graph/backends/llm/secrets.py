"""The secrets that a chat model holds, so that they can be kept out of what is shown."""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

_SHORTEST = 6  # a shorter one is a placeholder, and would blank out words
_HOLDERS = ("default_headers", "default_query")
_KEY = re.compile(r"key|token|secret|password|sig", re.IGNORECASE)
_URLS = ("openai_api_base", "base_url", "openai_proxy")


def secrets_of(model: BaseChatModel) -> frozenset[str]:
    """Return the keys, the values of extra headers, and the passwords in URLs of a model."""
    found = [value.get_secret_value() for value in vars(model).values() if _is_secret(value)]
    for name in _HOLDERS:
        found += map(str, _values(getattr(model, name, None)))
    for name in _URLS:
        found += _passwords(getattr(model, name, None))
    return frozenset(one.strip() for one in found if len(one.strip()) >= _SHORTEST)


def holds_password(url: str) -> bool:
    """Whether a URL carries a password before its host, or a key after its question mark."""
    return bool(_passwords(url))


def _is_secret(value: object) -> bool:
    return isinstance(value, SecretStr)


def _values(held: Any) -> Iterable[Any]:
    return held.values() if isinstance(held, Mapping) else ()


def _passwords(url: object) -> list[str]:
    if not isinstance(url, str):
        return []
    try:
        parts = urlsplit(url)
    except ValueError:  # the client will say so
        return []
    found = [value for name, value in parse_qsl(parts.query) if _KEY.search(name)]
    return [*found, parts.password, unquote(parts.password)] if parts.password else found
