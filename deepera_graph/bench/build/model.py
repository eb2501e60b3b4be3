"""The chat model of a build, and what is written down of it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_core.language_models import BaseChatModel

from deepera_graph.backends.llm import llm_backend
from deepera_graph.roles import Backend

_SERVER = "base_url"


def backend_of(model: "Backend | BaseChatModel | str", **options: Any) -> Backend:
    """Return the LLM backend of a model; a `Backend` is returned as it is.

    Raises:
        SettingsError: The model cannot be made.
    """
    return model if isinstance(model, Backend) else llm_backend(model, **options)


def without_server(backend: Backend) -> Backend:
    """Return a backend whose answers count as its own, whatever server the model runs on.

    A build may go on when a server comes back under another address. A model made from live
    objects that cannot be written down goes by its name.
    """
    spec: Mapping[str, Any] = backend.spec or {"kind": "llm", "model": backend.about.get("model")}
    return replace(backend, spec={key: spec[key] for key in spec if key != _SERVER})


def model_record(backend: Backend) -> dict[str, Any]:
    """Return what the manifest says of a model: its options, its server, never a key."""
    spec: Mapping[str, Any] = without_server(backend).fingerprint()["spec"]
    server = (backend.spec or {}).get(_SERVER)
    return {**spec, "server": str(server)} if server else dict(spec)
