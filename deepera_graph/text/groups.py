"""Groups of items that share a key, or are joined by others."""

from collections.abc import Sequence


def find_groups(keys: Sequence[Sequence[str]]) -> list[str]:
    """Return the group of each item: those that share a key, or are joined by others, share it."""
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        parent.setdefault(key, key)
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for its in keys:
        for key in its:
            one, two = sorted((root(its[0]), root(key)))
            parent[two] = one
    return [root(its[0]) for its in keys]
