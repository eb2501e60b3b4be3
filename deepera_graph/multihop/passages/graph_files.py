"""What a graph of neighbours is made of: the passages that are read, and its files."""

import json
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from deepera_graph.errors import InputError, SettingsError, StoreError
from deepera_graph.settings.ranges import check_at_least
from deepera_graph.stores.embeddings import check_units, name_embeddings
from deepera_graph.stores.nearest import NOBODY, Array, Floats, Nearest, order_rows, rank_ids, stack
from deepera_graph.stores.words import DECIMALS, join_title, name_passage
from deepera_graph.text.jsonl import replacing

if TYPE_CHECKING:
    from deepera_graph.retrieval.collections.passage_store import PassageStore


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
    """Open a folder that was saved."""
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
        raise StoreError(f"no graph in {str(place)!r}") from error
    except (OSError, ValueError) as error:
        raise StoreError(f"the graph in {str(place)!r} is damaged: {error}") from error
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise StoreError(f"the graph in {str(place)!r} is of another version: build it again")
    return about


def _write(path: Path, content: bytes | Array) -> Path:
    with replacing(path) as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            np.save(file, content)
    return path


Progress = Callable[[int], None]
_AT_ONCE = 256  # texts embedded in one call
_ASKED_AT_ONCE = 64  # vectors a store is asked about in one call


class ReadPassage(NamedTuple):
    """A passage as the graph sees it: the text that is compared, and its digest."""

    text: str
    digest: int


def read_passages(passages: Iterable[Document]) -> dict[str, ReadPassage]:
    """Return passages by id; one id with two texts, or a passage without one, is an error."""
    read: dict[str, ReadPassage] = {}
    for passage in passages:
        name, text = name_passage(passage), join_title(passage)
        if not passage.page_content.strip():
            raise InputError(f"passage {name!r} has no text")
        one = ReadPassage(text, digest_text(text))
        if read.setdefault(name, one).digest != one.digest:
            raise InputError(f"two passages with different texts have the id {name!r}")
    return read


def digest_text(text: str) -> int:
    """Return 64 bits that tell texts apart."""
    plain = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(plain, digest_size=8).digest(), "little")


def digests_of(read: Mapping[str, ReadPassage]) -> Array:
    """Return the digests, shape (n_passages,)."""
    return np.array([one.digest for one in read.values()], np.uint64)


def check_store(store: object) -> None:
    """Raise `SettingsError` unless all passages of a store can be read."""
    if not callable(getattr(store, "scan", None)):
        raise SettingsError(
            "a passage store is needed, which open_store(...) opens, got "
            f"{type(store).__name__}; use NeighbourGraph.build(documents, embeddings)"
        )


def check_k(k: int, n_passages: int) -> None:
    """Raise `SettingsError` unless every passage can have *k* neighbours."""
    check_at_least("k", k, 1)
    if k >= n_passages:
        raise SettingsError(f"k must be below the number of passages, {n_passages}, got {k}")


def embed_passages(
    read: Mapping[str, ReadPassage], embeddings: Embeddings, on_progress: Progress | None
) -> Floats:
    """Return the unit vectors of passages, shape (n_passages, n_dimensions)."""
    names, parts = [*read], []
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        made = embeddings.embed_documents([read[name].text for name in some])
        parts.append(check_units(made, some, "passage"))
        if on_progress is not None:
            on_progress(start + len(some))
    return np.concatenate(parts)


def read_vectors(
    store: "PassageStore", on_progress: Progress | None
) -> tuple[dict[str, ReadPassage], Floats]:
    """Return the passages of a store, and their unit vectors, shape (n_passages, n_dimensions)."""
    read: dict[str, ReadPassage] = {}
    vectors = []
    for one in store.scan(vectors=True):
        read |= read_passages([one.passage])
        vectors.append(array("f", one.vector or ()))
        if on_progress is not None and len(vectors) % _AT_ONCE == 0:
            on_progress(len(vectors))
    return read, check_units(vectors, [*read], "passage")


def ask_store(store: "PassageStore", ids: Sequence[str], vectors: Floats, k: int) -> Nearest:
    """Return what the store finds near each of its passages, in the order of cosines, then ids."""
    known, ranks, found = {name: place for place, name in enumerate(ids)}, rank_ids(ids), []
    for start in range(0, len(ids), _ASKED_AT_ONCE):
        block = vectors[start : start + _ASKED_AT_ONCE]
        asked = store.search_near(block.tolist(), k + 1)
        places = np.full((len(block), k + 1), NOBODY, np.int32)
        scores = np.full(places.shape, -np.inf)
        for row, near in enumerate(asked):
            others = [one for one in near if known.get(one.id, start + row) != start + row]
            places[row, : len(others)] = [known[one.id] for one in others]
            scores[row, : len(others)] = [round(one.cosine, DECIMALS) for one in others]
        found.append(order_rows(places, scores, ranks).first(k))
    return stack(found, k)


def check_made_with(using: Embeddings | None, made_with: str) -> Embeddings:
    """Raise `SettingsError` unless the vectors of a graph were made with these embeddings."""
    if using is None:
        raise SettingsError(f"the graph was built with {made_with}: give these embeddings")
    if name_embeddings(using) != made_with:
        raise SettingsError(f"the graph was built with {made_with}, got {name_embeddings(using)}")
    return using
