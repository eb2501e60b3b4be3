"""Passages on moss of known worth, and a model that answers about them in every mode."""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from deepera_graph import EvidenceReranker, RerankResult, llm_backend
from support.openai_server import ChatServer, Reply, Request

QUESTION = "How much does moss grow?"
INTENT = {
    "topic": "botany",
    "entity_type": "plant: moss",
    "intent": "causal inference",
    "expected_answer_type": "numeric",
}
Json = dict[str, Any]
Change = Callable[[list[Json]], Any]
_BED = re.compile(r"\bBed (\d+) was kept wet\b")
_OPENED = re.compile(r"^=====(\d+)\n", re.MULTILINE)
_NEXT = re.compile(r"^=====", re.MULTILINE)


def bed(number: int) -> str:
    """The passage on one bed."""
    return f"Bed {number} was kept wet. Its moss grew by {number + 10} mm. All else stayed."


def worth(number: int) -> float:
    """The score of a bed: every third one passes."""
    return 0.9 if number % 3 == 0 else 0.3


def summary(number: int) -> str:
    """The summary of a bed."""
    return f"Moss grew by {number + 10} mm."


def verdict(number: int, *, with_summary: bool = False) -> Json:
    """The right verdict on a bed, as a single call gives it."""
    found: Json = {"evidence": [2], "direction": "supports"}
    if with_summary:
        found["summary"] = summary(number)
    passes = worth(number) >= 0.8
    return {
        "reason": f"bed {number}",
        "score": worth(number),
        "finding": found if passes else None,
    }


def member(place: int, number: int, *, with_summary: bool = False) -> Json:
    """The right verdict on a bed, as a call on a group gives it: short where the bed fails."""
    said = {"id": place, **verdict(number, with_summary=with_summary)}
    return said if said["finding"] else {"id": place, "score": said["score"]}


def flat(said: Json) -> Json:
    """A verdict in the form of version 0.9: the fields of its finding beside the others."""
    rest = {name: value for name, value in said.items() if name != "finding"}
    none = {"evidence": [], "direction": "none", "summary": ""}
    return {"reason": "r", **rest, **(said.get("finding") or none)}


def wants_summaries(request: Request) -> bool:
    """Whether the form of the answer, wherever it stands, has a summary."""
    return '"summary' in _form(request)


def _form(request: Request) -> str:
    form = {**request.body, "messages": request.messages[:1]}
    return json.dumps(form).replace("\\", "")


def shown(request: Request) -> dict[int, int]:
    """Which bed stands under which number of a prompt on a group; empty for other prompts."""
    text = str(request.messages[1]["content"])
    found = {}
    for opened in _OPENED.finditer(text):
        end = _NEXT.search(text, opened.end())
        assert end, "a group that nothing closes"
        [one] = _BED.findall(text[opened.end() : end.start()])
        found[int(opened[1])] = int(one)
    return found


def kind_of(request: Request) -> str:
    """What a request asks for."""
    if "You read" in request.system:
        return "intent"
    if "You shorten" in request.system:
        return "summary"
    return "group" if shown(request) else "alone"


@dataclass
class MossModel:
    """Answers rightly, but as *change* has it for groups, and *alone* for single passages.

    *change* is given the verdicts on a group and returns what the reply holds: a list of verdicts,
    a text, or a `Reply`. *alone* is given a bed and returns a reply, or None for the right one.
    """

    change: Change = field(default=lambda verdicts: verdicts)
    alone: Callable[[int], Reply | Json | None] = field(default=lambda number: None)

    def __call__(self, request: Request) -> Reply | Json | str:
        kind = kind_of(request)
        if kind == "intent":
            return INTENT
        beds = shown(request)
        fused = wants_summaries(request)
        if kind == "group":
            said = self.change(
                [member(place, one, with_summary=fused) for place, one in beds.items()]
            )
            return {"verdicts": said} if isinstance(said, list) else said
        [number] = map(int, set(_BED.findall(str(request.messages[1]["content"]))))
        if kind == "summary":
            return {"text": summary(number)}
        said = verdict(number, with_summary=fused)
        return self.alone(number) or (said if '"finding"' in _form(request) else flat(said))


def made(server: ChatServer, mode: str = "separate", cache: Any = None, **settings: Any) -> Any:
    """A reranker in a mode; groups are of five."""
    size = {"group_size": settings.pop("group_size", 5)} if mode == "grouped" else {}
    retry = {"attempts": 2, "timeout": 5.0, "first_wait": 0.01, "longest_wait": 0.02}
    retry |= settings.pop("retry", {})
    backend = llm_backend("openai:m", base_url=server.base_url, mode=mode, retry=retry, **size)
    return EvidenceReranker(backend, cache=cache, **{"top_n": 99, **settings})


def run(reranker: EvidenceReranker, passages: Any, *, is_async: bool = False) -> RerankResult:
    """Rerank once."""
    if is_async:
        return asyncio.run(reranker.arerank(QUESTION, passages))
    return reranker.rerank(QUESTION, passages)


def kinds(server: ChatServer) -> list[str]:
    """What was asked for, in the order in which it arrived."""
    return [kind_of(request) for request in server.requests]
