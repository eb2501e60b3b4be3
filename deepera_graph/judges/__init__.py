"""Who judges: this machine, a language model, or your own roles; and how to name them.

| name | backend |
|---|---|
| ``local`` | `deepera_graph.judges.trained`: a small trained judge, no download, no key |
| ``rules`` | `deepera_graph.judges.heuristic`: hand-written rules, nothing to load |
| ``encoder:MODEL`` | `judges.cross_encoder`: a cross-encoder, by file, folder or name |
| ``provider:model`` | `deepera_graph.judges.llm`: any chat model, e.g. ``openai:gpt-5-mini`` |
| ``package.module:factory`` | what the factory of yours returns |

Where a model is named apart, as on the command line, ``llm`` is any chat model, too.
"""
# ruff: noqa: PLC0415 - each kind of backend is imported when it is asked for: some take a second

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from deepera_graph.errors import SettingsError
from deepera_graph.settings.ranges import suggest_value

if TYPE_CHECKING:
    from deepera_graph.schema import Backend
    from deepera_graph.settings import Preset

JudgeKind = Literal["local", "rules", "encoder", "llm", "factory"]
# The names that stand alone, and the specs that they are short for; `_BUILDERS` builds them.
NAMED: Mapping[JudgeKind, Mapping[str, Any]] = {
    "local": {"kind": "local"},
    "rules": {"kind": "local", "judge": "rules"},
}


class JudgeName(NamedTuple):
    """A name of a judge, taken apart."""

    kind: JudgeKind  # what it is
    # the model of an encoder, ``provider:model`` or the path of a factory; empty for names that
    # stand alone and a plain ``llm``
    value: str = ""


def parse_name(name: str) -> JudgeName:
    """Read the name of a judge, in the grammar above."""
    if name in NAMED or name == "llm":
        return JudgeName(name)  # type: ignore[arg-type]  # one of these
    head, colon, tail = name.partition(":")
    if colon and head and tail:
        if head == "encoder":
            return JudgeName("encoder", tail)
        return JudgeName("factory" if "." in head else "llm", name)
    raise SettingsError(
        f"backend must be {', '.join(map(repr, NAMED))}, 'encoder:MODEL', 'provider:model' or "
        f"'package.module:factory', got {name!r}{suggest_value(name, NAMED)}"
    )


def parse_option(name: str) -> JudgeKind:
    """Return the kind of judge that ``--backend`` names, beside which ``--model`` names models."""
    try:
        kind = parse_name(name).kind
    except SettingsError as error:
        names = (*NAMED, "llm", "encoder:MODEL")
        raise SettingsError(
            f"--backend must be {', '.join(map(repr, names))} or "
            f"'package.module:factory', got {name!r}{suggest_value(name, names)}"
        ) from error
    return "factory" if kind == "llm" else kind  # a module without a dot


def load_backend(
    backend: "Backend | str | Mapping[str, Any]", *, preset: "Preset | None" = None
) -> "Backend":
    """Return the backend that a name or a spec stands for; a `Backend` is returned as it is.

    A *preset* says how a chat model that is given by its name is asked; see `Preset`.

    Raises:
        SettingsError: No backend has this name, or the factory does not return a `Backend`.
    """
    from deepera_graph.schema import Backend

    if isinstance(backend, Backend):
        return backend
    if isinstance(backend, str):
        return _load_spec(_spec_of(backend, preset))
    if isinstance(backend, Mapping):
        return _load_spec(dict(backend))
    raise SettingsError(f"backend must be a Backend or its name, got {backend!r:.80}")


def _spec_of(name: str, preset: "Preset | None") -> dict[str, Any]:
    kind, value = parse_name(name)
    if kind == "llm" and not value:
        raise SettingsError("backend 'llm' needs a model: name it as 'provider:model'")
    specs: dict[JudgeKind, dict[str, Any]] = {
        **{plain: dict(spec) for plain, spec in NAMED.items()},
        "encoder": {"kind": "encoder", "model": value},
        "factory": {"kind": "factory", "path": value},
        "llm": _llm_spec(value, preset),
    }
    return specs[kind]


def _llm_spec(name: str, preset: "Preset | None") -> dict[str, Any]:
    spec = {"kind": "llm", "model": name, **(preset.backend if preset else {})}
    if preset is None or preset.cascade is None:
        return spec
    return {"kind": "cascade", "local": "local", "llm": spec, "keep": preset.cascade}


def _load_spec(spec: dict[str, Any]) -> "Backend":
    kind = spec.pop("kind", None)
    if not isinstance(kind, str) or kind not in _BUILDERS:
        hint = suggest_value(kind, _BUILDERS)
        raise SettingsError(f"backend kind must be one of {sorted(_BUILDERS)}, got {kind!r}{hint}")
    return _BUILDERS[kind](spec)


def _local(spec: dict[str, Any]) -> "Backend":
    if spec == {"judge": "rules"}:  # nothing of the trained judge is loaded
        from deepera_graph.judges.heuristic.roles import heuristic_backend

        return heuristic_backend()
    from deepera_graph.judges.trained.backend import local_backend_from_spec

    return local_backend_from_spec(spec)


def _llm(spec: dict[str, Any]) -> "Backend":
    from deepera_graph.judges.llm.backend import llm_backend_from_spec

    return llm_backend_from_spec(spec)


def _encoder(spec: dict[str, Any]) -> "Backend":
    from deepera_graph.judges.cross_encoder.backend import encoder_backend_from_spec

    return encoder_backend_from_spec(spec)


def _mixed(spec: dict[str, Any]) -> "Backend":
    from deepera_graph.judges.cascade import mixed_backend

    return mixed_backend(**{role: load_backend(part) for role, part in spec.items()})


def _screened(spec: dict[str, Any]) -> "Backend":
    from deepera_graph.judges.cascade import screened_backend

    screen, backend = load_backend(spec["screen"]), load_backend(spec["backend"])
    return screened_backend(screen, backend, floor=spec["floor"])


def _cascade(spec: dict[str, Any]) -> "Backend":
    from deepera_graph.judges.cascade import cascade_backend

    return cascade_backend(load_backend(spec["local"]), load_backend(spec["llm"]), spec["keep"])


def _factory(spec: dict[str, Any]) -> "Backend":
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


def _call_factory(path: str) -> "Backend":
    from deepera_graph.schema import Backend

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
