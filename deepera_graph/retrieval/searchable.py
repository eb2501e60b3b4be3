"""Whatever can be searched for passages, as one thing: stores, retrievers, functions."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.vectorstores import VectorStore
from langgraph.errors import GraphBubbleUp

from deepera_graph.errors import DeepEraError, SettingsError, StoreError


def as_search(source: Any, k: int, **how: Any) -> Runnable[str, Any]:
    """Return what is searched as a Runnable of the question; *how* is for a passage store."""
    if isinstance(source, VectorStore):
        return source.as_retriever(search_kwargs={"k": k})
    if isinstance(source, Runnable):
        return source
    if callable(getattr(source, "search", None)):
        asearch = getattr(source, "asearch", None)
        more = {"afunc": partial(asearch, k=k, **how)} if asearch else {}
        return RunnableLambda(partial(source.search, k=k, **how), name="search", **more)
    if callable(source):
        return RunnableLambda(source, name="search")
    raise SettingsError(
        "retriever must be a LangChain retriever or vector store, a passage store, or a function "
        f"of the question, got {source!r:.80}"
    )


@contextmanager
def named_errors(what: str) -> Iterator[None]:
    """Turn whatever the caller's own code raises into an error of ours that says what failed."""
    try:
        yield
    except (DeepEraError, GraphBubbleUp):
        raise
    except Exception as error:  # the boundary to foreign code
        raise StoreError(f"{what}: {type(error).__name__}: {error}") from error
