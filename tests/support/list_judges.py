"""Judges that are given a list, and reranking with one."""

import asyncio
from dataclasses import replace

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from deepera_graph import EvidenceReranker
from deepera_graph.judges.base import Judge
from deepera_graph.testing import Gauge, judged, scripted_backend

QUESTION = "Which text?"
TEXTS = ["Good one.", "Better, longer one.", "Bad."]


def by_length(batch):
    """A score that depends on all windows: how long this one is beside the longest."""
    lengths = [len(window["text"]) for window in batch["windows"]]
    return [judged(n / max(lengths)) for n in lengths]


class ListJudge(Judge):
    """Plays a function of a batch, and keeps the batches; *is_joint* says that all belong together.

    By default all windows of the question are one batch, whoever's turn it is.
    """

    def __init__(self, play=by_length, *, is_joint=True):
        self._play, self._is_joint = play, is_joint
        self.batches, self.gauge = [], Gauge()

    @property
    def calls(self):
        return len(self.batches)

    def plan(self, request):
        if not self._is_joint:
            return super().plan(request)
        every = range(len(request.windows))
        return [request.batch(every, is_joint=True)] if request.next else []

    def judge(self, batch, config=None):
        with self.gauge.entry():
            self.batches.append(batch)
            answer = self._play(batch)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def list_backend(play=by_length, *, is_joint=True, spec=None):
    """A backend whose judge is a `ListJudge`."""
    return replace(
        scripted_backend(lambda task: judged(0.5), spec=spec),
        judge=ListJudge(play, is_joint=is_joint),
    )


def run(backend, passages=TEXTS, *, is_async=False, **options):
    reranker = EvidenceReranker(backend, **options)
    if is_async:
        return asyncio.run(reranker.arerank(QUESTION, passages))
    return reranker.rerank(QUESTION, passages)


def scores(result):
    return {one.id: one.score for one in result.all_passages}


def strict():
    return InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))
