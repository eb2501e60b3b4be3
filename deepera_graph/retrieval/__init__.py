"""Passage stores on Qdrant, and the files passages are read from.

Nothing else in the package imports this folder while it is being imported: Qdrant takes about a
second to load.
"""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

_MOST_NAMES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionInfo:
    """What a collection is.

    Attributes:
        name: As `open_store` takes it.
        n_passages: How many it holds.
        mode: ``sparse``, ``dense`` or ``hybrid``; empty if another program made it.
        embeddings: What made its dense vectors, if that was recorded.
    """

    name: str
    n_passages: int
    mode: str
    embeddings: str


def find_folder(store: str | Path, collection: str) -> Path | None:
    """Return the folder that Qdrant's embedded mode gives a collection; None if there is none.

    It goes when the collection is deleted, and so does what else is in it.
    """
    folder = Path(store, "collection", collection)
    return folder.resolve() if collection and folder.is_dir() else None


def list_collections(store: str | Path) -> list[str]:
    """Return the names of the collections in a folder, without opening it."""
    folder = Path(store, "collection")
    return sorted(one.name for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []


def read_catalogue(store: str | Path) -> list[CollectionInfo] | None:
    """Return what a folder's collections are, by name, without opening them.

    None if a collection does not say how it was made, or the folder is not as we know it: then
    `Catalogue` can tell.
    """
    folder, found = Path(store), []
    try:
        known = json.loads((folder / "meta.json").read_bytes())["collections"]
        for name, config in sorted(known.items()):
            about = config["metadata"]["deepera"]
            file = (folder / "collection" / name / "storage.sqlite").resolve()
            with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as db:
                (n,) = db.execute("SELECT COUNT(*) FROM points").fetchone()
            how = {"mode": about["mode"], "embeddings": str(about.get("embeddings") or "")}
            found.append(CollectionInfo(name=name, n_passages=n, **how))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, sqlite3.Error):
        return None
    return found


def explain_field(name: str, known: Sequence[str]) -> str:
    """Say that no passage has a field in its metadata, and which fields there are."""
    spelt = {one.casefold(): one for one in known}
    close = get_close_matches(name.partition(".")[0].casefold(), spelt, n=1)
    hint = f"did you mean {spelt[close[0]]!r}? " if close and "." not in name else ""
    more = ", ..." if len(known) > _MOST_NAMES else ""
    return (
        f"no passage has metadata {name!r}; {hint}"
        f"known: {', '.join(known[:_MOST_NAMES]) or 'none'}{more}"
    )
