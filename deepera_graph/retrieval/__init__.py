"""Passage stores on Qdrant, and the files passages are read from.

Nothing else in the package imports this folder while it is being imported: Qdrant takes about a
second to load.
"""

from pathlib import Path

# Names that papers use for models of sentence-transformers, and where these are.
SHORT_NAMES = {
    "bge-large-en": "BAAI/bge-large-en",
    "bge-base-en": "BAAI/bge-base-en",
    "bge-small-en": "BAAI/bge-small-en",
}


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
