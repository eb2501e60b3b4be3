"""Backends made of parts of others."""

import asyncio
import json

import pytest

from deepera_graph import (
    EvidenceReranker,
    Judgement,
    SettingsError,
    Usage,
    load_backend,
    mixed_backend,
    screened_backend,
)
from deepera_graph.errors import AnswerError
from deepera_graph.testing import judged, scripted_backend

QUESTION = "Which text?"
FACTORY = {"kind": "factory", "path": "support.roles:importable_backend"}


def test_each_role_is_taken_from_its_own_backend():
    intent, judge, summarizer, answerer = (scripted_backend({"a": 0.9}) for _ in range(4))
    mixed = mixed_backend(intent=intent, judge=judge, summarizer=summarizer, answerer=answerer)
    EvidenceReranker(mixed, answer=True).rerank(QUESTION, ["a"])
    calls = [
        [one.intent.calls, one.judge.calls, one.summarizer.calls, one.answerer.calls]
        for one in (intent, judge, summarizer, answerer)
    ]
    assert calls == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def test_the_summarizers_backend_answers_unless_another_is_named():
    one, two = scripted_backend({}), scripted_backend({})
    assert mixed_backend(intent=one, judge=one, summarizer=two).answerer is two.answerer


def test_a_mix_says_what_it_is_made_of():
    one = scripted_backend({})
    mixed = mixed_backend(intent=one, judge=load_backend("local"), summarizer=one)
    assert mixed.name == "scripted+local"
    assert mixed.about["roles"]["judge"]["backend"] == "local"
    assert mixed.about["roles"]["summarizer"]["model"] == "scripted"


@pytest.mark.parametrize(
    "make",
    [
        lambda one, two: mixed_backend(intent=one, judge=two, summarizer=one),
        lambda one, two: screened_backend(one, two, floor=0.3),
        lambda one, two: screened_backend(
            one, mixed_backend(intent=one, judge=two, summarizer=two), floor=0.3
        ),
    ],
)
def test_a_mix_can_be_written_down_if_its_parts_can(make):
    local, named = load_backend("local"), load_backend(dict(FACTORY))
    backend = make(local, named)
    plain = json.loads(json.dumps(EvidenceReranker(backend).to_dict()))
    again = EvidenceReranker.from_dict(plain)
    assert (again.backend.name, again.backend.spec) == (backend.name, backend.spec)
    assert make(local, scripted_backend({})).spec is None


def screened(first, second, floor=0.2):
    screen, careful = scripted_backend({"a": first}), scripted_backend({"a": second})
    return screened_backend(screen, careful, floor=floor), screen, careful


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("first", "asked", "score"), [(0.19, 0, 0.19), (0.2, 1, 0.7), (0.9, 1, 0.7), (0.0, 0, 0.0)]
)
def test_only_what_the_screen_lets_pass_is_judged(is_async, first, asked, score):
    backend, screen, careful = screened(first, 0.7)
    reranker = EvidenceReranker(backend)
    result = (
        asyncio.run(reranker.arerank(QUESTION, ["a"]))
        if is_async
        else reranker.rerank(QUESTION, ["a"])
    )
    [found] = result.passages
    assert (found.score, careful.judge.calls, screen.judge.calls) == (score, asked, 1)
    assert found.reason.startswith("screened out: scored" if not asked else "scored")


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "cost"),
    [
        (Usage(1, 5, 1), Usage(1, 50, 10), Usage(2, 55, 11)),
        (None, Usage(1, 50, 10), Usage(2, 50, 10)),
        (Usage(), None, Usage(1)),
    ],
)
def test_a_screen_that_costs_something_is_charged_for(is_async, first, second, cost):
    backend, *_ = screened(Judgement(score=0.5, usage=first), Judgement(score=0.7, usage=second))
    reranker = EvidenceReranker(backend)
    result = (
        asyncio.run(reranker.arerank(QUESTION, ["a"]))
        if is_async
        else reranker.rerank(QUESTION, ["a"])
    )
    assert result.usage["score"] == cost


@pytest.mark.parametrize("is_async", [False, True])
def test_a_judge_that_fails_behind_a_screen_costs_both(is_async):
    backend, *_ = screened(
        Judgement(score=0.5, usage=Usage(1, 5, 1)), AnswerError("bad", usage=Usage(2, 9, 9))
    )
    reranker = EvidenceReranker(backend)
    result = (
        asyncio.run(reranker.arerank(QUESTION, ["a"]))
        if is_async
        else reranker.rerank(QUESTION, ["a"])
    )
    assert result.usage["score"] == Usage(3, 14, 10)
    assert result.failed[0].reason == "bad"


@pytest.mark.parametrize("place", [0, 1])
def test_an_answer_outside_the_schema_is_a_failure_on_both_sides(place):
    screen = scripted_backend(lambda task: {"score": 7} if place == 0 else judged(0.5))
    careful = scripted_backend(lambda task: {"score": 7} if place == 1 else judged(0.9))
    result = EvidenceReranker(screened_backend(screen, careful)).rerank(QUESTION, ["a"])
    assert result.failed[0].reason.startswith("unusable answer: score")


@pytest.mark.parametrize("floor", [-0.1, 1.1, "low", None])
def test_a_floor_out_of_range_is_named(floor):
    with pytest.raises(SettingsError, match="floor must be"):
        screened(0.5, 0.5, floor=floor)
