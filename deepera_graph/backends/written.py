"""How a backend that is made of others is written down."""

from collections.abc import Mapping
from typing import Any

from deepera_graph.roles import Backend


def written(kind: str, parts: Mapping[str, Backend]) -> dict[str, Any] | None:
    """Return the spec of a backend of this kind; None if a part cannot be written down."""
    specs = {role: part.spec for role, part in parts.items()}
    if any(spec is None for spec in specs.values()):
        return None
    return {"kind": kind, **{role: dict(spec or {}) for role, spec in specs.items()}}
