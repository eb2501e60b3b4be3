"""The client of a store: in memory, in a folder or on a server."""

import errno
import json
import sqlite3
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from json import JSONDecodeError
from pathlib import Path
from pickle import UnpicklingError
from shutil import copyfile, rmtree
from tempfile import mkdtemp
from time import monotonic, sleep
from typing import Any, Literal
from urllib.parse import urlsplit

from qdrant_client import QdrantClient
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from deepera_graph.chat.errors import hide_in_body, keep_secrets, passwords_in, replace_body
from deepera_graph.errors import MissingStoreError, SettingsError, StoreError
from deepera_graph.stores.sqlite import connect_reader
from deepera_graph.web import hide_login, is_this_machine

Journal = Literal["WAL", "DELETE"]
IN_MEMORY = ":memory:"
TIMEOUT = 30
_SECONDS_A_TRY = 0.02  # between two looks at a lock
_REFUSED = (401, 403)
_UNWRITABLE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_UNREADABLE = (  # what a folder of other things makes Qdrant's client raise; it unpickles passages
    OSError, ValueError, LookupError, TypeError, AttributeError, ImportError, EOFError,
    UnpicklingError, sqlite3.Error,
)  # fmt: skip
_UNREACHABLE = ("ConnectError", "ConnectTimeout")  # of httpx, which Qdrant's client uses


def describe_place(path: str | Path | None, url: str | None) -> str:
    """Return how messages name where a store is; not both in a folder and on a server."""
    if url is not None and path is not None:
        raise SettingsError(
            f"a store is in a folder or on a server, got {str(path)!r} and {hide_login(url)}"
        )
    if url is not None:
        return f"the Qdrant server at {hide_login(url)}"
    return "memory" if path in (None, IN_MEMORY) else f"the folder {str(path)!r}"


def connect(
    path: str | Path | None,
    url: str | None,
    *,
    api_key: str | None,
    must_exist: bool,
    wait: float = 0.0,
) -> QdrantClient:
    """Open the client; a server is not asked anything yet (its timeout is 30 s a request)."""
    # A folder that another process has open is waited for, *wait* seconds at most.
    # Open only folders you trust: Qdrant keeps pickled Python objects in them.
    with hide_hints():
        if url is not None:
            return _connect_to_server(url, api_key)
        if path is None or path == IN_MEMORY:
            return QdrantClient(location=IN_MEMORY)
        ends = monotonic() + wait
        while True:
            try:
                return _open_folder(Path(path), must_exist=must_exist)
            except _InUseError:
                if monotonic() >= ends:
                    raise
            sleep(_SECONDS_A_TRY)


@contextmanager
def wrap_errors(place: str) -> Iterator[None]:
    """Turn what Qdrant's client raises, here or there, into a `StoreError` that names the place."""
    try:
        yield
    except UnexpectedResponse as error:
        if error.status_code in _REFUSED:
            raise StoreError(f"{place} refuses the API key (HTTP {error.status_code})") from error
        detail = error.content[:200].decode("utf-8", "replace")
        raise StoreError(f"{place} answered HTTP {error.status_code}: {detail}") from error
    except ResponseHandlingException as error:
        nobody = type(error.source).__name__ in _UNREACHABLE
        what = "cannot be reached" if nobody else "gave no usable answer"
        raise StoreError(f"{place} {what}: {error.source!s:.200}") from error
    except JSONDecodeError as error:
        raise StoreError(f"{place} gave no usable answer: it is not JSON") from error
    except (QdrantException, sqlite3.Error) as error:
        raise StoreError(f"{place} refused the request: {error}") from error


