"""What `deepera cache stats`, `clear` and `prune` do."""

from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import typer

from deepera_graph.cache.store import (
    FILE_NAME,
    OFF,
    CacheStats,
    JudgementCache,
    default_cache_folder,
    open_cache,
)
from deepera_graph.cli.work.terminal import write_json
from deepera_graph.errors import SettingsError

BYTES_PER_MB = 1_000_000
_EMPTY = CacheStats(entries={}, n_bytes=0, oldest=None, newest=None)


def stats(where: str | None, *, as_json: bool) -> None:
    """Say what a cache holds.

    Raises:
        SettingsError: There is no cache in the folder that was named.
        StoreError: The cache cannot be used.
    """
    folder, cache = _folder(where), _existing(where)
    if cache is None:
        found = _EMPTY
    else:
        with closing(cache):
            found = cache.stats()
    if as_json:
        write_json(_plain(folder, found))
        return
    typer.echo(f"{found.n_entries} answers in {folder}, {found.n_bytes / BYTES_PER_MB:.1f} MB")
    for role, count in found.entries.items():
        typer.echo(f"{role:>12}: {count}")
    if found.oldest and found.newest:
        typer.echo(f"stored between {found.oldest:%Y-%m-%d} and {found.newest:%Y-%m-%d}")


def clear(where: str | None, *, as_json: bool, quiet: bool) -> None:
    """Remove everything.

    Raises:
        SettingsError: There is no cache in the folder that was named.
        StoreError: The cache cannot be used.
    """
    n_removed = 0
    cache = _existing(where)
    if cache is not None:
        with closing(cache):
            n_removed = cache.clear()
    _tell_removed(where, n_removed, as_json=as_json, quiet=quiet)


def prune(
    where: str | None,
    *,
    older_than: float | None,
    max_mb: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Remove what was not used for long, or is too much.

    Raises:
        SettingsError: No limit is given, one is no number, or there is no cache in the folder
            that was named.
        StoreError: The cache cannot be used.
    """
    if older_than is None and max_mb is None:
        raise SettingsError("give --older-than, --max-mb or both")
    n_removed = 0
    cache = _existing(where)
    if cache is not None:
        with closing(cache):
            n_removed = cache.prune(
                older_than_days=older_than,
                max_bytes=None if max_mb is None else max_mb * BYTES_PER_MB,
            )
    _tell_removed(where, n_removed, as_json=as_json, quiet=quiet)


def _tell_removed(where: str | None, n_removed: int, *, as_json: bool, quiet: bool) -> None:
    folder = _folder(where)
    if as_json:
        write_json({"folder": str(folder), "removed": n_removed})
    elif not quiet:
        typer.echo(f"{n_removed} answers removed from {folder}")


def _existing(where: str | None) -> JudgementCache | None:
    """Open a cache; None if the default folder has none yet."""
    folder = _folder(where)
    if (folder / FILE_NAME).exists():
        return open_cache(folder)
    if where is None:
        return None
    raise SettingsError(f"there is no judgement cache in {str(folder)!r}")


def _folder(where: str | None) -> Path:
    if where in ("", OFF):
        raise SettingsError(f"--cache must be a folder, got {where!r}")
    return default_cache_folder() if where is None else Path(where).expanduser()


def _plain(folder: Path, found: CacheStats) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "answers": found.n_entries,
        "roles": dict(found.entries),
        "bytes": found.n_bytes,
        "oldest": _time(found.oldest),
        "newest": _time(found.newest),
    }


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
