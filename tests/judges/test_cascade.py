"""A cheap judge over all passages, and a careful one over the best of them."""

import asyncio
import json
from dataclasses import replace

import pytest

from deepera_graph import (
    Budget,
    EvidenceReranker,
    SettingsError,
    Usage,
    cascade_backend,
    llm_backend,
    load_backend,
    local_backend,
    screened_backend,
)
from deepera_graph.errors import AnswerError, CallError
from deepera_graph.judges.base import Judge
from deepera_graph.judges.cascade import MOST_UNREAD
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.testing import ScriptedChat, judged, scripted_backend
from support.list_judges import ListJudge, by_length, run, scores

QUESTION = "Which text?"
TEXTS = [f"text {number}" for number in range(8)]
CHEAP = {text: number / 10 for number, text in enumerate(TEXTS)}
SPEC = {"kind": "factory", "path": "support.roles:importable_backend"}


def cheap(play=CHEAP):
    return scripted_backend(play)


def careful(play=None, **options):
    return scripted_backend(play or (lambda task: judged(0.9, quote=task["text"])), **options)


def asked(backend):
    return sorted(task["text"] for task in backend.judge.tasks)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("keep", [1, 3, 8, 100])
def test_the_careful_judge_reads_the_best_alone(keep, is_async):
    first, second = cheap(), careful()
    result = run(cascade_backend(first, second, keep), TEXTS, is_async=is_async)
    assert asked(second) == TEXTS[-keep:]
    assert asked(first) == TEXTS
    for place, text in enumerate(TEXTS):
        expected = 0.9 if text in TEXTS[-keep:] else pytest.approx(MOST_UNREAD * CHEAP[text])
        assert scores(result)[str(place + 1)] == expected
    assert (first.intent.calls, first.summarizer.calls) == (0, 0)
    assert second.summarizer.calls == len(result.kept) == min(keep, 8)


def test_what_was_not_read_says_so_keeps_its_order_and_stays_under_the_threshold():
    result = run(cascade_backend(cheap(), careful(), 2), TEXTS, threshold=0.15)
    unread = [one for one in result.passages if not one.kept]
    assert [one.text for one in unread] == TEXTS[5::-1]
    assert unread[0].reason == (
        "not among the best 2 of the local judge (0.50): the language model did not read it"
    )


@pytest.mark.parametrize("is_async", [False, True])
def test_each_judge_sees_the_windows_it_needs_and_no_score_of_the_other(is_async):
    first, second = replace(cheap(), judge=ListJudge()), replace(careful(), judge=ListJudge())
    texts = [text * (1 + place) for place, text in enumerate(TEXTS)]
    result = run(cascade_backend(first, second, 3), texts, is_async=is_async)
    [cheaply], [carefully] = first.judge.batches, second.judge.batches
    assert {one["text"] for one in cheaply["windows"]} == set(texts)
    assert "scores" not in carefully
    assert [one.score for one in result.passages[:3]] == sorted(
        (one.score for one in by_length(cheaply)), reverse=True
    )[:3]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_local_judge_that_fails_on_all_asks_nobody_else_and_says_why(is_async):
    first, second = replace(cheap(), judge=ListJudge(lambda batch: AnswerError("torn"))), careful()
    result = run(cascade_backend(first, second, 3), TEXTS, is_async=is_async, threshold=0.6)
    assert {one.reason for one in result.failed} == {"torn"}
    assert len(result.failed) == 8
    assert second.judge.calls == 0


@pytest.mark.parametrize("is_async", [False, True])
def test_a_passage_that_a_judge_fails_on_has_failed_and_sinks_no_other(is_async):
    def broken(task):
        if task["text"] == TEXTS[6]:
            raise ValueError("odd text")
        return judged(CHEAP[task["text"]])

    second = careful({**dict.fromkeys(TEXTS, 0.9), TEXTS[7]: AnswerError("no answer")})
    result = run(cascade_backend(cheap(broken), second, 2), TEXTS, is_async=is_async)
    assert {one.text: one.reason for one in result.failed} == {
        TEXTS[6]: "ValueError: odd text",
        TEXTS[7]: "no answer",
    }
    assert asked(second) == [TEXTS[5], TEXTS[7]]


def test_a_local_judge_that_fails_on_all_costs_what_it_costs():
    bad = cheap(lambda task: CallError("no model", usage=Usage(failed_calls=1)))
    result = run(cascade_backend(bad, careful(), 2), TEXTS)
    assert {one.reason for one in result.failed} == {"no model"}
    assert result.usage["score"] == Usage(failed_calls=8)
    assert len(result.failed) == 8


def test_ties_are_broken_by_the_text_not_by_the_place():
    picked = []
    for texts in (TEXTS, TEXTS[::-1]):
        second = careful()
        run(cascade_backend(cheap(dict.fromkeys(TEXTS, 0.5)), second, 3), texts)
        picked.append(asked(second))
    assert picked == [TEXTS[:3]] * 2


@pytest.mark.full
def test_an_estimate_counts_no_more_than_the_best_and_asks_nothing():
    chat = ScriptedChat(scores={"text": AssertionError("an estimate must not ask")})
    first = replace(cheap(lambda task: pytest.fail("asked")), name="x")
    backend = cascade_backend(local_backend("rules"), llm_backend(chat), keep=3)
    long = [*TEXTS, "a far longer text than any of the others"]
    estimate = EvidenceReranker(backend, top_n=2).estimate(
        [(QUESTION, long), (QUESTION, TEXTS[:1])]
    )
    assert {stage: used.calls for stage, used in estimate.usage.items()} == {
        "intent": 2, "score": 4, "summarize": 3,
    }  # fmt: skip
    assert estimate.tokens_known
    own = EvidenceReranker(cascade_backend(first, llm_backend(chat), 3)).estimate(
        [(QUESTION, TEXTS)]
    )
    assert (own.usage["score"].calls, own.usage["summarize"].calls) == (8 + 3, 3)


