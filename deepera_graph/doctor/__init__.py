"""What is wrong with an installation, a server, a store or a cache, and what to do about it."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from deepera_graph.doctor.checks import (
    KEY_VARIABLE,
    STORE_KEY_VARIABLE,
    Finding,
    check_cache,
    check_extras,
    check_local,
    check_sqlite,
    check_store,
    check_versions,
)
from deepera_graph.packages import install_command

__all__ = ["Finding", "examine"]
TIMEOUT = 30.0


def examine(
    *,
    # ``provider:model``, or with *base_url* the name the server knows; None takes the first one
    # that the server lists
    model: str | None = None,
    base_url: str | None = None,  # a server that speaks OpenAI's chat protocol
    # environment variable that holds the key; the provider's own if None
    api_key_env: str | None = None,
    # folder of local collections; None looks whether one in memory can be opened
    store: str | Path | None = None,
    # a Qdrant server, instead of a folder; its key is in ``QDRANT_API_KEY``
    qdrant_url: str | None = None,
    # folder of the judgement cache, or "off"; None is the default folder
    cache: str | Path | None = None,
    timeout: float = TIMEOUT,  # longest wait for one answer of the model's server, in seconds, > 0
) -> list[Finding]:
    """Check everything that judging needs, and with a model or an address the server behind it."""
    # Without *model*, *base_url* and *qdrant_url* nothing is sent over any network. With a server,
    # at most 8 requests are made: 2 that list its models, one for each of the four ways to ask for
    # a structured answer, and one judgement, which is asked once more if its answer is unusable. No
    # key is ever in what was found.
    secrets = [
        os.environ.get(variable, "").strip()
        for variable in (api_key_env or KEY_VARIABLE, KEY_VARIABLE, STORE_KEY_VARIABLE)
    ]
    if api_key_env and not os.environ.get(api_key_env):
        secrets.append(api_key_env)
    checks: dict[str, Callable[[], Iterator[Finding]]] = {
        "versions": check_versions,
        "extras": check_extras,
        "local": check_local,
        "sqlite": check_sqlite,
        "cache": partial(check_cache, cache),
        "store": partial(check_store, store, qdrant_url),
    }
    if model is not None or base_url is not None:
        checks["server"] = partial(_check_server, model, base_url, api_key_env, timeout)
    return [one.without(secrets) for area, check in checks.items() for one in _run(area, check)]


def _run(area: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Yield the findings of one check; its packages may be missing or broken."""
    try:
        yield from check()
    except ImportError as error:
        advice = f"{install_command(flag='--upgrade')}; else in a fresh environment"
        yield Finding(area, "fail", f"cannot be checked: {error}", advice)
    except Exception as error:  # noqa: BLE001 - a broken package raises anything
        found = f"cannot be checked: {type(error).__name__}: {error}"
        advice = f"{install_command(flag='--force-reinstall')}; if that does not help, report this"
        yield Finding(area, "fail", found, advice)


def _check_server(*where: Any) -> Iterator[Finding]:
    from deepera_graph.doctor.server import check_server  # noqa: PLC0415 - openai may be broken

    return check_server(*where)
