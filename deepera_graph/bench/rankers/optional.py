"""Packages, weights and keys that only some rankers need."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

from deepera_graph.backends.encoder.packages import brief, versions
from deepera_graph.backends.encoder.weights import weights
from deepera_graph.bench.errors import UnavailableError
from deepera_graph.errors import DeepEraError

__all__ = ["brief", "foreign", "imported", "need", "same_logging", "versions", "weights"]
T = TypeVar("T")


def need(module: str, *, install: str) -> None:
    """Check that a package is installed, without importing it: some take many seconds.

    Args:
        module: Its name.
        install: What `pip install` takes to install it.

    Raises:
        UnavailableError: It is not installed.
    """
    if find_spec(module.partition(".")[0]) is None:
        raise UnavailableError(f"{module} is not installed: pip install '{install}'")


def imported(module: str) -> Any:
    """Import a package that was checked with `need`.

    Raises:
        UnavailableError: It raised, e.g. as a package that it needs is missing.
    """
    return foreign(f"{module} cannot be imported", lambda: import_module(module))


def foreign(what: str, work: Callable[[], T]) -> T:
    """Let code of another package work, and tell its errors in one line.

    Raises:
        UnavailableError: It raised, whatever it was: no weights, no key, no network, no memory.
    """
    try:
        return work()
    except DeepEraError:
        raise
    except Exception as error:  # the boundary to foreign code
        raise UnavailableError(f"{what}: {brief(error)}") from error


@contextmanager
def same_logging() -> Iterator[None]:
    """Undo what a package does to the root logger within the block: that is the program's."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
