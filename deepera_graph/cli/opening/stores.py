"""The collection that is searched or filled, its embeddings, and what is kept beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from deepera_graph.cli.opening.judges import search_here
from deepera_graph.cli.shared import options
from deepera_graph.errors import MissingStoreError, SettingsError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from deepera_graph.multihop.passages.graph import NeighbourGraph
    from deepera_graph.retrieval.collections.collection import Mode
    from deepera_graph.retrieval.collections.passage_store import PassageStore

_OPTION = "--embeddings"


def find_embeddings(embeddings: str | None) -> Embeddings | None:
    """Build the embeddings that `--embeddings` names; None if it was not given."""
    if embeddings is None:
        return None
    from deepera_graph.judges import embeddings as named

    search_here()
    return named.find_embeddings(embeddings, what=_OPTION)


def find_recorded(store: options.StoreOptions, recorded: str) -> Embeddings | None:
    """Return the embeddings that a collection was made with: ours, or those that are configured."""
    from deepera_graph.judges.embeddings import LOCAL, name_recorded

    name = name_recorded(recorded)
    if store.embeddings is None and name != LOCAL:
        shown = name or "MODULE:FACTORY, a function that makes them"
        raise SettingsError(
            f"collection {store.collection!r} was made with {recorded}: give {_OPTION} {shown}"
        )
    return find_embeddings(store.embeddings or LOCAL)


def check_name(embeddings: str) -> None:
    """Raise `SettingsError` unless this may be the name of embeddings."""
    from deepera_graph.judges.embeddings import split_name

    split_name(embeddings, _OPTION)


_SERVER_KEY_VARIABLE = "QDRANT_API_KEY"
_NEIGHBOURS = "neighbours"
_WAIT = 2.0  # seconds that a server may need for a search, before it lets go of a folder


def open_collection(
    store: options.StoreOptions, *, mode: Mode | None = None, must_exist: bool
) -> PassageStore:
    """Open the collection."""
    if not store.collection:
        given = "" if store.collection is None else ", got ''"
        raise SettingsError(f"--collection must name a collection{given}")
    place = place_of(store)
    from deepera_graph.retrieval.collections.store import open_store

    by_default = must_exist and "embeddings" in options.taken
    return open_store(
        store.collection,
        **place,
        mode=mode,
        embeddings=None if by_default else find_embeddings(store.embeddings),
        find_embeddings=partial(find_recorded, store),
        must_exist=must_exist,
        wait=_WAIT,
    )


def place_of(store: options.PlaceOptions) -> dict[str, Any]:
    """Return folder, address and key of a store, as `open_store` takes them."""
    if store.path == ":memory:":
        raise SettingsError("--path must be a folder; ':memory:' ends with this command")
    on_server = store.qdrant_url is not None
    return {
        "path": store.path if on_server else store.path or data_folder(),
        "url": store.qdrant_url,
        "api_key": server_key() if on_server else None,
    }


def data_folder() -> Path:
    """Return the folder of local collections, by the XDG base directory specification."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "deepera"


def server_key() -> str | None:
    """Return the key of a Qdrant server, from the environment."""
    return os.environ.get(_SERVER_KEY_VARIABLE)


def find_collection_folder(store: options.StoreOptions) -> Path | None:
    """Return the folder of a local collection; None if there is none yet, or it is on a server."""
    from deepera_graph.retrieval import find_folder

    path = place_of(store)["path"]
    return None if path is None or store.collection is None else find_folder(path, store.collection)


def keep_with(folder: Path | None, keep: options.KeepOptions) -> dict[str, Any]:
    """Return where the local judge keeps vectors, as `local_backend` takes it; nothing if off."""
    given = keep.keep_vectors
    if given is not None and given != "off" and not (given.isdecimal() and int(given) >= 1):
        raise SettingsError(f"--keep-vectors must be a whole number >= 1 or 'off', got {given!r}")
    if folder is None or given == "off":
        return {}
    return {"keep_in": str(folder), **({} if given is None else {"keep_mb": int(given)})}


def keep_embedded(opened: PassageStore, keep: options.KeepOptions) -> Callable[[list[str]], None]:
    """Return what keeps vectors of texts that the local judge has just embedded for a store."""
    from deepera_graph.judges.embeddings import LOCAL, name_recorded

    how = keep_with(opened.folder, keep)
    if not how or name_recorded(opened.embeddings_name or "") != LOCAL:
        return lambda _: None
    from deepera_graph.judges.trained.backend import local_model

    return local_model(**how).encoder.keep_held


def neighbours_of(place: options.PlaceOptions, collection: str) -> Path:
    """Return the folder of a collection's neighbours: beside it, or for a server's one here."""
    name = quote(collection, safe="")
    if place.qdrant_url is None:
        return Path(place.path or data_folder()) / _NEIGHBOURS / name
    server = re.split("//|@", place.qdrant_url)[-1].rstrip("/")  # without a login
    return data_folder() / _NEIGHBOURS / quote(server, safe="") / name


def load_neighbours(store: options.StoreOptions) -> NeighbourGraph:
    """Open the neighbours of a collection."""
    from deepera_graph.multihop.passages.graph import NeighbourGraph

    folder = neighbours_of(store, store.collection or "")
    if not folder.is_dir():
        raise MissingStoreError(
            f"collection {store.collection!r} has no neighbours yet: "
            f"deepera index SOURCE --collection {store.collection} --neighbours 16"
        )
    return NeighbourGraph.load(folder)
