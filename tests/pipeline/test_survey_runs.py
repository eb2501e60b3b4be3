"""What a survey costs, and what becomes of it: caches, budgets, resumed runs, mixed backends."""

import asyncio
import pickle
from dataclasses import replace

import pytest
from langchain_core.runnables import Runnable

from deepera_graph import (
    AnswerError,
    Budget,
    EvidenceReranker,
    Survey,
    Usage,
    local_backend,
    mixed_backend,
    screened_backend,
)
from deepera_graph.budget import Meter, with_meter
from deepera_graph.cache.store import JudgementCache
from deepera_graph.judges.base import counting_backend
from support.roles import FREE, ScriptedRole, judged, scripted_backend
from support.surveys import QUESTION, TEXTS, by_length, run, scores, strict, surveyed

SPEC = {"kind": "factory", "path": "support.roles:importable_backend"}


def test_an_equal_set_of_passages_is_paid_for_once_and_another_is_judged_anew():
    with JudgementCache() as cache:
        first = surveyed(spec=SPEC)
        before = run(first, cache=cache)
        assert (first.surveyor.calls, first.judge.calls) == (1, 3)
        again = surveyed(spec=SPEC)
        after = run(again, [*TEXTS[::-1], TEXTS[0]], cache=cache)
        assert (again.surveyor.calls, again.judge.calls) == (0, 0)
        assert [one.score for one in after.passages[:3]] == [1.0, scores(before)["1"], 9 / 19]
        run(again, TEXTS[:2], cache=cache)
        assert (again.surveyor.calls, again.judge.calls) == (1, 2)


def test_what_does_not_fit_is_not_cached_and_a_spent_budget_is_told():
    with JudgementCache() as cache:
        backend = surveyed(lambda task: Survey(notes=[], usage=FREE), spec=SPEC)
        for n_calls in (1, 2):
            assert run(backend, cache=cache).survey["status"] == "failed"
            assert backend.surveyor.calls == n_calls
        meter = Meter(Budget(max_calls=1))
        meter.admit()
        meter.charge(Usage(calls=1))
        reranker = EvidenceReranker(backend, cache=cache)
        result, strictly = (
            reranker.with_settings(threshold=threshold).rerank(
                QUESTION, TEXTS, config=with_meter({}, meter)
            )
            for threshold in (0.4, 0.9)
        )
    assert result.survey == {"status": "skipped_budget", "cause": "budget reached: 1 calls"}
    assert scores(result) == {"1": 0.5, "2": 0.5, "3": 0.5}
    assert result.outcome == strictly.outcome == "budget_stop"
    assert backend.surveyor.calls == 2


@pytest.mark.parametrize("is_async", [False, True])
def test_a_resumed_run_does_not_repeat_a_finished_survey(is_async):
    backend, surprise = surveyed(), [KeyboardInterrupt()]

    def judge(task):
        if surprise and task["text"] == "Bad.":
            raise surprise.pop()
        return judged(task["notes"]["share"])

    backend = replace(backend, judge=ScriptedRole(judge))
    reranker = EvidenceReranker(backend, checkpointer=strict(), max_concurrency=1)
    config = {"configurable": {"thread_id": "one"}}

    def go(**options):
        if is_async:
            return asyncio.run(reranker.arerank(QUESTION, TEXTS, config=config, **options))
        return reranker.rerank(QUESTION, TEXTS, config=config, **options)

    with pytest.raises(KeyboardInterrupt):
        go()
    result = go(resume=True)
    assert (backend.intent.calls, backend.surveyor.calls) == (1, 1)
    assert scores(result) == scores(run(surveyed()))
    assert result.survey == {"status": "read", "cause": ""}


def never(task):
    raise AssertionError("an estimate must not ask")


def test_an_estimate_counts_a_survey_a_question_and_asks_nothing():
    backend = surveyed(never)
    [twin] = EvidenceReranker(counting_backend(backend)).batch([(QUESTION, TEXTS)])
    assert twin.survey["status"] == "read"
    estimate = EvidenceReranker(backend).estimate([(QUESTION, TEXTS), (QUESTION, [])])
    assert {stage: used.calls for stage, used in estimate.usage.items()} == {
        "intent": 1, "survey": 1, "score": 3, "summarize": 3,
    }  # fmt: skip


class LongestFirst(Runnable):
    """A surveyor that can be pickled."""

    def invoke(self, input, config=None, **kwargs):
        return by_length(input)


def test_a_surveyor_travels_with_its_reranker():
    backend = replace(local_backend(), surveyor=LongestFirst(), spec=None)
    copied = pickle.loads(pickle.dumps(EvidenceReranker(backend)))
    assert copied.rerank(QUESTION, TEXTS).survey["status"] == "read"


def test_a_judge_keeps_its_surveyor_and_gets_no_other():
    with_one, plain = surveyed(), scripted_backend(lambda task: judged(0.5))
    mixed = mixed_backend(intent=plain, judge=with_one, summarizer=plain)
    assert mixed.surveyor is with_one.surveyor
    assert mixed_backend(intent=with_one, judge=plain, summarizer=with_one).surveyor is None


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("who", ["screen", "backend", "both", "none"])
def test_behind_a_screen_each_judge_gets_the_notes_made_for_it(who, is_async):
    parts = {}
    for part in ("screen", "backend"):
        notes = {"screen": {"s": 0.5}, "backend": {"share": 0.9}}[part]
        made = surveyed(
            lambda task, notes=notes: Survey(
                notes=[notes] * len(task["passages"]), usage=Usage(1, 5, 5)
            )
        )
        parts[part] = made if who in (part, "both") else replace(made, surveyor=None)
    result = run(screened_backend(parts["screen"], parts["backend"]), is_async=is_async)
    seen = [[task.get("notes") for task in one.judge.tasks] for one in parts.values()]
    assert seen == [
        [{"s": 0.5} if who in ("screen", "both") else None] * 3,
        [{"share": 0.9} if who in ("backend", "both") else None] * 3,
    ]
    cost = {"both": Usage(2, 10, 10), "none": None}.get(who, Usage(1, 5, 5))
    assert result.usage.get("survey") == cost


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("fault", "cost"),
    [
        (lambda: AnswerError("lost", usage=Usage(1, 2, 3)), Usage(2, 7, 8)),
        (lambda: Survey(notes=[]), Usage(2, 5, 5)),
    ],
)
def test_one_failed_survey_leaves_both_judges_without_notes_and_costs_both(fault, cost, is_async):
    first = surveyed(lambda task: by_length(task).model_copy(update={"usage": Usage(1, 5, 5)}))
    second = surveyed(lambda task: fault())
    result = run(screened_backend(first, second, floor=0.1), is_async=is_async)
    assert (result.survey["status"], result.usage["survey"]) == ("failed", cost)
    assert not any("notes" in task for one in (first, second) for task in one.judge.tasks)
