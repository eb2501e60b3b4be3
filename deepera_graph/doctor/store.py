"""The passage store: whether it opens, and how many collections are in it."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from deepera_graph.doctor.finding import Finding
from deepera_graph.doctor.folder import why_unwritable
from deepera_graph.errors import DeepEraError, StoreError
from deepera_graph.retrieval.store import IN_MEMORY, connect, describe_place, wrap_errors

_NAME = "passage store"
_LOCK_HINT = "another process"


def look(path: str | Path | None, url: str | None, key_variable: str) -> Iterator[Finding]:
    """Yield one finding on a folder, a server, or with neither on a store in memory."""
    if url is not None:
        yield _opened(None, url, os.environ.get(key_variable), _of_server(key_variable))
        return
    folder = None if path is None or str(path) == IN_MEMORY else Path(path).expanduser()
    if folder is None or (folder / "meta.json").is_file():
        yield _opened(folder, None, None, "index the passages again into another folder (--path)")
        return
    broken = _opened(None, None, None, "pip install --force-reinstall qdrant-client")
    yield broken if broken.status == "fail" else _future(folder)


def _opened(path: Path | None, url: str | None, api_key: str | None, advice: str) -> Finding:
    try:
        place = describe_place(path, url)
        client = connect(path, url, api_key=api_key, must_exist=False)
        with closing(client), wrap_errors(place):
            names = sorted(one.name for one in client.get_collections().collections)
    except StoreError as error:
        locked = _LOCK_HINT in str(error)
        return Finding(_NAME, "fail", str(error), "close that process" if locked else advice)
    except DeepEraError as error:
        return Finding(
            _NAME, "fail", str(error), "correct --qdrant-url, e.g. http://localhost:6333"
        )
    listed = f": {', '.join(names)}" if names else ""
    return Finding(_NAME, "ok", f"{_collections(len(names))} in {place}{listed}")


def _future(folder: Path) -> Finding:
    why = why_unwritable(folder)
    if why:
        found = f"none yet, and the folder '{folder}' cannot be made: {why}"
        return Finding(_NAME, "fail", found, "name a folder that can be written to (--path)")
    return Finding(_NAME, "ok", f"none yet; `deepera index` will make it in {folder}")


def _of_server(key_variable: str) -> str:
    key = "is set" if os.environ.get(key_variable) else "is not set"
    return f"see whether Qdrant runs and --qdrant-url is its address; {key_variable} {key}"


def _collections(n: int) -> str:
    return f"{n} collection{'' if n == 1 else 's'}"
