"""What adaptive retrieval begins with: the first stage it searches, the passages it fetches."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from deepera_graph.errors import SettingsError
from deepera_graph.stores.words import name_passage


class FirstStageSearch:
    """Searches the first stage, whatever it is."""

    def __init__(self, source: Any, n: int, where: Mapping[str, Any] | None) -> None:
        self._source, self._n, self._where = source, n, where

    def check(self) -> None:
        """Raise `SettingsError` unless it can be searched."""
        if not isinstance(self._source, VectorStore | Runnable) and not _is_store(self._source):
            raise SettingsError(
                "first_stage must be a passage store, a vector store or a retriever, got "
                f"{self._source!r:.80}"
            )
        if self._where is not None and not _is_store(self._source):
            raise SettingsError("where= is for passage stores: give it to your first stage")

    def search(self, question: str, config: RunnableConfig | None) -> Sequence[Document]:
        """Return what it finds, best first."""
        if isinstance(self._source, Runnable):
            found: list[Document] = self._as_runnable().invoke(question, config)
            return found
        if isinstance(self._source, VectorStore):
            return self._source.similarity_search(question, k=self._n)
        stored: list[Document] = self._source.search(question, self._n, **self._conditions())
        return stored

    async def asearch(self, question: str, config: RunnableConfig | None) -> Sequence[Document]:
        """Do what `search` does, in the running loop."""
        if isinstance(self._source, Runnable):
            found: list[Document] = await self._as_runnable().ainvoke(question, config)
            return found
        if isinstance(self._source, VectorStore):
            return await self._source.asimilarity_search(question, k=self._n)
        return await asyncio.to_thread(self.search, question, config)

    def _conditions(self) -> dict[str, Any]:
        return {} if self._where is None else {"where": self._where}

    def _as_runnable(self) -> Runnable[str, list[Document]]:
        source: Any = self._source
        if isinstance(source, VectorStoreRetriever) and "k" not in source.search_kwargs:
            return source.bind(k=self._n)  # it would fetch 4
        made: Runnable[str, list[Document]] = source
        return made


class NeighbourFetcher:
    """Fetches passages by their ids, from the first stage or from *passages*."""

    def __init__(self, first_stage: Any, passages: Any, where: Mapping[str, Any] | None) -> None:
        source = first_stage if passages is None else passages
        if isinstance(source, VectorStoreRetriever):
            source = source.vectorstore
        if isinstance(source, Sequence):
            source = {name_passage(one): one for one in source}
        self._source, self._where = source, where
        if not isinstance(source, VectorStore | Mapping) and not (
            _fetches(source) or (passages is not None and callable(source))
        ):
            raise SettingsError(
                "neighbours cannot be fetched from the first stage by their ids: give passages=, "
                "e.g. the documents that the graph was built from"
            )

    def fetch(self, names: Sequence[str]) -> tuple[Sequence[str], Sequence[Document]]:
        """Return the ids asked for, and the documents that are there."""
        if not names:
            return names, ()
        if isinstance(self._source, Mapping):
            return names, [self._source[name] for name in names if name in self._source]
        if isinstance(self._source, VectorStore):
            return names, self._source.get_by_ids(names)
        if _fetches(self._source):
            conditions = {} if self._where is None else {"where": self._where}
            return names, self._source.fetch(names, **conditions)
        return names, list(self._source(names))

    async def afetch(self, names: Sequence[str]) -> tuple[Sequence[str], Sequence[Document]]:
        """Do what `fetch` does, in the running loop."""
        if not names or isinstance(self._source, Mapping):
            return self.fetch(names)
        if isinstance(self._source, VectorStore):
            return names, await self._source.aget_by_ids(names)
        return await asyncio.to_thread(self.fetch, names)


def _is_store(source: object) -> bool:
    return not isinstance(source, VectorStore | Runnable) and callable(
        getattr(source, "search", None)
    )


def _fetches(source: object) -> bool:
    return callable(getattr(source, "fetch", None))
