"""Points of passages made by workers in other processes."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from qdrant_client import models

from deepera_graph.engines.share import Share
from deepera_graph.retrieval.collection import Mode
from deepera_graph.retrieval.points import build_points
from deepera_graph.retrieval.store import open_store
from deepera_graph.usage import Usage

_COLLECTION = "points"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildingWork:
    """How a worker makes points, as plain data; only the process that sends the passages writes.

    Attributes:
        mode: How the collection is indexed.
        find: Builds the embeddings where the worker is; gives None if there are none.
    """

    mode: Mode
    find: Callable[[], Embeddings | None]

    def at_once(self, share: Share) -> int:
        """One batch at a time."""
        return 1

    @contextmanager
    def ready(
        self, share: Share
    ) -> Iterator[Callable[[list[Document]], Awaitable[list[models.PointStruct]]]]:
        """Open an empty collection of this kind in memory, which knows how points are made.

        Raises:
            SettingsError: The embeddings cannot be built here.
        """
        with open_store(_COLLECTION, mode=self.mode, embeddings=self.find()) as store:
            make = partial(build_points, store.vectorstore)

            async def build(batch: list[Document]) -> list[models.PointStruct]:
                return await asyncio.to_thread(make, batch)

            yield build

    def cost(self, done: list[models.PointStruct]) -> Usage:
        """Embeddings are not counted."""
        return Usage()
