"""What a chat model is shown in a search for papers: limits, calls and papers, in lines."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from deepera_graph.chat.parsing import sanitize_line
from deepera_graph.errors import DeepEraError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.papers.agent.limits import Limits
from deepera_graph.papers.agent.state import (
    ActionRecord,
    ActionSeen,
    CallTask,
    PaperSeen,
    PlanTask,
    RankTask,
    SelectTask,
)
from deepera_graph.papers.base import PaperBase
from deepera_graph.papers.results import Scope
from deepera_graph.prompts import messages_of

Update = dict[str, Any]


def carry_out(task: CallTask, *, base: PaperBase) -> Update:
    """Make one call of the base; one that fails is kept with its cause, and is not an empty one."""
    action, scope = task["action"], Scope.from_dict(task["searched"])
    try:
        status, found, more = _ask_base(base, action, scope)
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


def _ask_base(
    base: PaperBase, action: ActionRecord, scope: Scope
) -> tuple[str, list[dict[str, Any]], bool]:
    """Return how a call ended, the papers with their ranks, and whether there are more."""
    page: dict[str, Any] = {"k": action["k"], "offset": action["offset"], "scope": scope}
    if action["tool"] == "search":
        hits = base.search(action["text"], mode=action["mode"], **page)
        ranked = [(one.paper, one.rank, dict(one.by)) for one in hits]
        status, more = str(hits.status), hits.more
    else:
        follow = base.references if action["tool"] == "references" else base.citations
        near = follow(action["text"], **page)
        ranked = [(one, rank, {}) for rank, one in enumerate(near, 1 + action["offset"])]
        status, more = str(near.status), near.more
    found = [{"paper": one.to_dict(), "rank": rank, "by": by} for one, rank, by in ranked]
    return status, found, more


PACKAGE = "deepera_graph.papers.agent.prompts"
PAGE = 10  # papers that a call brings
N_BEST, N_NEWEST = 10, 10  # papers of the pool that a planner is shown
LEAST = 0.01  # a paper that scores below it is not shown
_ABSTRACT = 1200  # characters
_SHORT = re.compile(r"L\d+\b", re.IGNORECASE)
_NO_LIMIT = frozenset({"", "-", "none", "null", "no", "n/a", "no limit"})


def name_limits(limits: Limits) -> dict[str, str]:
    """Return the limits of a question under short names, each as it is where it is broken."""
    # ``{"L1": "genetic algorithms", "L2": "up to 2018"}``; what is excluded is its phrase alone.
    words = [
        *limits.exclude,
        *([f"from {limits.year_from} on"] if limits.year_from else []),
        *([f"up to {limits.year_to}"] if limits.year_to else []),
        *(f"not from {one}" for one in limits.not_years),
        *([f"only at {', '.join(limits.venues)}"] if limits.venues else []),
        *(f"not at {one}" for one in limits.not_venues),
        *([" better than ".join(limits.better)] if limits.better else []),
    ]
    return {f"L{number}": show.one_line(one) for number, one in enumerate(words, 1)}


def read_broken(said: str, limits: Limits) -> str:
    """Return the limit that a model says is broken, as `name_limits` has it; empty if none."""
    # A model may name it by its short name, by its words, or by both.
    text = sanitize_line(said).strip(" .;:")
    if text.casefold() in _NO_LIMIT:
        return ""
    named = name_limits(limits)
    if short := _SHORT.match(text):
        return named.get(short[0].upper(), "")  # a limit that is not there cannot be broken
    folded = text.casefold()
    whole = next((one for one in named.values() if one.casefold() == folded), None)
    inside = next((one for one in named.values() if one.casefold() in folded), None)
    return whole or inside or text


def plan_messages(node: str, task: PlanTask) -> list[BaseMessage]:
    """Ask for the next round: what was done, what was not, and the best and newest papers."""
    return fill_messages(
        node,
        task,
        "\n".join(map(pool_line, choose_shown(task["pool"]))) or show.NONE,
        calls=_call_lines(task),
        refused="\n".join(map(show.one_line, task["refused"])) or show.NONE,
        calls_left=str(task["calls_left"]),
        calls_now=str(task["actions_left"]),
    )


def evolve_messages(task: PlanTask, seeds: Sequence[PaperSeen]) -> list[BaseMessage]:
    """Ask for queries that grow out of single papers."""
    block = "\n".join(_whole_line(one["id"], one) for one in seeds)
    return fill_messages("evolve", task, block, calls=_call_lines(task))


def judge_messages(task: SelectTask) -> list[BaseMessage]:
    """Ask for verdicts on papers, which are numbered from 1."""
    lines = [_whole_line(str(number), one) for number, one in enumerate(task["papers"], 1)]
    return fill_messages("judge", task, "\n".join(lines))


def choose_shown(pool: Sequence[PaperSeen]) -> list[PaperSeen]:
    """Return the best papers, then the newest of the others; none that was judged unrelated."""
    # What breaks a limit is there among the newest alone: it is not followed by itself.
    worth = [one for one in pool if one["score"] is None or one["score"] >= LEAST]
    worth = [one for one in worth if one["fits"] is not False or one["score"] is not None]
    best = [one for one in worth if one["verdict"] != "out"][:N_BEST]
    rest = [one for one in worth if one not in best]
    return [*best, *sorted(rest, key=lambda one: -one["step"])[:N_NEWEST]]


def find_paper(said: str, pool: Sequence[PaperSeen]) -> str:
    """Return the id of the paper that a model names, else what it said."""
    bare = sanitize_line(said)
    ids = {show.one_line(one["id"]): one["id"] for one in pool}
    folded = {name.casefold(): id for name, id in ids.items()}
    inner = bare.strip("[]# ")
    return ids.get(bare) or ids.get(inner) or folded.get(inner.casefold()) or inner


def fill_messages(
    node: str, task: PlanTask | SelectTask | RankTask, block: str | None = None, **more: str
) -> list[BaseMessage]:
    """Fill the templates of a node with the question, its limits, and a block of papers."""
    limits = Limits.from_dict(task["limits"])
    lines = [f"{name}: {words}" for name, words in name_limits(limits).items()]
    excluded = len(limits.exclude)
    marked = [f"{line} (left out)" if at < excluded else line for at, line in enumerate(lines)]
    if block is not None:
        more |= {"papers": block, "marker": show.marker(block, limits.question)}
    return messages_of(
        PACKAGE,
        node,
        question=show.one_line(limits.question),
        topic=show.one_line(limits.topic),
        limits="; ".join(marked) or "none",
        names="; ".join(map(show.one_line, task["names"])) or "none",
        **more,
    )


def _call_lines(task: PlanTask) -> str:
    return "\n".join(map(_call_line, task["history"])) or show.NONE


def _call_line(one: ActionSeen) -> str:
    page = f", page {one['offset'] // PAGE + 1}" if one["offset"] else ""
    more = ", more on the next page" if one["more"] else ""
    return (
        f"{one['id']} {one['tool']} “{show.one_line(one['text'])}”{page}: {one['status']}, "
        f"{one['found']} found{more}, {one['new']} new, {one['kept']} of these kept"
    )


def pool_line(one: PaperSeen) -> str:
    """Return a paper with all that is known of it, the sentence that was found last."""
    parts = [
        "not judged" if one["score"] is None else f"score {one['score']:.2f}",
        f"breaks: {show.one_line(one['against'])}" if one["against"] else "",
        f"found by {', '.join(one['calls'])}",
        f"{' and '.join(one['followed'])} followed" if one["followed"] else "",
    ]
    said = f"“{show.one_line(one['quote'])}”" if one["quote"] else sanitize_line(one["reason"])
    line = f"[{show.one_line(one['id'])}] {show.one_line(one['title'])} ({_year(one)})"
    return ", ".join(filter(None, [line, *parts])) + (f" — {said}" if said else "")


def _whole_line(name: str, one: PaperSeen) -> str:
    text = show.one_line(one["abstract"])[:_ABSTRACT]
    title, venue = show.one_line(one["title"]), one["venue"] or "no venue"
    return f"[{show.one_line(name)}] {title} ({_year(one)}, {venue}). {text}"


def _year(one: PaperSeen) -> str:
    return str(one["year"] or "no year")
