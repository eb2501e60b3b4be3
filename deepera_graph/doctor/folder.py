"""Folders that may not be there yet."""

import tempfile
from pathlib import Path


def why_unwritable(folder: Path) -> str:
    """Say why *folder* could not be made and written to; empty if it could.

    A file is made in the nearest folder that exists and is removed again: permission bits alone say
    nothing of a read-only or full disk.
    """
    try:
        nearest = folder
        while not nearest.exists() and nearest != nearest.parent:
            nearest = nearest.parent
        with tempfile.TemporaryFile(dir=nearest):
            return ""
    except OSError as error:
        return error.strerror or str(error)
