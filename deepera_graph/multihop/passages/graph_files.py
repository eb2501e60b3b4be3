"""The files of a graph of neighbours: a manifest, ids, and arrays that are memory-mapped."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from deepera_graph.errors import StoreError
from deepera_graph.stores.nearest import Array

_FORMAT = 1
_MANIFEST = "graph.json"
_STAMP = 12  # characters of the fingerprint in names of files
_ARRAYS = {"meaning": ("vectors",), "words": ("starts", "terms", "counts")}
_EDGES = ("places", "scores", "digests")


@dataclass(frozen=True, eq=False)
class GraphFiles:
    """What a folder holds."""

    kind: str
    made_with: str
    k: int
    ids: Sequence[str]
    space: Mapping[str, Array]  # arrays of the space, by the names its constructor has for them
    edges: Mapping[str, Array]  # ``places``, ``scores`` and ``digests``

    @cached_property
    def fingerprint(self) -> str:
        """What the graph is of: embeddings, k, ids and texts."""
        found = blake2b(digest_size=16)
        head = {"kind": self.kind, "made_with": self.made_with, "k": self.k, "format": _FORMAT}
        found.update(json.dumps([head, *self.ids]).encode())
        found.update(np.ascontiguousarray(self.edges["digests"]).tobytes())
        return found.hexdigest()

    def save(self, place: Path) -> None:
        """Write a folder in the place of one that is there.

        Whoever has that one open keeps it; a write that is cut short leaves it as it was.

        Raises:
            StoreError: The folder cannot be written.
        """
        stamp = self.fingerprint[:_STAMP]
        about = {
            "format": _FORMAT,
            "kind": self.kind,
            "made_with": self.made_with,
            "k": self.k,
            "n_passages": len(self.ids),
            "fingerprint": self.fingerprint,
        }
        try:
            place.mkdir(parents=True, exist_ok=True)
            written = [_write(place / f"ids-{stamp}.json", json.dumps(self.ids).encode())]
            for name, array in {**self.space, **self.edges}.items():
                written.append(_write(place / f"{name}-{stamp}.npy", array))
            written.append(_write(place / _MANIFEST, json.dumps(about, indent=1).encode()))
            for other in {*place.glob("*-*.npy"), *place.glob("ids-*.json")} - {*written}:
                other.unlink()
        except OSError as error:
            raise StoreError(f"the graph cannot be written to {str(place)!r}: {error}") from error


def load_files(place: Path) -> GraphFiles:
    """Open a folder that was saved.

    Raises:
        StoreError: There is no graph in the folder, it is damaged, or of another version.
    """
    about = _read_manifest(place)
    try:
        stamp, kind = about["fingerprint"][:_STAMP], about["kind"]
        ids = json.loads((place / f"ids-{stamp}.json").read_bytes())
        edges, space = (
            {name: np.load(place / f"{name}-{stamp}.npy", mmap_mode="r") for name in names}
            for names in (_EDGES, _ARRAYS[kind])
        )
        found = GraphFiles(kind, about["made_with"], about["k"], ids, space, edges)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"the graph in {str(place)!r} is damaged: {error}") from error
    if found.fingerprint != about["fingerprint"]:
        raise StoreError(f"the graph in {str(place)!r} is damaged: it is not what was saved")
    return found


def _read_manifest(place: Path) -> dict[str, Any]:
    try:
        about = json.loads((place / _MANIFEST).read_bytes())
    except FileNotFoundError as error:
        raise StoreError(f"there is no graph in {str(place)!r}") from error
    except (OSError, ValueError) as error:
        raise StoreError(f"the graph in {str(place)!r} is damaged: {error}") from error
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise StoreError(f"the graph in {str(place)!r} is of another version: build it again")
    return about


def _write(path: Path, content: bytes | Array) -> Path:
    """Write a file beside its place, and move it there."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            np.save(file, content)
    part.replace(path)
    return path
