"""A cheap judge over all passages, and a careful one over the best of them."""

import asyncio
import json
from dataclasses import replace

import pytest

from deepera_graph import (
    AnswerError,
    Budget,
    CallError,
    EvidenceReranker,
    SettingsError,
    Survey,
    Usage,
    cascade_backend,
    llm_backend,
    load_backend,
    local_backend,
)
from deepera_graph.cache.store import JudgementCache
from deepera_graph.judges.cascade import MOST_UNREAD
from deepera_graph.schema import GroupJudgement
from support.roles import FREE, ScriptedRole, judged, scripted_backend
from support.scripted import ScriptedChat
from support.surveys import run, scores

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
def test_the_local_judge_gets_the_notes_of_its_surveyor_and_the_careful_one_its_own(is_async):
    first = replace(
        cheap(lambda task: judged(task["notes"]["n"] / 10)),
        surveyor=ScriptedRole(
            lambda task: Survey(
                notes=[{"n": int(one["text"][-1])} for one in task["passages"]], usage=Usage(1, 2)
            )
        ),
    )
    second = replace(
        careful(),
        surveyor=ScriptedRole(
            lambda task: Survey(notes=[{"m": 7}] * len(task["passages"]), usage=FREE)
        ),
    )
    result = run(cascade_backend(first, second, 3), TEXTS, is_async=is_async)
    assert asked(second) == TEXTS[-3:]
    assert [task["notes"] for task in second.judge.tasks] == [{"m": 7}] * 3
    assert result.usage["survey"] == Usage(1, 2)


@pytest.mark.parametrize("is_async", [False, True])
def test_without_a_survey_the_local_judge_alone_judges_and_says_so(is_async):
    first = replace(cheap(), surveyor=ScriptedRole(lambda task: AnswerError("torn")))
    second = careful()
    result = run(cascade_backend(first, second, 3), TEXTS, is_async=is_async, threshold=0.6)
    assert result.survey == {"status": "failed", "cause": "torn"}
    assert {one.text: one.score for one in result.passages} == CHEAP
    assert result.passages[0].kept
    assert result.passages[0].reason.startswith("judged by the local judge alone")
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


def test_a_local_judge_that_fails_on_all_is_a_failed_survey_with_its_cost():
    bad = cheap(lambda task: CallError("no model", usage=Usage(failed_calls=1)))
    result = run(cascade_backend(bad, careful(), 2), TEXTS)
    assert (result.survey["status"], result.survey["cause"]) == ("failed", "no model")
    assert result.usage["survey"] == Usage(failed_calls=8)
    assert len(result.failed) == 8


def test_ties_are_broken_by_the_text_not_by_the_place():
    picked = []
    for texts in (TEXTS, TEXTS[::-1]):
        second = careful()
        run(cascade_backend(cheap(dict.fromkeys(TEXTS, 0.5)), second, 3), texts)
        picked.append(asked(second))
    assert picked == [TEXTS[:3]] * 2


def test_an_estimate_counts_no_more_than_the_best_and_asks_nothing():
    chat = ScriptedChat(scores={"text": AssertionError("an estimate must not ask")})
    first = replace(cheap(lambda task: pytest.fail("asked")), name="x")
    backend = cascade_backend(local_backend("rules"), llm_backend(chat), keep=3)
    long = [*TEXTS, "a far longer text than any of the others"]
    estimate = EvidenceReranker(backend, top_n=2).estimate(
        [(QUESTION, long), (QUESTION, TEXTS[:1])]
    )
    assert {stage: used.calls for stage, used in estimate.usage.items()} == {
        "intent": 2, "survey": 0, "score": 4, "summarize": 3,
    }  # fmt: skip
    assert estimate.tokens_known
    own = EvidenceReranker(cascade_backend(first, llm_backend(chat), 3)).estimate(
        [(QUESTION, TEXTS)]
    )
    assert (own.usage["survey"].calls, own.usage["summarize"].calls) == (8, 3)


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


class Grouped(ScriptedRole):
    """A judge of groups of two, which fails where *fault* says so."""

    group_size = 2

    def __init__(self, fault=lambda texts: None):
        super().__init__(lambda task: judged(0.9))
        self.groups = ScriptedRole(lambda group: fault(texts_of(group)) or in_one_call(group))

    def of_groups(self):
        return self.groups


def texts_of(group):
    return [task["text"] for task in group["tasks"]]


def in_one_call(group):
    free, paid = judged(0.9), judged(0.9, usage=Usage(1, 9))
    verdicts = [paid, *[free] * (len(group["tasks"]) - 1)]
    return GroupJudgement(verdicts=verdicts, usage=Usage(1, 9))


@pytest.mark.parametrize("is_async", [False, True])
def test_what_was_picked_shares_calls_and_what_was_not_takes_no_place(is_async):
    second = replace(careful(), judge=(judge := Grouped()), spec=SPEC)
    with JudgementCache() as cache:
        backend = cascade_backend(replace(cheap(), spec=SPEC), second, 4)
        result = run(backend, TEXTS, is_async=is_async, cache=cache)
        run(backend, TEXTS[2:], is_async=is_async, cache=cache)
    assert sorted(map(texts_of, judge.groups.tasks)) == [TEXTS[4:6], TEXTS[6:]]
    assert judge.calls == 0
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
    first = replace(
        cheap({**CHEAP, TEXTS[1]: ValueError("odd")}),
        surveyor=ScriptedRole(lambda task: AnswerError("torn")),
    )
    alone = run(cascade_backend(first, second, 4), TEXTS, is_async=is_async)
    assert [one.reason for one in alone.failed] == ["ValueError: odd"]
    assert len(alone.passages) == 8
    assert judge.groups.calls == 2


def test_an_estimate_counts_groups_of_what_is_picked():
    chat = ScriptedChat(scores={"text": AssertionError("an estimate must not ask")})
    llm = llm_backend(chat, mode="grouped", group_size=2)
    estimate = EvidenceReranker(cascade_backend(local_backend("rules"), llm, 4)).estimate(
        [(QUESTION, TEXTS)]
    )
    assert estimate.usage["score"].calls == 2
