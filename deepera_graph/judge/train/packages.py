"""Packages that only training needs, and a word when one is missing."""

from importlib import import_module
from types import ModuleType

from deepera_graph.errors import SettingsError


def needed(name: str) -> ModuleType:
    """Import a package of the extra ``train``.

    Raises:
        SettingsError: It is not installed; the message says how to install it.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != name.partition(".")[0]:
            raise
        raise SettingsError(
            f"training the judge needs {error.name}: pip install 'deepera-graph[train]'"
        ) from error
