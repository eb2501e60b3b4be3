"""Which files with a configuration were trusted to set what can do harm.

A file that is found lies in a folder that may be somebody else's. What it says by itself is a
number, a choice or a plain name; what names code, a file, a folder, a server, a model or a variable
counts only once the file was trusted, or where the user names the file.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from deepera_graph.errors import SettingsError
from deepera_graph.text.jsonl import replacing

NAME = "trusted.json"


def is_trusted(file: Path, table: Mapping[str, Any]) -> bool:
    """Tell whether a file was trusted as it is: with just these options and values."""
    return _read().get(_key(file)) == _hash(table)


def remember(file: Path, table: Mapping[str, Any]) -> None:
    """Trust a file as it is."""
    with _change() as trusted:
        trusted[_key(file)] = _hash(table)


def forget(file: Path) -> bool:
    """Trust a file no more; tell whether it was, as it is or as it once was."""
    with _change() as trusted:
        return trusted.pop(_key(file), None) is not None


def _key(file: Path) -> str:
    return str(file.resolve())


def _hash(table: Mapping[str, Any]) -> str:
    return sha256(json.dumps(table, sort_keys=True, default=str).encode()).hexdigest()


def _place() -> Path:
    """Return the file that remembers: in ``$XDG_CONFIG_HOME/deepera``, or ``~/.config/deepera``."""
    # Source: XDG Base Directory Specification 0.8: an empty or relative variable counts as not set.
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    try:
        return (base if base.is_absolute() else Path.home() / ".config") / "deepera" / NAME
    except RuntimeError as error:
        raise SettingsError(
            f"no folder for what is trusted: {error}; set XDG_CONFIG_HOME"
        ) from error


def _read() -> dict[str, str]:
    place = _place()
    try:
        plain = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"{place} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SettingsError(f"{place} is not JSON: {error}; remove it") from error
    if not isinstance(plain, dict):
        raise SettingsError(f"{place} is no JSON object; remove it")
    return plain


@contextmanager
def _change() -> Iterator[dict[str, str]]:
    """Give what is remembered, and write it anew; other processes read the old or the new."""
    place, trusted = _place(), _read()
    yield trusted
    place.parent.mkdir(parents=True, exist_ok=True)
    with replacing(place) as file:
        file.write(json.dumps(trusted, indent=1, sort_keys=True).encode())
