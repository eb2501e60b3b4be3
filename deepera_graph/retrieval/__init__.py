"""Passage stores on Qdrant, and the files passages are read from.

Nothing else in the package imports this folder while it is being imported: Qdrant takes about a
second to load.
"""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

_MOST_NAMES = 12


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
