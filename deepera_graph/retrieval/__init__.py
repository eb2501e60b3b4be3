"""Passage stores on Qdrant, the files passages are read from, and conditions on both.

Nothing in the package imports the stores while it is being imported: Qdrant takes about a second to
load. There is one language of conditions for the command line, the server and Python: one is
written ``year>=2015``, or as part of an object: ``{"year": {"gte": 2015}}``. What passages have in
their metadata can all be asked for; papers know `PAPER_FIELDS`.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from deepera_graph.errors import SettingsError

_MOST_NAMES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionInfo:
    """What a collection is."""

    name: str  # as `open_store` takes it
    n_passages: int
    mode: str  # ``sparse``, ``dense`` or ``hybrid``; empty if another program made it
    embeddings: str  # what made its dense vectors, if that was recorded


def find_folder(store: str | Path, collection: str) -> Path | None:
    """Return the folder that Qdrant's embedded mode gives a collection; None if there is none."""
    # It goes when the collection is deleted, and so does what else is in it.
    folder = Path(store, "collection", collection)
    return folder.resolve() if collection and folder.is_dir() else None


def list_collections(store: str | Path) -> list[str]:
    """Return the names of the collections in a folder, without opening it."""
    folder = Path(store, "collection")
    return sorted(one.name for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []


def read_catalogue(store: str | Path) -> list[CollectionInfo] | None:
    """Return what a folder's collections are, by name, without opening them."""
    # None if a collection does not say how it was made, or the folder is not as we know it: then
    # `Catalogue` can tell.
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


MOST_COUNTED = 200  # passages, to say how many a condition leaves out


def describe_unknown(counts: Mapping[str, int]) -> list[str]:
    """Say how many passages have nothing that a condition could be compared with, by field."""
    return [
        f"{n} or more passages have no {name} and were left out"
        if n >= MOST_COUNTED
        else f"{n} {'passages have' if n > 1 else 'passage has'} no {name} and "
        f"{'were' if n > 1 else 'was'} left out"
        for name, n in counts.items()
    ]


Where = Mapping[str, Any] | str | Sequence[str]
SIGNS = {">=": "gte", "<=": "lte", "!=": "not", ">": "gt", "<": "lt", "~": "contains", "=": ""}
PAPER_FIELDS = ("year", "date", "journal", "id", "undated")
_ALIKE = (("journal", "venue"), ("authors", "author", "Author", "Authors"))  # names of one field
_CONDITION = re.compile(r"\s*([^=<>!~]*[^=<>!~\s])\s*(>=|<=|!=|=>|=<|==|>|<|~|=)\s*(.*)", re.DOTALL)
_SLIPS = {"=>": ">=", "=<": "<=", "==": "="}
_AND = re.compile(r"\s+and\s+(?=[\w.]+\s*(?:[=<>~]|!=))")


def read_where(
    where: Where | None, read_words: Callable[[str], Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """Return conditions as an object, from however they are written; all of them must hold.

    Bounds of one field make a range. *read_words* reads what has no sign, such as "since 2015".
    """
    if where is None or isinstance(where, Mapping):
        return dict(where or {})
    conditions: dict[str, Any] = {}
    texts = [where] if isinstance(where, str) else where
    for text in (one for given in texts for one in _AND.split(given)):
        found = _CONDITION.fullmatch(text)
        if found is not None:
            sign, value = SIGNS[_SLIPS.get(found[2], found[2])], _read_value(found[3])
            name = found[1]
            new = {name: {sign: value} if sign else value}
        elif read_words is not None:
            new = {name: dict(value) for name, value in read_words(text).items()}
        else:
            raise SettingsError(f"where: a condition is FIELD=VALUE or 'year>=2015', got {text!r}")
        for name, value in new.items():
            earlier = conditions.get(name)
            is_range = isinstance(earlier, dict) and isinstance(value, dict)
            conditions[name] = {**conditions[name], **value} if is_range else value
    return conditions


def _read_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def spell_field(name: str) -> tuple[str, ...]:
    """Return the names that a field of metadata may have: what makes files differs in them."""
    return next((names for names in _ALIKE if name in names), (name,))
