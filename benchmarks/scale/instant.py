"""A judge that takes no time, for what the code around a judge costs.

``deepera rerank questions.jsonl -o ranked.jsonl --backend instant:build``, in this folder.
"""

from zlib import crc32

from langchain_core.runnables import RunnableLambda

from deepera_graph import Backend, Intent, Judgement, Summary
from deepera_graph.schema import IntentTask, PassageTask

_INTENT = Intent(
    topic="storage", entity_type="crop: apple", intent="other", expected_answer_type="other"
)


def build() -> Backend:
    """Return the backend; a score depends on nothing but the passage's text."""
    return Backend(
        name="instant",
        intent=RunnableLambda(_intent, afunc=_aintent),
        judge=RunnableLambda(_judge, afunc=_ajudge),
        summarizer=RunnableLambda(_summary, afunc=_asummary),
    )


def _intent(task: IntentTask) -> Intent:
    return _INTENT


def _judge(task: PassageTask) -> Judgement:
    return Judgement(score=crc32(task["text"].encode()) % 101 / 100, reason="a checksum")


def _summary(task: PassageTask) -> Summary:
    return Summary(text=task["text"].partition(". ")[0])


async def _aintent(task: IntentTask) -> Intent:
    return _intent(task)


async def _ajudge(task: PassageTask) -> Judgement:
    return _judge(task)


async def _asummary(task: PassageTask) -> Summary:
    return _summary(task)
