"""All checks in their order; one that breaks is itself a finding, and the others go on."""

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from deepera_graph.doctor.finding import Finding
from deepera_graph.doctor.key import DEFAULT_VARIABLE

STORE_KEY_VARIABLE = "QDRANT_API_KEY"
TIMEOUT = 30.0


def examine(
    *,
    model: str | None = None,
    base_url: str | None = None,
    api_key_env: str | None = None,
    store: str | Path | None = None,
    qdrant_url: str | None = None,
    cache: str | Path | None = None,
    timeout: float = TIMEOUT,
) -> list[Finding]:
    """Check everything that judging needs, and with a model or an address the server behind it.

    Without *model*, *base_url* and *qdrant_url* nothing is sent over any network. With a server,
    at most 8 requests are made: 2 that list its models, one for each of the four ways to ask for
    a structured answer, and one judgement, which is asked once more if its answer is unusable.

    Args:
        model: ``provider:model``, or with *base_url* the name the server knows; None takes the
            first one that the server lists.
        base_url: A server that speaks OpenAI's chat protocol.
        api_key_env: Environment variable that holds the key; the provider's own if None.
        store: Folder of local collections; None looks whether one in memory can be opened.
        qdrant_url: A Qdrant server, instead of a folder; its key is in ``QDRANT_API_KEY``.
        cache: Folder of the judgement cache, or "off"; None is the default folder.
        timeout: Longest wait for one answer of the model's server, in seconds, > 0.

    Returns:
        What was found, in the order of the checks; no key is ever in it.
    """
    secrets = [
        os.environ.get(variable, "").strip()
        for variable in (api_key_env or DEFAULT_VARIABLE, DEFAULT_VARIABLE, STORE_KEY_VARIABLE)
    ]
    if api_key_env:
        secrets += [api_key_env] if not os.environ.get(api_key_env) else []
    findings = [
        *_look("versions"),
        *_look("extras"),
        *_look("local"),
        *_look("cache", where=cache),
        *_look("store", path=store, url=qdrant_url, key_variable=STORE_KEY_VARIABLE),
    ]
    if model is not None or base_url is not None:
        findings += _look(
            "server", model=model, base_url=base_url, key_variable=api_key_env, timeout=timeout
        )
    return [finding.without(secrets) for finding in findings]


def _look(area: str, **values: Any) -> Iterator[Finding]:
    """Yield the findings of one check; its packages may be missing or broken."""
    try:
        yield from import_module(f"deepera_graph.doctor.{area}").look(**values)
    except ImportError as error:
        yield Finding(
            area,
            "fail",
            f"cannot be checked: {error}",
            "pip install --upgrade deepera-graph, in a fresh environment if that does not help",
        )
    except Exception as error:  # noqa: BLE001 - a broken package raises anything
        yield Finding(
            area,
            "fail",
            f"cannot be checked: {type(error).__name__}: {error}",
            "pip install --force-reinstall deepera-graph; if that does not help, report this line",
        )
