"""The chat model that is asked: its server, its key, its rates."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from deepera_graph.cli.opening.foreign import load_foreign
from deepera_graph.cli.shared import options
from deepera_graph.errors import SettingsError
from deepera_graph.web.serving import hide_login

if TYPE_CHECKING:
    from deepera_graph.schema import Backend

_PLAIN_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,39}")
KEY_VARIABLE = "OPENAI_API_KEY"


def chat_backend(chat: options.ChatOptions, **how: Any) -> Backend:
    """Build the backend of a chat model; *how* are more options of `llm_backend`."""
    name = str(chat.model)
    check_server(chat)
    if chat.base_url is not None:
        name = "openai:" + name.removeprefix("openai:")
    elif ":" not in name:
        raise SettingsError(
            f"--model must be 'provider:model', e.g. openai:{name}, got {name!r}; "
            "with --base-url the bare name is enough"
        )
    from deepera_graph.judges.llm.backend import llm_backend

    return load_foreign(
        f"--model {name}",
        lambda: llm_backend(
            name,
            base_url=chat.base_url,
            api_key_env=chat.api_key_env,
            retry=retry_of(chat),
            limits=rates_of(chat),
            **how,
        ),
    )


def check_server(chat: options.ServerOptions) -> None:
    """Raise `SettingsError` unless the address is one, and the variable holds a key."""
    variable = chat.api_key_env
    if variable is not None:
        check_variable(variable)
        if not os.environ.get(variable):
            raise SettingsError(
                f"no API key: the environment variable {variable} (--api-key-env) is not set"
            )
    of_openai = (chat.model or "").startswith("openai:") and chat.base_url is None
    if of_openai and variable is None and not os.environ.get(KEY_VARIABLE):
        raise SettingsError(
            f"no API key: set the environment variable {KEY_VARIABLE}, or give --base-url for a "
            "server that needs none"
        )
    if chat.base_url is not None:
        check_url(chat.base_url)


def check_url(url: str) -> None:
    """Raise `SettingsError` unless the address of a chat model's server can be one."""
    if not re.match(r"https?://[^/]", url):
        shown = hide_login(url)
        raise SettingsError(f"--base-url must start with http:// or https://, got {shown!r}")


def check_variable(name: str) -> None:
    """Raise `SettingsError`, without the name, if the key itself may have been given in its place.

    A name that is not written like one, as `MY_KEY` is, counts if there is such a variable.
    """
    if not _PLAIN_VARIABLE.fullmatch(name) and not os.environ.get(name):
        raise SettingsError(
            "no API key: --api-key-env takes the name of an environment variable that is set, "
            "not the key itself"
        )


def retry_of(chat: options.ChatOptions) -> dict[str, float]:
    """Return how long a call may take, if that was given: a field of `RetryPolicy`."""
    if chat.call_timeout is None:
        return {}
    check_call_timeout(chat.call_timeout)
    return {"timeout": chat.call_timeout}


def check_call_timeout(seconds: float) -> None:
    """Raise `SettingsError` unless a call may take some time, and not for ever."""
    if not 0 < seconds < float("inf"):
        raise SettingsError(f"call_timeout must be > 0 seconds, and a number, got {seconds!r}")


def rates_of(chat: options.ChatOptions) -> dict[str, float]:
    """Return the limits that were given: of calls at once, and a minute."""
    rates: dict[str, float | None] = {"calls_at_once": chat.max_concurrency}
    rates |= {name: getattr(chat, name) for name in ("requests_per_minute", "tokens_per_minute")}
    return {name: value for name, value in rates.items() if value is not None}


def check_rate(name: str, value: float) -> None:
    """Raise `SettingsError` unless a limit a minute is above 0."""
    if not value > 0:
        raise SettingsError(f"{name} must be > 0, got {value!r}")
