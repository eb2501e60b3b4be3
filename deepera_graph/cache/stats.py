"""What a judgement cache holds."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_PARTS = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a judgement cache holds.

    Attributes:
        entries: Stored answers by role, in the order of the alphabet.
        n_bytes: Size on disk with SQLite's own side files, or in memory, >= 0.
        oldest: When the oldest answer was stored, in UTC; None if there is none.
        newest: When the newest answer was stored, in UTC; None if there is none.
    """

    entries: Mapping[str, int]
    n_bytes: int
    oldest: datetime | None
    newest: datetime | None

    @property
    def n_entries(self) -> int:
        """Stored answers of all roles."""
        return sum(self.entries.values())


def read_stats(connection: sqlite3.Connection, path: Path | None) -> CacheStats:
    """Count what is behind a connection; *path* is its file, None for memory."""
    rows = connection.execute(
        "SELECT role, count(*), min(created), max(created)"
        " FROM judgement GROUP BY role ORDER BY role"
    ).fetchall()
    return CacheStats(
        entries={role: count for role, count, _, _ in rows},
        n_bytes=_bytes_in_memory(connection) if path is None else _bytes_on_disk(path),
        oldest=datetime.fromtimestamp(min(row[2] for row in rows), UTC) if rows else None,
        newest=datetime.fromtimestamp(max(row[3] for row in rows), UTC) if rows else None,
    )


def _bytes_on_disk(path: Path) -> int:
    files = (path.with_name(path.name + part) for part in _PARTS)
    return sum(file.stat().st_size for file in files if file.exists())


def _bytes_in_memory(connection: sqlite3.Connection) -> int:
    pages, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
    )
    return int(pages * size)
