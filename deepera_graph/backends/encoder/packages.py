"""Packages that only some models need, and what their errors become."""

import re
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, TypeVar

from deepera_graph.errors import SettingsError

T = TypeVar("T")
_LONGEST = 240
_ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-f]+")


def needed(module: str, *, extra: str, before: str = "") -> Any:
    """Import a module of an extra.

    Args:
        module: Its name.
        extra: What brings it.
        before: What the error says before it says that the module is missing.

    Raises:
        SettingsError: It is not installed, or cannot be imported.
    """
    if find_spec(module.partition(".")[0]) is None:
        raise SettingsError(
            f"{before}{module} is not installed: pip install 'deepera-graph[{extra}]'"
        )
    return foreign(f"{module} cannot be imported", lambda: import_module(module))


def foreign(what: str, work: Callable[[], T]) -> T:
    """Let code of another package work, and tell its errors in one line.

    Raises:
        SettingsError: It raised, whatever it was: no weights, no network, no memory.
    """
    try:
        return work()
    except SettingsError:
        raise
    except Exception as error:  # the boundary to foreign code
        raise SettingsError(f"{what}: {brief(error)}") from error


def brief(error: BaseException) -> str:
    """Return an error in one line, without what differs from run to run."""
    text = _ADDRESS.sub("", " ".join(str(error).split()))
    text = text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of packages, for a fingerprint; empty for one that is missing."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = ""
    return found
