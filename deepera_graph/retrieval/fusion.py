"""What can be searched, and joining rankings by rank; it needs no Qdrant."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.vectorstores import VectorStore
from langgraph.errors import GraphBubbleUp

from deepera_graph.errors import DeepEraError, SettingsError, StoreError
from deepera_graph.packages import describe_error

P = ParamSpec("P")
SelfT = TypeVar("SelfT")
FoundT = TypeVar("FoundT")


def in_thread(
    call: Callable[Concatenate[SelfT, P], FoundT],
) -> Callable[Concatenate[SelfT, P], Coroutine[Any, Any, FoundT]]:
    """Return the async twin of a method: it does the same, in a thread."""

    @wraps(call)
    async def run(self: SelfT, /, *args: P.args, **kwargs: P.kwargs) -> FoundT:
        return await asyncio.to_thread(getattr(self, call.__name__), *args, **kwargs)

    run.__name__ = f"a{call.__name__}"
    return run


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
        raise StoreError(f"{what}: {describe_error(error)}") from error


RRF_K = 10
CORMACK_K = 60  # that of the paper, section 2


def sum_reciprocals(ranks: Iterable[int], *, k: int) -> float:
    """Return the sum of 1 / (k + rank); ranks count from 1."""
    total = 0.0
    for rank in ranks:  # not `sum`, whose last digit depends on the version of Python
        total += 1 / (k + rank)
    return total


def fuse(rankings: Iterable[Sequence[str]], *, k: int = RRF_K) -> dict[str, float]:
    """Return the fused score of each id: the sum of 1 / (k + rank) over the rankings that have it.

    Scores are in (0, n_rankings / (k + 1)]. With two rankings and k = 10 the first of each is among
    the best 25 of both: what comes before it has 1 / (10 + r) + 1 / (10 + s) >= 1 / 11, which at
    most 24 pairs of ranks can have. With k = 60 it may be the 125th, as more than a hundred that
    are in the middle of both rankings count more.

    Source:
        Cormack, Clarke and Buettcher (2009), Reciprocal Rank Fusion outperforms Condorcet and
        individual rank learning methods, section 2, there with k = 60; k = 10 is chosen by
        measurement, see docs/retrieval.md. Qdrant's own ``Rrf(k=...)`` counts ranks from 0: its
        ``k=11`` is this 10.
    """
    ranks: dict[str, list[int]] = defaultdict(list)
    for ranking in rankings:
        for rank, name in enumerate(ranking, start=1):
            ranks[name].append(rank)
    return {name: sum_reciprocals(found, k=k) for name, found in ranks.items()}
