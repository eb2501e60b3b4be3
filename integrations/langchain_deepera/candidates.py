"""Candidate documents from anything that can be searched, with first-stage score and rank."""

from collections.abc import Iterable
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from deepera_graph import SettingsError


def check_source(source: object) -> None:
    """Raise `SettingsError` unless *source* is a retriever, a vector store or a passage store."""
    if not isinstance(source, VectorStore | Runnable) and not _is_store(source):
        raise SettingsError(
            f"source must be a retriever, a vector store or a passage store, got {source!r:.80}"
        )


def fetch(source: Any, question: str, n: int, config: RunnableConfig | None) -> list[Document]:
    """Return at most *n* candidates, in the order of the source.

    Their metadata has `retrieval_rank`, from 1, and `retrieval_score`, on the scale of the source,
    where the source gives them.
    """
    if isinstance(source, VectorStore):
        try:
            return _ranked(source.similarity_search_with_score(question, k=n))
        except NotImplementedError:  # not every store gives scores
            return source.similarity_search(question, k=n)
    if isinstance(source, Runnable):
        return list(source.invoke(question, config, **_options(source, n)))[:n]
    found: list[Document] = source.search(question, n)
    return found


async def afetch(
    source: Any, question: str, n: int, config: RunnableConfig | None
) -> list[Document]:
    """Do what `fetch` does, in the running loop."""
    if isinstance(source, VectorStore):
        try:
            return _ranked(await source.asimilarity_search_with_score(question, k=n))
        except NotImplementedError:
            return await source.asimilarity_search(question, k=n)
    if isinstance(source, Runnable):
        return list(await source.ainvoke(question, config, **_options(source, n)))[:n]
    found: list[Document] = await source.asearch(question, n)
    return found


def _is_store(source: object) -> bool:
    return all(callable(getattr(source, name, None)) for name in ("search", "asearch"))


def _options(source: Runnable[str, list[Document]], n: int) -> dict[str, int]:
    """A store's own retriever fetches 4 unless told otherwise; others decide for themselves."""
    if isinstance(source, VectorStoreRetriever) and "k" not in source.search_kwargs:
        return {"k": n}
    return {}


def _ranked(found: Iterable[tuple[Document, float]]) -> list[Document]:
    return [
        document.model_copy(
            update={
                "metadata": {
                    **document.metadata,
                    "retrieval_rank": rank,
                    "retrieval_score": float(score),
                }
            }
        )
        for rank, (document, score) in enumerate(found, start=1)
    ]
