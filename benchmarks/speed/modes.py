"""DeepEra's modes: a line each in `MODES`."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from ranker import CALL_SECONDS, Passages, Rank, Ranker


def deepera(
    url: str,
    at_once: int,
    *,
    backend: Mapping[str, Any],
    settings: Mapping[str, Any],
    change: Callable[[Any], Any] | None,
) -> Rank:
    """`EvidenceReranker` with a chat model: options of its backend, settings, what is changed.

    *change* gets the backend and returns the one to use, e.g. with another judge.
    """
    package = import_module("deepera_graph")
    made = package.llm_backend("openai:m", base_url=url, timeout=CALL_SECONDS, **backend)
    if change is not None:
        made = change(made)
    reranker = package.EvidenceReranker(made, **{"max_concurrency": at_once, **settings})

    async def rank(question: str, passages: Passages) -> list[str]:
        items = [{"id": code, "text": text} for code, text in passages.items()]
        found = await reranker.arerank(question, items)
        return [one.id for one in found.kept]

    return rank


def _mode(
    name: str,
    backend: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    change: Callable[[Any], Any] | None = None,
) -> Ranker:
    made = partial(deepera, backend=backend or {}, settings=settings or {}, change=change)
    return Ranker(name, ("deepera-graph", "langchain-openai"), made)


MODES = {
    "deepera-separate": _mode("DeepEra, separate"),
    "deepera-separate-text": _mode(
        "DeepEra, separate, no summaries", settings={"content": "passage"}
    ),
    "deepera-fused": _mode("DeepEra, fused", {"mode": "fused"}),
    "deepera-grouped": _mode("DeepEra, grouped by 10", {"mode": "grouped"}),
    "deepera-grouped-5": _mode("DeepEra, grouped by 5", {"mode": "grouped", "group_size": 5}),
}