@contextmanager
def hide_hints() -> Iterator[None]:
    """Silence Qdrant's hint that its embedded mode is slow when large; the store says so itself."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Local mode is not recommended")
        yield


def _connect_to_server(url: str, api_key: str | None) -> QdrantClient:
    with warnings.catch_warnings():
        if is_this_machine(_read_host(url)):
            warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
        try:
            client = QdrantClient(
                url=url, api_key=api_key, timeout=TIMEOUT, check_compatibility=False
            )
        except ValueError as error:
            raise SettingsError(f"{hide_login(url)!r} is no address of a Qdrant server") from error
    secrets = keep_secrets([api_key or "", *passwords_in(url)])

    def send_filtered(request: Any, send: Callable[[Any], Any]) -> Any:
        """Have what the server repeats of a key reach no message."""
        response = send(request)
        body = hide_in_body(response.content, secrets)
        return response if body == response.content else replace_body(response, body)

    client.http.client.add_middleware(send_filtered)
    return client


def _read_host(url: str) -> str:
    try:
        return urlsplit(url if "//" in url else f"//{url}").hostname or ""
    except ValueError:
        return ""


def _open_folder(folder: Path, *, must_exist: bool) -> QdrantClient:
    if must_exist and not (folder / "meta.json").is_file():
        raise MissingStoreError(
            f"no passage store in the folder {str(folder)!r}; deepera index makes one"
        )
    try:
        try:
            _refuse_if_locked(folder)
            _refuse_if_emptied(folder)
            return QdrantClient(path=str(folder))
        except OSError as error:
            if error.errno not in _UNWRITABLE or not must_exist:
                raise
            return _open_beside(folder)
    except RuntimeError as error:  # locked between the check and the opening
        raise _in_use_error(folder) from error
    except _UNREADABLE as error:
        raise StoreError(
            f"the folder {str(folder)!r} cannot be opened as a passage store: {error}"
        ) from error


def _open_beside(folder: Path) -> QdrantClient:
    """Open a folder in which nothing may be written: Qdrant has its lock in one that goes again."""
    beside = Path(mkdtemp(prefix="deepera-"))
    try:
        copyfile(folder / "meta.json", beside / "meta.json")
        (beside / "collection").symlink_to((folder / "collection").absolute())
        client = QdrantClient(path=str(beside))
    except BaseException:
        rmtree(beside, ignore_errors=True)
        raise
    weakref.finalize(client, rmtree, beside, ignore_errors=True)
    return client


def _refuse_if_emptied(folder: Path) -> None:
    """Look at the file of each collection: Qdrant takes one without its table for a new one."""
    meta = folder / "meta.json"
    if not meta.is_file():
        return
    for name in json.loads(meta.read_text(encoding="utf-8"))["collections"]:
        file = folder / "collection" / name / "storage.sqlite"
        if not (file.is_file() and file.stat().st_size and _has_points(file)):
            raise StoreError(
                f"{str(file)!r} is missing, emptied or of another program: it holds no passages; "
                f"put it back, or remove the folder {str(file.parent)!r} and index again"
            )


def _has_points(file: Path) -> bool:
    with closing(connect_reader(file)) as db:
        return bool(db.execute("SELECT 1 FROM sqlite_master WHERE name = 'points'").fetchall())


def _refuse_if_locked(folder: Path) -> None:
    """Look at the lock before Qdrant does, which reads all passages first."""
    lock = folder / ".lock"
    if not lock.exists():
        return
    import portalocker  # noqa: PLC0415 - its import fails on read-only systems, without need here

    with lock.open("r+") as file:
        try:
            portalocker.lock(
                file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING
            )
        except portalocker.exceptions.LockException as error:
            raise _in_use_error(folder) from error
        portalocker.unlock(file)


class _InUseError(StoreError):
    """Another process has the folder open."""


def _in_use_error(folder: Path) -> _InUseError:
    return _InUseError(
        f"another process has the passage store in the folder {str(folder)!r} open; "
        "to share one store between processes use a Qdrant server (--qdrant-url)"
    )


def set_journal(client: QdrantClient, collection: str, mode: Journal) -> bool:
    """Have an embedded store write without waiting for the disk after each passage."""
    # Its SQLite commits them one by one; in a write-ahead log that costs a tenth of the time, and a
    # crash leaves the file whole. Qdrant's client has no option for it. False if there is no file.
    collections = getattr(client._client, "collections", {})
    held = getattr(collections.get(collection), "storage", None)
    if held is None or not isinstance(getattr(held, "storage", None), sqlite3.Connection):
        return False
    with suppress(sqlite3.Error):  # a file system that cannot: as it was
        held.storage.execute("PRAGMA synchronous = NORMAL")
        held.storage.execute(f"PRAGMA journal_mode = {mode}")
    return True
