"""Taking answers out of a judgement cache: unused ones, or as many as are too many."""

import logging
import math
import sqlite3

from deepera_graph.errors import SettingsError

_logger = logging.getLogger(__name__)


def check_limits(older_than_days: float | None, max_bytes: int | None) -> None:
    """Check what to prune.

    Raises:
        SettingsError: Neither limit is given, or one is negative or no number.
    """
    if older_than_days is None and max_bytes is None:
        raise SettingsError("prune needs older_than_days, max_bytes or both, got neither")
    for name, limit in (("older_than_days", older_than_days), ("max_bytes", max_bytes)):
        if limit is not None and not (math.isfinite(limit) and limit >= 0):
            raise SettingsError(f"{name} must be >= 0, got {limit!r}")


def remove_unused(connection: sqlite3.Connection, before: int) -> int:
    """Remove what was last used before a time in seconds since 1970; return how many."""
    return connection.execute("DELETE FROM judgement WHERE last_used <= ?", (before,)).rowcount


def remove_oldest(connection: sqlite3.Connection, max_bytes: int) -> int:
    """Remove the least recently used until the rest has at most *max_bytes*; return how many.

    Of entries last used on the same day, which is all that is known, the older one goes first.
    """
    return connection.execute(
        "DELETE FROM judgement WHERE key IN (SELECT key FROM (SELECT key, sum(size) OVER"
        " (ORDER BY last_used DESC, created DESC, key) AS total FROM judgement) WHERE total > ?)",
        (max_bytes,),
    ).rowcount


def compact(connection: sqlite3.Connection, n_removed: int) -> int:
    """Give the space of removed entries back to the disk, if nobody is in the way.

    Returns:
        *n_removed*.
    """
    try:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError as error:  # the entries are gone all the same
        _logger.info("the judgement cache was not made smaller: %s", error)
    return n_removed
