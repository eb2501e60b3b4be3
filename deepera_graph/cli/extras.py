"""Packages that only some commands need, and a word when one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from deepera_graph.errors import SettingsError

_OURS = "deepera_graph"


@contextmanager
def needing(command: str, extra: str) -> Iterator[None]:
    """Import a command's work within the block.

    Raises:
        SettingsError: A package of the extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == _OURS:
            raise
        raise SettingsError(
            f"deepera {command} needs {error.name}: pip install 'deepera-graph[{extra}]'"
        ) from error
