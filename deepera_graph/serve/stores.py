"""The collections that can be searched: opened at first use, and kept open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from qdrant_client import QdrantClient

    from deepera_graph.retrieval.store import PassageStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Collections:
    """Where collections are.

    Attributes:
        path: Folder of local collections, or None.
        url: Address of a Qdrant server, or None.
        api_key: Its key.
        find_embeddings: Makes the embeddings of a collection, by the name that it recorded.
        keep: Of `local_backend`, how the local judge keeps what it has read beside a collection of
            a folder; None if it keeps nothing.
    """

    path: str | Path | None = None
    url: str | None = None
    api_key: str | None = None
    find_embeddings: Callable[[str, str], Embeddings | None] | None = None
    keep: Mapping[str, Any] | None = None


class OpenCollections:
    """The collections of a folder or a server, behind one client that all requests share.

    A folder is opened by the first request that needs it, and no other process can open it then.
    """

    def __init__(self, where: Collections) -> None:
        self._where, self._lock = where, Lock()
        self._client: QdrantClient | None = None
        self._stores: dict[str, PassageStore] = {}

    def describe(self) -> list[dict[str, Any]]:
        """Return what collections there are, by name, as plain data; none without a folder.

        Raises:
            StoreError: The folder is locked, or the server cannot be reached.
        """
        from deepera_graph.errors import MissingStoreError  # noqa: PLC0415 - as below
        from deepera_graph.retrieval.catalogue import Catalogue  # noqa: PLC0415 - takes a second

        try:
            with self._lock:
                client = self._connect()
        except MissingStoreError:
            return []
        return [asdict(one) for one in Catalogue.on(client, self._place()).list()]

    def search(
        self, name: str, question: str, k: int, where: Mapping[str, Any] | None
    ) -> list[Document]:
        """Return the best passages of a collection.

        Raises:
            SettingsError: A condition is no condition.
            StoreError: There is no such collection, or it cannot be opened.
        """
        with self._lock:
            store = self._stores.get(name) or self._open(name)
        return store.search(question, k=k, where=where)

    def kept_with(self, name: str) -> dict[str, Any]:
        """Return how the local judge keeps what it reads of a collection, if it does."""
        from deepera_graph.retrieval import find_folder  # noqa: PLC0415 - as above

        where = self._where
        folder = None if where.path is None else find_folder(where.path, name)
        if where.keep is None or folder is None:
            return {}
        return {**where.keep, "keep_in": str(folder)}

    def close(self) -> None:
        """Let go of the folder or the server."""
        with self._lock:
            if self._client is not None:
                self._client.close()
            self._client = None
            self._stores.clear()

    def _open(self, name: str) -> PassageStore:
        from deepera_graph.retrieval.store import open_store_on  # noqa: PLC0415 - takes a second

        find = self._where.find_embeddings
        store = open_store_on(
            self._connect(),
            name,
            place=self._place(),
            embedded=self._where.url is None,
            find_embeddings=None if find is None else lambda recorded: find(name, recorded),
        )
        self._stores[name] = store
        return store

    def _connect(self) -> QdrantClient:
        if self._client is None:
            from deepera_graph.retrieval.store import connect  # noqa: PLC0415 - takes a second

            where = self._where
            self._client = connect(where.path, where.url, api_key=where.api_key, must_exist=True)
        return self._client

    def _place(self) -> str:
        from deepera_graph.retrieval.store import describe_place  # noqa: PLC0415 - takes a second

        return describe_place(self._where.path, self._where.url)
