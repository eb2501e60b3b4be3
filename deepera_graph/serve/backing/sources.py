"""Where passages are searched for: collections, a base of papers, services of literature."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.documents import Document

from deepera_graph.errors import BackendError
from deepera_graph.passages import PassageLike
from deepera_graph.result import RerankResult
from deepera_graph.retrieval.where import Where
from deepera_graph.serve.backing.library import Holdings
from deepera_graph.serve.backing.stores import StoredCollections
from deepera_graph.serve.replies import RequestRefusedError

if TYPE_CHECKING:
    from deepera_graph.papers.base import PaperBase
    from deepera_graph.papers.scope import Scope
    from deepera_graph.papers.sources import Literature, LiteratureAnswer

PAPERS, ALL = "papers", "all"


class FoundPassages(NamedTuple):
    """Passages, and what is known of where they are from."""

    passages: Sequence[PassageLike]
    answer: "LiteratureAnswer | None" = None
    keep: Mapping[str, Any] = MappingProxyType(
        {}
    )  # how the local judge keeps what it reads of them

    def complete(self, result: RerankResult) -> RerankResult:
        """Return a result of these passages that says how it went with the services."""
        return result if self.answer is None else self.answer.added_to(result)


class Sources:
    """Everything that a server can search."""

    def __init__(
        self,
        collections: StoredCollections | None,
        papers: "PaperBase | None",
        open_literature: "Callable[[], AbstractContextManager[Literature]] | None" = None,
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

    async def search_collection(
        self, name: str, question: str, k: int, where: Where | None
    ) -> FoundPassages:
        """Return the best passages of a collection.

        Raises:
            DeepEraError: There is none of that name, or it cannot be searched.
        """
        async with self._turns:
            found = await asyncio.to_thread(self._held.search, name, question, k, where)
        keep = {} if self._collections is None else self._collections.kept_with(name)
        return FoundPassages(found, keep=keep)

    async def search_source(
        self, name: str, question: str, k: int, where: Where | None
    ) -> FoundPassages:
        """Return the best passages of the base of papers, or of services with commas between them.

        Raises:
            BackendError: None of the services gave an answer.
            SettingsError: *where* is no scope.
            RefusedError: There is no such source.
        """
        from deepera_graph.papers.scope import Scope  # noqa: PLC0415 - only where papers are searched

        scope = Scope.of(where)
        if name in self._held.bases:
            return FoundPassages(await asyncio.to_thread(self._search_papers, question, k, scope))
        chosen = self._choose(name)
        from deepera_graph.papers.sources import Literature  # noqa: PLC0415 - only where it is on

        found = await Literature(chosen, seconds=self._seconds).asearch(question, k, scope)
        if found.has_failed:
            said = "; ".join(map(str, found.answers))
            raise BackendError(f"the literature could not be searched: {said}")
        return FoundPassages(found.to_documents(), found)

    async def list_collections(self) -> list[dict[str, Any]]:
        """Return the collections as plain data."""
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
                known = ", ".join(map(repr, self.names)) or "none"
                message = f"there is no source {one!r:.80}; there are {known}"
                raise RequestRefusedError(404, "missing", message)
        return [self._services[one] for one in wanted]

    def _search_papers(self, question: str, k: int, scope: "Scope") -> list[Document]:
        from deepera_graph.papers.library.filling import to_passage  # noqa: PLC0415 - only here

        base = self._held.base(PAPERS)
        return [to_passage(one) for one in base.search(question, k=k, scope=scope).papers]
