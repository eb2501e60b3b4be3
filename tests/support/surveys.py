"""A backend whose surveyor tells its judge how long a passage is beside the longest."""

import asyncio
from dataclasses import replace

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from deepera_graph import EvidenceReranker, Survey
from support.roles import FREE, ScriptedRole, judged, scripted_backend

QUESTION = "Which text?"
TEXTS = ["Good one.", "Better, longer one.", "Bad."]


def by_length(task):
    """Notes that depend on all passages: how long this one is beside the longest."""
    lengths = [len(passage["text"]) for passage in task["passages"]]
    notes = [{"share": n / max(lengths), "many": len(lengths)} for n in lengths]
    return Survey(notes=notes, usage=FREE)


def surveyed(play=by_length, spec=None):
    """A backend whose judge scores the share that the notes tell, or else 0.5."""
    backend = scripted_backend(
        lambda task: judged(task.get("notes", {"share": 0.5}).get("share", 0.5)), spec=spec
    )
    return replace(backend, surveyor=ScriptedRole(play))


def run(backend, passages=TEXTS, *, is_async=False, **options):
    reranker = EvidenceReranker(backend, **options)
    if is_async:
        return asyncio.run(reranker.arerank(QUESTION, passages))
    return reranker.rerank(QUESTION, passages)


def scores(result):
    return {one.id: one.score for one in result.all_passages}


def strict():
    return InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))
