"""Where the judgement cache is, as the user says it."""

import os
from pathlib import Path

from deepera_graph.cache.store import JudgementCache
from deepera_graph.errors import SettingsError

OFF = "off"
FILE_NAME = "judgements.sqlite3"


def default_cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/deepera``, or ``~/.cache/deepera``.

    Raises:
        SettingsError: This user has no home folder.

    Source:
        XDG Base Directory Specification 0.8: an empty or relative variable counts as not set.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():
        return base / "deepera"
    try:
        return Path.home() / ".cache" / "deepera"
    except RuntimeError as error:
        raise SettingsError(
            f"no folder for the judgement cache: {error}; name one, or set XDG_CACHE_HOME"
        ) from error


def open_cache(where: str | Path | None = None) -> JudgementCache | None:
    """Open the cache in a folder, made if missing; None in the default folder; "off" gives None.

    Raises:
        SettingsError: *where* is empty.
        StoreError: The folder or the file in it cannot be used; the message says what to do.
    """
    if where == OFF:
        return None
    if where == "":
        raise SettingsError("cache must be a folder or 'off', got ''")
    folder = default_cache_folder() if where is None else Path(where).expanduser()
    return JudgementCache(folder / FILE_NAME).open()
