"""A role may ask a reranker of its own: no call waits for a turn that its caller holds."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from langchain_core.runnables import RunnableLambda

from deepera_graph import Budget, EvidenceReranker
from deepera_graph.testing import Gauge, ScriptedRole, judged, scripted_backend

QUESTION, TEXTS = "Which text?", ["Text one.", "Text two.", "Text three."]
INSIDE = "Which text, asked inside?"
SECONDS = 20.0


def judging(role, **settings):
    backend = replace(scripted_backend({}), judge=role)
    return EvidenceReranker(backend, content="passage", **settings)


def asking(nested):
    """A judge that takes the score that another reranker has for a passage, or else 0.7."""

    def judge(task):
        if task["question"] == INSIDE:
            return judged(0.7)
        return judged(nested().rerank(INSIDE, [task["text"]]).passages[0].score)

    async def ajudge(task):
        if task["question"] == INSIDE:
            return judged(0.7)
        return judged((await nested().arerank(INSIDE, [task["text"]])).passages[0].score)

    return RunnableLambda(judge, afunc=ajudge)


def batch(reranker, is_async, **config):
    """Rerank two questions in time, in a thread that a deadlock cannot keep."""
    jobs = [(QUESTION, TEXTS)] * 2

    def work():
        if is_async:
            return asyncio.run(reranker.abatch(jobs, config=config))
        return reranker.batch(jobs, config=config)

    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(work).result(timeout=SECONDS)
    finally:
        pool.shutdown(wait=False)


def scores(results):
    return [one.score for result in results for one in result.passages]


@pytest.mark.full
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("n", [1, 2])
def test_a_reranker_inside_a_role_keeps_to_the_limit_of_the_run_and_ends(n, is_async):
    judge = ScriptedRole(lambda task: judged(0.9), seconds=0.01, gauge=Gauge())
    inner = judging(judge)
    results = batch(judging(asking(lambda: inner)), is_async, max_concurrency=n)
    assert scores(results) == [0.9] * 6
    assert (judge.calls, judge.gauge.most) == (6, n)


@pytest.mark.full
@pytest.mark.parametrize("is_async", [False, True])
def test_a_reranker_that_asks_itself_with_other_settings_ends(is_async):
    outer = judging(asking(lambda: outer.with_settings(threshold=0.1)), max_concurrency=2)
    assert scores(batch(outer, is_async)) == [0.7] * 6


@pytest.mark.full
def test_what_is_asked_inside_counts_for_the_budget_of_the_run():
    judge = ScriptedRole(lambda task: judged(0.9, usage=None))
    inner = judging(judge)
    outer = judging(asking(lambda: inner), max_concurrency=1, budget=Budget(max_calls=3))
    results = batch(outer, is_async=False)
    assert judge.calls <= 3
    assert "budget_stop" in {one.outcome for one in results}
