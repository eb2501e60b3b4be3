"""Files and folders that results go to: nothing is lost by accident."""

import os
from collections.abc import Iterable
from pathlib import Path

from deepera_graph.errors import SettingsError


def check_file(path: Path, *, overwrite: bool) -> None:
    """Raise `SettingsError` if a file would be lost, or cannot be written."""
    if path.is_dir() or not os.access(path.absolute().parent, os.W_OK):
        raise SettingsError(f"--out must be a file that can be written, got {str(path)!r}")
    if path.exists() and not overwrite:
        raise SettingsError(f"{str(path)!r} exists; give --overwrite to replace it")


def check_folder(folder: Path | None, names: Iterable[str], *, overwrite: bool) -> None:
    """Raise `SettingsError` if a file of the folder would be lost, or the folder is a file."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"--out must be a folder, got the file {str(folder)!r}")
    for name in names:
        if (folder / name).exists() and not overwrite:
            raise SettingsError(f"{str(folder / name)!r} exists; give --overwrite to replace it")
