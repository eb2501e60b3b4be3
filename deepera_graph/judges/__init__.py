"""Who judges: this machine, a language model, or your own roles; and how to name them.

| name | backend |
|---|---|
| ``local`` | `deepera_graph.judges.trained`: a small trained judge, no download, no key |
| ``rules`` | `deepera_graph.judges.trained`: hand-written rules, nothing to load |
| ``encoder:MODEL`` | `judges.cross_encoder`: a cross-encoder, by file, folder or name |
| ``provider:model`` | `deepera_graph.judges.llm`: any chat model, e.g. ``openai:gpt-5-mini`` |
| ``package.module:factory`` | what the factory of yours returns |
"""

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from deepera_graph.errors import SettingsError
from deepera_graph.schema import Backend
from deepera_graph.settings import Preset


def load_backend(
    backend: "Backend | str | Mapping[str, Any]", *, preset: Preset | None = None
) -> Backend:
    """Return the backend that a name or a spec stands for; a `Backend` is returned as it is.

    A *preset* says how a chat model that is given by its name is asked; see `Preset`.

    Raises:
        SettingsError: No backend has this name, or the factory does not return a `Backend`.
    """
    if isinstance(backend, Backend):
        return backend
    if isinstance(backend, str):
        return _load_named(backend, preset)
    if isinstance(backend, Mapping):
        return _load_spec(dict(backend))
    raise SettingsError(f"backend must be a Backend or its name, got {backend!r:.80}")


def _load_named(name: str, preset: Preset | None) -> Backend:
    if name == "local":
        return _load_spec({"kind": "local"})
    if name == "rules":
        return _load_spec({"kind": "local", "judge": "rules"})
    head, colon, tail = name.partition(":")
    if head == "encoder" and tail:
        return _load_spec({"kind": "encoder", "model": tail})
    if colon and head and tail:
        if "." in head:
            return _load_spec({"kind": "factory", "path": name})
        return _load_spec(_llm_spec(name, preset))
    raise SettingsError(
        "backend must be 'local', 'rules', 'encoder:MODEL', 'provider:model' or "
        f"'package.module:factory', got {name!r}"
    )


def _llm_spec(name: str, preset: Preset | None) -> dict[str, Any]:
    spec = {"kind": "llm", "model": name, **(preset.backend if preset else {})}
    if preset is None or preset.cascade is None:
        return spec
    return {"kind": "cascade", "local": "local", "llm": spec, "keep": preset.cascade}


def _load_spec(spec: dict[str, Any]) -> Backend:
    kind = spec.pop("kind", None)
    if not isinstance(kind, str) or kind not in _BUILDERS:
        raise SettingsError(f"backend kind must be one of {sorted(_BUILDERS)}, got {kind!r}")
    return _BUILDERS[kind](spec)


def _local(spec: dict[str, Any]) -> Backend:
    module = import_module("deepera_graph.judges.trained.backend")
    made: Backend = module.local_backend_from_spec(spec)
    return made


def _llm(spec: dict[str, Any]) -> Backend:
    made: Backend = import_module("deepera_graph.judges.llm.backend").llm_backend_from_spec(spec)
    return made


def _encoder(spec: dict[str, Any]) -> Backend:
    module = import_module("deepera_graph.judges.cross_encoder.backend")
    made: Backend = module.encoder_backend_from_spec(spec)
    return made


def _mixed(spec: dict[str, Any]) -> Backend:
    parts = {role: load_backend(part) for role, part in spec.items()}
    made: Backend = import_module("deepera_graph.judges.cascade").mixed_backend(**parts)
    return made


def _screened(spec: dict[str, Any]) -> Backend:
    made: Backend = import_module("deepera_graph.judges.cascade").screened_backend(
        load_backend(spec["screen"]), load_backend(spec["backend"]), floor=spec["floor"]
    )
    return made


def _cascade(spec: dict[str, Any]) -> Backend:
    made: Backend = import_module("deepera_graph.judges.cascade").cascade_backend(
        load_backend(spec["local"]), load_backend(spec["llm"]), keep=spec["keep"]
    )
    return made


def _factory(spec: dict[str, Any]) -> Backend:
    return _call_factory(str(spec["path"]))


_BUILDERS = {
    "local": _local,
    "encoder": _encoder,
    "llm": _llm,
    "mixed": _mixed,
    "screened": _screened,
    "cascade": _cascade,
    "factory": _factory,
}


def _call_factory(path: str) -> Backend:
    module_name, _, attribute = path.partition(":")
    try:
        factory = getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise SettingsError(f"backend {path!r} cannot be imported: {error}") from error
    made = factory()
    if not isinstance(made, Backend):
        raise SettingsError(f"backend {path!r} must return a Backend, got {made!r:.80}")
    if made.spec is not None:
        return made
    return replace(made, spec={"kind": "factory", "path": path})
