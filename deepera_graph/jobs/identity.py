"""What a run was: all that its lines depend on beside the questions, and how two runs differ."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from deepera_graph.reranker import EvidenceReranker
from deepera_graph.run import versions

_SECRET_PARTS_OF_URL = re.compile(r"(?<=://)[^/@\s]*@|\?\S*")
_OF_NO_EFFECT = ("settings.budget", "settings.max_concurrency", "versions")
_PACKAGE = "versions.deepera-graph"
_MOST_CHARS = 60
_MISSING = "not set"


def identity_of(reranker: EvidenceReranker) -> dict[str, Any]:
    """Return backend, model, prompts, settings and versions, as JSON values without secrets.

    Raises:
        SettingsError: The backend was made from live objects and cannot be told from others.
    """
    backend = reranker.backend
    identity = {
        "backend": backend.name,
        **backend.about,
        "spec": _without_secrets(backend.fingerprint()["spec"]),
        "settings": reranker.settings.to_dict(),
        "versions": dict(versions()),
    }
    plain: dict[str, Any] = json.loads(json.dumps(identity, default=str))
    return plain


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Name what makes the lines of two runs differ: ``settings.threshold was 0.8 and is 0.7``.

    What a run may cost, how much it does at once, and the versions of other packages make no
    difference.
    """
    old, new = dict(_leaves(before)), dict(_leaves(now))
    return [
        f"{name} was {_shown(old, name)} and is {_shown(new, name)}"
        for name in sorted(old.keys() | new.keys())
        if _counts(name) and old.get(name) != new.get(name)
    ]


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_secrets(part) for key, part in value.items()}
    if isinstance(value, str) and "://" in value:
        return _SECRET_PARTS_OF_URL.sub("", value)
    return value


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from _leaves(part, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def _counts(name: str) -> bool:
    inside = any(name == one or name.startswith(f"{one}.") for one in _OF_NO_EFFECT)
    return name == _PACKAGE or not inside


def _shown(leaves: Mapping[str, Any], name: str) -> str:
    text = repr(leaves[name]) if name in leaves else _MISSING
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}..."
