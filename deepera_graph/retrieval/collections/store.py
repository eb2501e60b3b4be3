"""Opening a store of passages."""

from pathlib import Path

from langchain_core.embeddings import Embeddings
from qdrant_client import QdrantClient

from deepera_graph.retrieval import find_folder
from deepera_graph.retrieval.collections.collection import FindEmbeddings, Mode, open_collection
from deepera_graph.retrieval.collections.connection import (
    IN_MEMORY,
    connect,
    describe_place,
    wrap_errors,
)
from deepera_graph.retrieval.collections.passage_store import PassageStore


def open_store(
    collection: str,
    *,
    path: str | Path | None = None,
    url: str | None = None,
    api_key: str | None = None,
    mode: Mode | None = None,
    embeddings: Embeddings | None = None,
    find_embeddings: FindEmbeddings | None = None,
    must_exist: bool = False,
    wait: float = 0.0,
) -> PassageStore:
    """Open a collection of passages, or make it.

    Args:
        collection: Its name.
        path: Folder of an embedded store, for one process at a time; None or ``":memory:"`` for
            one that ends with the process. No server, no model and no network is needed.
        url: Address of a Qdrant server, instead of *path*.
        api_key: Key of the server.
        mode: ``sparse`` matches words (BM25), ``dense`` meanings, ``hybrid`` both, fused by rank.
            None opens a collection as it was indexed; a new one is sparse, or hybrid if
            *embeddings* are given.
        embeddings: Any LangChain embeddings, for dense and hybrid; asked once for their size.
        find_embeddings: What makes the embeddings of a collection that has vectors, where none are
            given: it gets the name of those that it was indexed with, e.g. EvidenceEmbeddings.
        must_exist: Whether a missing collection is an error.
        wait: Seconds to wait while another process has the folder open.

    Raises:
        SettingsError: A setting is out of range, or settings contradict each other.
        StoreError: The store is missing, locked, unreachable, or was indexed otherwise.
    """
    place = describe_place(path, url)
    client = connect(path, url, api_key=api_key, must_exist=must_exist, wait=wait)
    try:
        with wrap_errors(place):
            is_new = bool(collection) and not client.collection_exists(collection)
            vectorstore = open_collection(
                client,
                collection,
                mode=mode,
                embeddings=embeddings,
                find_embeddings=find_embeddings,
                must_exist=must_exist,
            )
    except BaseException:
        client.close()
        raise
    folder = None if path in (None, IN_MEMORY) else find_folder(path, collection)
    return PassageStore(
        vectorstore, place=place, embedded=url is None, is_new=is_new, folder=folder
    )


def open_store_on(
    client: QdrantClient,
    collection: str,
    *,
    place: str,
    embedded: bool,
    find_embeddings: FindEmbeddings | None = None,
) -> PassageStore:
    """Open a collection that exists on a client that other stores share; closing it closes that.

    Args:
        client: Of `connect`; its folder is open once for all its collections.
        collection: Its name.
        place: As `describe_place` says it.
        embedded: Whether this process holds the passages.
        find_embeddings: As for `open_store`.

    Raises:
        StoreError: There is no such collection, or it was indexed otherwise.
    """
    with wrap_errors(place):
        vectorstore = open_collection(
            client,
            collection,
            mode=None,
            embeddings=None,
            find_embeddings=find_embeddings,
            must_exist=True,
        )
    return PassageStore(vectorstore, place=place, embedded=embedded)
