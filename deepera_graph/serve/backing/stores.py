"""Collections in a folder or on a Qdrant server, as servers search them, over HTTP and over MCP.

A folder is of one process at a time. So it is opened for each search and let go after it: others
may index meanwhile, and several servers may search one folder. Opening reads all passages, which
takes about as long as the search itself (0.05 s for 1 000 passages, 0.5 s for 10 000); where that
is too long, a Qdrant server is the place for them, to which the connection stays open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from deepera_graph.errors import BackendError, MissingStoreError, SettingsError, StoreError
from deepera_graph.retrieval import Where, explain_field, find_folder, list_collections, read_where
from deepera_graph.serve.backing.library import Holdings, LimitedSearch
from deepera_graph.serve.replies import RequestRefusedError

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from qdrant_client import QdrantClient

    from deepera_graph.evidence.check.library import WorkLibrary
    from deepera_graph.evidence.check.manuscript import Manuscript
    from deepera_graph.papers.base import PaperBase
    from deepera_graph.papers.results import Scope
    from deepera_graph.papers.sources import Literature, LiteratureAnswer
    from deepera_graph.passages import PassageLike
    from deepera_graph.result import RerankResult
    from deepera_graph.retrieval.collections.passage_store import PassageStore

PAPERS, ALL = "papers", "all"


class FoundPassages(NamedTuple):
    """Passages, and what is known of where they are from."""

    passages: Sequence[PassageLike]
    answer: LiteratureAnswer | None = None
    keep: Mapping[str, Any] = MappingProxyType({})  # how the local judge keeps what it reads
    notes: tuple[str, ...] = ()  # on what conditions left out

    def complete(self, result: RerankResult) -> RerankResult:
        """Return a result of these passages with what was left out, and how services went."""
        result = replace(result, warnings=(*self.notes, *result.warnings))
        return result if self.answer is None else self.answer.added_to(result)


class Sources:
    """Everything that a server can search."""

    def __init__(
        self,
        collections: StoredCollections | None,
        papers: PaperBase | None,
        open_literature: Callable[[], AbstractContextManager[Literature]] | None = None,
    ) -> None:
        self._collections, self._papers = collections, papers
        self._turns = asyncio.Semaphore(1 if collections is None else collections.at_once)
        bases = {} if papers is None else {PAPERS: papers}
        self._held = Holdings(collections=collections, bases=bases)
        self._stack = ExitStack()
        self._services: dict[str, Any] = {}
        if open_literature is not None:
            literature = self._stack.enter_context(open_literature())
            self._services = {one.name: one for one in literature.sources}
            self._seconds = literature.seconds

    @property
    def names(self) -> tuple[str, ...]:
        """The sources beside collections."""
        return (*self._held.bases, *self._services)

    async def offer(self) -> list[str]:
        """Return names that `search_library` takes; none where a Qdrant server had to be asked."""
        if self._collections is None or not self._collections.is_local:
            return []
        return await asyncio.to_thread(self._collections.names)

    async def search_library(
        self, name: str, question: str, k: int, where: Where | None
    ) -> FoundPassages:
        """Return the best passages of a library."""
        # Raises `DeepEraError` if there is none of that name, or it cannot be searched.
        async with self._turns:
            found = await asyncio.to_thread(self._held.search, name, question, k, where)
        keep = {} if self._collections is None else self._collections.kept_with(name)
        return FoundPassages(found.passages, keep=keep, notes=found.notes)

    async def search_source(
        self, name: str, question: str, k: int, where: Where | None
    ) -> FoundPassages:
        """Return the best passages of the papers, or of services with commas between them."""
        # Raises `BackendError` if none of the services gave an answer.
        from deepera_graph.papers.results import Scope  # noqa: PLC0415 - only where papers are searched

        scope = Scope.of(where)
        if name in self._held.bases:
            return FoundPassages(await asyncio.to_thread(self._search_papers, question, k, scope))
        found = await self.open_services(name).asearch(question, k, scope)
        if found.has_failed:
            said = "; ".join(map(str, found.answers))
            raise BackendError(f"the literature could not be searched: {said}")
        return FoundPassages(found.to_documents(), found)

    async def find_works(self, name: str, manuscript: Manuscript) -> WorkLibrary:
        """Return the works of a library that a manuscript may cite."""
        # Raises `DeepEraError` if there is none of that name, or it cannot be searched.
        async with self._turns:
            return await asyncio.to_thread(self._held.find_works, name, manuscript)

    def open_services(self, names: str) -> Literature:
        """Return services of these names, with commas between them, or all that are on."""
        # Raises `RefusedError` if there is no such source.
        from deepera_graph.papers.sources import Literature  # noqa: PLC0415 - only where it is on

        return Literature(self._choose(names), seconds=self._seconds)

    async def list_libraries(self) -> list[dict[str, Any]]:
        """Return the libraries as plain data."""
        if self._collections is None:
            return []
        async with self._turns:
            return await asyncio.to_thread(self._collections.describe)

    def close(self) -> None:
        """Let go of what was opened."""
        if self._collections is not None:
            self._collections.close()
        if self._papers is not None:
            self._papers.close()
        self._stack.close()

    def _choose(self, names: str) -> list[Any]:
        """Return the services of these names, each once, or all that are on."""
        wanted = list(dict.fromkeys(one.strip() for one in names.split(",")))
        if wanted == [ALL] and self._services:
            return [*self._services.values()]
        for one in wanted:
            if one not in self._services:
                if one in self._held.bases:
                    told = f"{one!r} is no service of literature, and is searched by itself alone"
                    raise RequestRefusedError(422, "input", told)
                known = ", ".join(map(repr, self.names)) or "none"
                message = f"unknown source {one!r:.80}; available: {known}"
                raise RequestRefusedError(404, "missing", message)
        return [self._services[one] for one in wanted]

    def _search_papers(self, question: str, k: int, scope: Scope) -> list[Document]:
        from deepera_graph.papers.paper import to_passage  # noqa: PLC0415 - only here

        base = self._held.base(PAPERS)
        return [to_passage(one) for one in base.search(question, k=k, scope=scope).papers]


_ON_SERVER = 4  # searches at the same time
_WAIT = 3.0  # seconds that another process may need before it lets go of a folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Collections:
    """Where collections are, and which of them may be searched."""

    path: str | Path | None = None  # folder of local collections, or None
    url: str | None = None  # address of a Qdrant server, or None
    api_key: str | None = None
    names: tuple[str, ...] = ()  # those that may be searched; empty for all
    # makes the embeddings of a collection, by the name that it recorded
    find_embeddings: Callable[[str, str], Embeddings | None] | None = None
    # of `local_backend`, how the local judge keeps what it has read beside a collection of a
    # folder; None if it keeps nothing
    keep: Mapping[str, Any] | None = None


class StoredCollections:
    """The collections of a folder or a server, for threads: a `Searched`."""

    def __init__(self, where: Collections) -> None:
        self._where, self._lock = where, Lock()
        self._client: QdrantClient | None = None  # of a server
        self._stores: dict[str, PassageStore] = {}  # on it
        self._embeddings: dict[tuple[str, str], Embeddings | None] = {}

    @property
    def at_once(self) -> int:
        """How many searches get on at the same time; more only hold threads that others need."""
        return 1 if self._where.url is None else _ON_SERVER

    @property
    def is_local(self) -> bool:
        """Whether they are in a folder."""
        return self._where.path is not None

    def names(self) -> list[str]:
        """Return the names of the collections that may be searched."""
        # Raises `StoreError` if the server cannot be reached.
        path, given = self._where.path, self._where.names
        held = self._names_on_server() if path is None else list_collections(path)
        return [name for name in held if not given or name in given]

    def sizes(self) -> dict[str, int | None]:
        """Return how many passages each holds; None while another process has the folder open."""
        # Raises `StoreError` if the server cannot be reached.
        try:
            return {one["name"]: one["n_passages"] for one in self.describe()}
        except StoreError:
            if self._where.path is None:
                raise
            return dict.fromkeys(self.names())

    def describe(self) -> list[dict[str, Any]]:
        """Return what collections there are, by name, as plain data; none without a folder."""
        # Raises `StoreError` if another process has the folder open, or the server cannot be
        # reached.
        given = self._where.names
        return [one for one in self._list() if not given or one["name"] in given]

    def _names_on_server(self) -> list[str]:
        from deepera_graph.retrieval.collections.connection import wrap_errors  # noqa: PLC0415 - takes a second

        with self._connected() as client, wrap_errors(self._place()):
            return sorted(one.name for one in client.get_collections().collections)

    def _list(self) -> list[dict[str, Any]]:
        from deepera_graph.retrieval.collections.store import Catalogue  # noqa: PLC0415 - takes a second

        try:
            with self._connected() as client:
                return [asdict(one) for one in Catalogue.on(client, self._place()).list()]
        except MissingStoreError:
            return []

    def search(self, name: str, question: str, k: int, where: Where | None) -> LimitedSearch:
        """Return the best passages of a collection."""
        # Raises `SettingsError` if a condition is no condition, or no passage has the field it
        # names; `StoreError` if there is no such collection, or it cannot be opened.
        with self._opened(name) as store:
            found = store.search(question, k=k, where=where)
            for field in () if found else read_where(where):
                if store.count() and not store.has_field(field):
                    raise SettingsError(f"where: {explain_field(field, store.field_names())}")
            return LimitedSearch(found, store.count_unknown(question, where))

    def scan(self, name: str, most: int) -> list[Document] | None:
        """Return all passages of a collection; None if it has more than *most*."""
        # Raises `StoreError` if there is no such collection, or it cannot be opened.
        with self._opened(name) as store:
            return None if store.count() > most else [one.passage for one in store.scan()]

    def kept_with(self, name: str) -> dict[str, Any]:
        """Return how the local judge keeps what it reads of a collection, if it does."""
        where = self._where
        folder = None if where.path is None else find_folder(where.path, name)
        if where.keep is None or folder is None:
            return {}
        return {**where.keep, "keep_in": str(folder)}

    def close(self) -> None:
        """Let go of the server."""
        with self._lock:
            if self._client is not None:
                self._client.close()
            self._client = None
            self._stores.clear()

    @contextmanager
    def _opened(self, name: str) -> Iterator[PassageStore]:
        """Open a collection: one of a folder for the block, one on a server for good."""
        with self._connected() as client:
            if self._where.url is None:
                yield self._open(client, name)
                return
            with self._lock:
                store = self._stores.get(name) or self._open(client, name)
                self._stores[name] = store
            yield store

    @contextmanager
    def _connected(self) -> Iterator[QdrantClient]:
        """Open a folder for the block, one block at a time; or a server once."""
        if self._where.url is not None:
            with self._lock:
                self._client = self._client or self._connect()
            yield self._client
            return
        ends = monotonic() + _WAIT  # whoever waits in line here has waited for the folder, too
        with self._lock:
            client = self._connect(max(0.0, ends - monotonic()))
            try:
                yield client
            finally:
                client.close()

    def _connect(self, wait: float = 0.0) -> QdrantClient:
        from deepera_graph.retrieval.collections.connection import connect  # noqa: PLC0415 - takes a second

        where = self._where
        return connect(where.path, where.url, api_key=where.api_key, must_exist=True, wait=wait)

    def _open(self, client: QdrantClient, name: str) -> PassageStore:
        from deepera_graph.retrieval.collections.store import open_store_on  # noqa: PLC0415 - takes a second

        return open_store_on(
            client,
            name,
            place=self._place(),
            embedded=self._where.url is None,
            find_embeddings=partial(self._find_embeddings, name),
        )

    def _find_embeddings(self, name: str, recorded: str) -> Embeddings | None:
        """Make the embeddings of a collection once: they may be a model that takes seconds."""
        find = self._where.find_embeddings
        if find is not None and (name, recorded) not in self._embeddings:
            self._embeddings[name, recorded] = find(name, recorded)
        return self._embeddings.get((name, recorded))

    def _place(self) -> str:
        from deepera_graph.retrieval.collections.connection import describe_place  # noqa: PLC0415 - takes a second

        return describe_place(self._where.path, self._where.url)
