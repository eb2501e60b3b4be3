"""`deepera cache`: what the judgement cache holds, and how to make it smaller."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deepera_graph.cli.shared.console import tell, tell_done
from deepera_graph.cli.shared.declaring import A_KEY, opt
from deepera_graph.errors import SettingsError

if TYPE_CHECKING:
    from deepera_graph.stores.judgements import CacheStats, JudgementCache

BYTES_PER_MB = 1_000_000


@dataclass(frozen=True, kw_only=True)
class FolderOptions:
    """Which cache it is."""

    cache: str | None = opt(
        "Folder of the cache.",
        config=A_KEY,
        metavar="DIR",
        shown="$XDG_CACHE_HOME/deepera or ~/.cache/deepera",
    )
    as_json: bool = opt("Write JSON, for programs.", "--json", default=False)


@dataclass(frozen=True, kw_only=True)
class ClearOptions(FolderOptions):
    """Which cache it is, and whether to say what was done."""

    quiet: bool = opt("No closing line.", "--quiet", "-q", default=False)


@dataclass(frozen=True, kw_only=True)
class PruneOptions:
    """What is removed."""

    older_than: float | None = opt(
        "Remove what was not used for this many days.", metavar="DAYS", least=0
    )
    max_mb: int | None = opt(
        "Then remove what was not used for longest, until N megabytes are left.",
        metavar="N",
        least=0,
    )


def stats(*, chosen: FolderOptions) -> None:
    """Say how many replies the cache holds, and how large it is."""
    from deepera_graph.stores.judgements import CacheStats

    folder, opened = _folder(chosen.cache), _open(chosen.cache)
    found = CacheStats(entries={}, n_bytes=0, oldest=None, newest=None)
    if opened is not None:
        with closing(opened):
            found = opened.stats()
    plain = {
        "folder": str(folder),
        "answers": found.n_entries,
        "roles": dict(found.entries),
        "bytes": found.n_bytes,
        "oldest": found.oldest and found.oldest.isoformat(),
        "newest": found.newest and found.newest.isoformat(),
    }
    tell(chosen, plain, lambda: _describe(folder, found))


def _describe(folder: Path, found: CacheStats) -> str:
    lines = [f"{found.n_entries} answers in {folder}, {found.n_bytes / BYTES_PER_MB:.1f} MB"]
    lines += [f"{role:>12}: {count}" for role, count in found.entries.items()]
    if found.oldest and found.newest:
        lines.append(f"stored between {found.oldest:%Y-%m-%d} and {found.newest:%Y-%m-%d}")
    return "\n".join(lines)


def clear(*, chosen: ClearOptions) -> None:
    """Remove every reply."""
    _remove(chosen, lambda opened: opened.clear())


def prune(*, chosen: ClearOptions, limits: PruneOptions) -> None:
    """Remove replies that were not used for long, or are too many."""
    if limits.older_than is None and limits.max_mb is None:
        raise SettingsError("give --older-than, --max-mb or both")
    max_bytes = None if limits.max_mb is None else limits.max_mb * BYTES_PER_MB
    _remove(
        chosen,
        lambda opened: opened.prune(older_than_days=limits.older_than, max_bytes=max_bytes),
    )


def _remove(chosen: ClearOptions, remove: Callable[[JudgementCache], int]) -> None:
    folder, opened, n_removed = _folder(chosen.cache), _open(chosen.cache), 0
    if opened is not None:
        with closing(opened):
            n_removed = remove(opened)
    plain = {"folder": str(folder), "removed": n_removed}
    tell_done(chosen, plain, lambda: f"{n_removed} answers removed from {folder}")


def _open(where: str | None) -> JudgementCache | None:
    """Open a cache; None if the default folder has none yet."""
    from deepera_graph.stores.judgements import FILE_NAME, open_cache

    folder = _folder(where)
    if (folder / FILE_NAME).exists():
        return open_cache(folder)
    if where is None:
        return None
    raise SettingsError(f"no judgement cache in {str(folder)!r}")


def _folder(where: str | None) -> Path:
    from deepera_graph.stores.judgements import OFF, default_cache_folder

    if where in ("", OFF):
        raise SettingsError(f"--cache must be a folder, got {where!r}")
    return default_cache_folder() if where is None else Path(where).expanduser()