def test_a_careful_judgement_is_paid_for_once_whatever_else_is_in_the_pool():
    with JudgementCache() as cache:
        backend = cascade_backend(
            replace(cheap(), spec=SPEC), replace(second := careful(), spec=SPEC), 2
        )
        run(backend, TEXTS, cache=cache)
        run(backend, TEXTS[2:], cache=cache)
        assert asked(second) == TEXTS[-2:]


def test_the_budget_stops_what_is_left():
    second = careful(lambda task: judged(0.9, usage=Usage(1, 10, 10)))
    backend = cascade_backend(cheap(), second, 4)
    result = run(backend, TEXTS, budget=Budget(max_calls=3), max_concurrency=1)
    assert (result.outcome, second.judge.calls) == ("budget_stop", 3)


def test_a_cascade_is_built_again_from_its_spec():
    backend = cascade_backend(load_backend("rules"), load_backend(dict(SPEC)), keep=5)
    plain = json.loads(json.dumps(EvidenceReranker(backend).to_dict()))
    again = EvidenceReranker.from_dict(plain).backend
    assert (again.name, again.spec, again.about) == (backend.name, backend.spec, backend.about)
    assert again.about["cascade"]["keep"] == 5
    assert cascade_backend(load_backend("rules"), cheap()).spec is None


@pytest.mark.full
@pytest.mark.parametrize("keep", [0, -1, 2.5, True, "30"])
def test_a_number_to_keep_that_is_none_is_named(keep):
    with pytest.raises(SettingsError, match="keep must be"):
        cascade_backend(cheap(), cheap(), keep)


def test_nothing_to_judge_asks_nobody():
    first, second = cheap(), careful()
    assert (
        asyncio.run(EvidenceReranker(cascade_backend(first, second)).arerank("?", [])).passages
        == ()
    )
    assert first.judge.calls + second.judge.calls == 0


class Grouped(Judge):
    """A judge of groups of two, which fails where *fault* says so."""

    group_size = 2

    def __init__(self, fault=lambda texts: None):
        self.fault, self.groups = fault, []

    def plan(self, request):
        numbers = sorted(request.next)
        starts = range(0, len(numbers), self.group_size)
        return [request.batch(numbers[start : start + self.group_size]) for start in starts]

    def judge(self, batch, config=None):
        texts = [window["text"] for window in batch["windows"]]
        self.groups.append(texts)
        if error := self.fault(texts):
            raise error
        return [judged(0.9, usage=Usage(1, 9)), *[judged(0.9)] * (len(texts) - 1)]


@pytest.mark.parametrize("is_async", [False, True])
def test_what_was_picked_shares_calls_and_what_was_not_takes_no_place(is_async):
    second = replace(careful(), judge=(judge := Grouped()), spec=SPEC)
    with JudgementCache() as cache:
        backend = cascade_backend(replace(cheap(), spec=SPEC), second, 4)
        result = run(backend, TEXTS, is_async=is_async, cache=cache)
        run(backend, TEXTS[2:], is_async=is_async, cache=cache)
    assert sorted(judge.groups) == [TEXTS[4:6], TEXTS[6:]]
    assert result.usage["score"] == Usage(2, 18)
    assert scores(result)["4"] == pytest.approx(MOST_UNREAD * 0.3)
    assert [one.kept for one in result.passages] == [True] * 4 + [False] * 4


@pytest.mark.parametrize("is_async", [False, True])
def test_a_group_that_fails_leaves_the_others_as_they_are(is_async):
    judge = Grouped(
        lambda texts: AnswerError("torn", usage=Usage(1)) if TEXTS[7] in texts else None
    )
    second = replace(careful(), judge=judge)
    result = run(cascade_backend(cheap(), second, 4), TEXTS, is_async=is_async)
    assert {one.text for one in result.failed} == set(TEXTS[6:])
    assert {one.text for one in result.kept} == set(TEXTS[4:6])
    assert result.usage["score"] == Usage(2, 9)
    first = cheap({**CHEAP, TEXTS[1]: ValueError("odd")})
    once = run(cascade_backend(first, second, 4), TEXTS[:4], is_async=is_async)
    assert [one.reason for one in once.failed] == ["ValueError: odd"]
    assert {one.text for one in once.kept} == {TEXTS[0], TEXTS[2], TEXTS[3]}


def test_an_estimate_counts_groups_of_what_is_picked():
    chat = ScriptedChat(scores={"text": AssertionError("an estimate must not ask")})
    llm = llm_backend(chat, mode="grouped", group_size=2)
    estimate = EvidenceReranker(cascade_backend(local_backend("rules"), llm, 4)).estimate(
        [(QUESTION, TEXTS)]
    )
    assert estimate.usage["score"].calls == 2


@pytest.mark.parametrize("is_async", [False, True])
def test_a_cascade_behind_a_screen_keeps_its_own_first_scores(is_async):
    screen = cheap({text: 0.1 if text == TEXTS[7] else 0.5 for text in TEXTS})
    second = careful()
    inner = cascade_backend(cheap(), second, 2)
    result = run(screened_backend(screen, inner, floor=0.2), TEXTS, is_async=is_async)
    assert asked(second) == TEXTS[5:7]
    assert scores(result)["8"] == 0.1
    assert scores(result)["1"] == pytest.approx(0.0)
    assert scores(result)["5"] == pytest.approx(MOST_UNREAD * 0.4)
