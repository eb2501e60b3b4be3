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
    reranker = package.EvidenceReranker(made, **{"max_concurrency": 2 * at_once, **settings})

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


def _cascade(backend: Any, keep: int = 30) -> Any:
    """Let the local judge read all passages, and *backend* the best *keep* of them."""
    package = import_module("deepera_graph")
    return package.cascade_backend(package.local_backend(), backend, keep=keep)


def _intent_by_rules(backend: Any) -> Any:
    """Read the question without a call, so that judging need not wait."""
    package = import_module("deepera_graph")
    rules = package.local_backend("rules")
    return package.mixed_backend(intent=rules, judge=backend, summarizer=backend)


MODES = {
    "deepera-separate": _mode("DeepEra, separate"),
    "deepera-separate-text": _mode(
        "DeepEra, separate, no summaries", settings={"content": "passage"}
    ),
    "deepera-fused": _mode("DeepEra, fused", {"mode": "fused"}),
    "deepera-fused-rules": _mode(
        "DeepEra, fused, intent by rules", {"mode": "fused"}, change=_intent_by_rules
    ),
    "deepera-grouped": _mode("DeepEra, grouped by 2", {"mode": "grouped"}),
    "deepera-grouped-rules": _mode(
        "DeepEra, grouped by 2, intent by rules", {"mode": "grouped"}, change=_intent_by_rules
    ),
    **{
        f"deepera-by-{size}{key}": _mode(
            f"DeepEra, grouped by {size}{name}",
            {"mode": "grouped", "group_size": size},
            change=change,
        )
        for size in (3, 4, 5, 10)
        for key, name, change in (("", "", None), ("-rules", ", intent by rules", _intent_by_rules))
    },
    "deepera-cascade": _mode("DeepEra, cascade of 30, fused", {"mode": "fused"}, change=_cascade),
    "deepera-cascade-20": _mode(
        "DeepEra, cascade of 20, grouped by 10",
        {"mode": "grouped", "group_size": 10},
        change=partial(_cascade, keep=20),
    ),
}
