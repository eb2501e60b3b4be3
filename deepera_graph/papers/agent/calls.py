"""Carrying out one call of a search: what the base says, and what goes wrong."""

import asyncio
from collections.abc import Callable
from typing import Any

from deepera_graph.errors import DeepEraError
from deepera_graph.papers.agent.state import ActionRecord, CallTask
from deepera_graph.papers.base import PaperBase
from deepera_graph.papers.results import Neighbours
from deepera_graph.papers.scope import Scope

Update = dict[str, Any]


def carry_out(task: CallTask, *, base: PaperBase) -> Update:
    """Make one call of the base; one that fails is kept with its cause, and is not an empty one."""
    action, scope = task["action"], Scope.from_dict(task["searched"])
    try:
        status, found, more = _CALLS[action["tool"]](base, action, scope)
    except DeepEraError as error:
        return _failed(action, str(error))
    except Exception as error:  # noqa: BLE001  # a base of somebody else's
        return _failed(action, f"{type(error).__name__}: {error}")
    done = {"id": action["id"], "status": status, "found": len(found), "more": more}
    return {"actions": [done], "results": {action["id"]: found}}


async def acarry_out(task: CallTask, *, base: PaperBase) -> Update:
    """Do what `carry_out` does, in a thread."""
    return await asyncio.to_thread(carry_out, task, base=base)


def _failed(action: ActionRecord, cause: str) -> Update:
    return {
        "actions": [{"id": action["id"], "status": "failed", "cause": cause}],
        "results": {action["id"]: []},
        "problems": [f"{action['id']} ({action['tool']} {action['text'][:80]!r}) failed: {cause}"],
    }


Found = tuple[str, list[dict[str, Any]], bool]


def _search(base: PaperBase, action: ActionRecord, scope: Scope) -> Found:
    page = {"k": action["k"], "offset": action["offset"]}
    hits = base.search(action["text"], mode=action["mode"], scope=scope, **page)
    found = [{"paper": one.paper.to_dict(), "rank": one.rank, "by": dict(one.by)} for one in hits]
    return hits.status, found, hits.more


def _references(base: PaperBase, action: ActionRecord, scope: Scope) -> Found:
    return _page(base.references, action, scope)


def _citations(base: PaperBase, action: ActionRecord, scope: Scope) -> Found:
    return _page(base.citations, action, scope)


def _page(follow: Callable[..., Neighbours], action: ActionRecord, scope: Scope) -> Found:
    near = follow(action["text"], k=action["k"], offset=action["offset"], scope=scope)
    first = 1 + action["offset"]
    found: list[dict[str, Any]] = [
        {"paper": one.to_dict(), "rank": rank, "by": {}}
        for rank, one in enumerate(near.papers, first)
    ]
    return near.status, found, near.more


_CALLS: dict[str, Callable[[PaperBase, ActionRecord, Scope], Found]] = {
    "search": _search,
    "references": _references,
    "citations": _citations,
}
