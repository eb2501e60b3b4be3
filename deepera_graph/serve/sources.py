"""Where passages are searched for: collections, and a base of papers."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from deepera_graph.errors import MissingStoreError
from deepera_graph.serve.replies import RefusedError
from deepera_graph.serve.stores import OpenCollections

if TYPE_CHECKING:
    from deepera_graph.papers.base import PaperBase
    from deepera_graph.papers.paper import Paper

PAPERS = "papers"


class Sources:
    """Everything that a server can search."""

    def __init__(self, collections: OpenCollections | None, papers: "PaperBase | None") -> None:
        self._collections, self._papers = collections, papers

    async def search(
        self,
        question: str,
        *,
        collection: str | None,
        source: str | None,
        k: int,
        where: Mapping[str, Any] | None,
    ) -> list[Document]:
        """Return the best passages of a collection or a source.

        Raises:
            DeepEraError: There is none of that name, or it cannot be searched.
        """
        if collection is not None:
            if self._collections is None:
                raise MissingStoreError(f"there is no collection {collection!r}; there are none")
            return await asyncio.to_thread(self._collections.search, collection, question, k, where)
        if where is not None:
            raise RefusedError(422, "input", "where goes with a collection")
        if source == PAPERS and self._papers is not None:
            return await asyncio.to_thread(self._search_papers, question, k)
        known = ", ".join(map(repr, self.names)) or "none"
        raise RefusedError(404, "missing", f"there is no source {source!r:.80}; there are {known}")

    @property
    def names(self) -> tuple[str, ...]:
        """The sources beside collections."""
        return () if self._papers is None else (PAPERS,)

    async def list_collections(self) -> list[dict[str, Any]]:
        """Return the collections as plain data."""
        if self._collections is None:
            return []
        return await asyncio.to_thread(self._collections.describe)

    def close(self) -> None:
        """Let go of what was opened."""
        if self._collections is not None:
            self._collections.close()
        if self._papers is not None:
            self._papers.close()

    def _search_papers(self, question: str, k: int) -> list[Document]:
        if self._papers is None:
            return []
        return [_to_passage(one) for one in self._papers.search(question, k=k).papers]


def _to_passage(paper: "Paper") -> Document:
    """Return a paper as a passage: its abstract, or its title where it has none."""
    names = ("title", "year", "venue", "doi", "url")
    metadata = {name: value for name in names if (value := getattr(paper, name))}
    authors = {"authors": list(paper.authors)} if paper.authors else {}
    text = paper.abstract or paper.title
    return Document(id=paper.id, page_content=text, metadata={**metadata, **authors})
