"""A judge is given a list and gives a list: what it is shown, what it costs, how it fails."""

import asyncio
import pickle
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langgraph.types import Send

from deepera_graph import (
    Budget,
    EvidenceReranker,
    JudgementCache,
    Settings,
    SettingsError,
    Usage,
    build_graph,
    llm_backend,
    local_backend,
    mixed_backend,
    screened_backend,
)
from deepera_graph.errors import AnswerError, CallError, RoleError
from deepera_graph.judges.base import Judge, PassageJudge, as_judge, judge_all
from deepera_graph.pipeline.intent import UNKNOWN, receive
from deepera_graph.pipeline.score import Planner
from deepera_graph.schema import Judgement, Unjudged
from deepera_graph.settings.budget import Meter, with_meter
from deepera_graph.testing import FREE, ScriptedChat, ScriptedRole, judged, scripted_backend
from support.list_judges import (
    QUESTION,
    TEXTS,
    ListJudge,
    by_length,
    list_backend,
    run,
    scores,
    strict,
)

SPEC = {"kind": "factory", "path": "support.roles:importable_backend"}


def planned(passages, judge, **options):
    """What is sent to a judge for some passages."""
    chosen = Settings(**options)
    state = receive({"question": QUESTION, "passages": passages}, {}, settings=chosen)
    state |= {"question": QUESTION, "judgements": [], "candidates": []}
    planner = Planner(judge=judge, settings=chosen, evidence="any", has_cache=False)
    command = planner.plan(state, {})
    return [one for one in command.goto if isinstance(one, Send)]


@pytest.mark.parametrize("is_async", [False, True])
def test_every_window_is_judged_once_beside_the_others_and_equal_ones_share_it(is_async):
    backend = list_backend()
    long = " ".join(f"word{n}" for n in range(70))
    passages = [*TEXTS, Document(page_content=" \n"), Document(page_content=long), TEXTS[0]]
    result = run(backend, passages, is_async=is_async, max_passage_chars=200)
    [batch] = backend.judge.batches
    texts = [window["text"] for window in batch["windows"]]
    assert len(texts) == len(set(texts)) == 6  # three texts, three windows, no blank one
    found = {text: one.score for text, one in zip(texts, by_length(batch), strict=True)}
    assert {text: scores(result)[id] for id, text in zip("123", TEXTS, strict=True)} == {
        text: found[text] for text in TEXTS
    }
    assert scores(result)["6"] == scores(result)["1"]
    assert scores(result)["4"] is None


def test_a_judge_is_shown_text_title_and_section_alone():
    backend = list_backend()
    secret = {"label": "secret", "score": 0.125, "title": "T", "section": "S"}
    run(backend, [{"id": "secret", "text": "Text.", "score": 0.125, "metadata": secret}])
    [batch] = backend.judge.batches
    assert batch["windows"] == [{"text": "Text.", "title": "T", "section": "S"}]
    assert "secret" not in str(batch)
    assert batch["numbers"] == [0]


PASSAGE = st.builds(
    lambda text, title: Document(page_content=text, metadata={"title": title}),
    st.text("ab. ", max_size=6),
    st.sampled_from(["", "T"]),
)
JUDGES = [
    ListJudge(),
    ListJudge(is_joint=False),
    as_judge(llm_backend(ScriptedChat(scores={}), mode="grouped", group_size=2).judge),
]


@pytest.mark.full
@settings(max_examples=40, deadline=None)
@given(st.lists(PASSAGE, max_size=6), st.randoms(use_true_random=False))
def test_what_a_judge_is_given_depends_on_the_set_of_passages_alone(passages, chance):
    again = [
        Document(id=f"x{n}", page_content=one.page_content,
                 metadata={**one.metadata, "retrieval_rank": n + 1, "label": n})
        for n, one in enumerate([*passages, *passages[:2]])
    ]  # fmt: skip
    chance.shuffle(again)
    for judge in JUDGES:
        first, second = (
            sorted([send.arg["batch"] for send in planned(shown, judge)], key=str)
            for shown in (passages, again)
        )
        assert first == second


def test_a_judge_of_single_passages_has_one_a_batch_and_no_other_beside_it():
    n = 1000
    passages = [Document(page_content=f"Text {k}.") for k in range(n)]
    sends = planned(passages, PassageJudge(ScriptedRole(judged)))
    assert [send.arg["batch"]["windows"][0]["text"] for send in sends] == [
        one.page_content for one in passages
    ]
    assert max(len(pickle.dumps(send.arg)) for send in sends) < 700


@pytest.mark.parametrize(
    ("play", "cause"),
    [
        (lambda batch: RuntimeError("out of memory"), "RuntimeError: out of memory"),
        (lambda batch: [judged(0.5)], "unusable answer: 1 verdicts on 3 passages"),
        (lambda batch: [judged(0.5)] * 4, "unusable answer: 4 verdicts on 3 passages"),
        (lambda batch: None, "TypeError"),
        (lambda batch: AnswerError("lost", usage=Usage(2, 7, 7)), "lost"),
        (lambda batch: CallError("no key", unusable=True), "no key"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_batch_that_fails_fails_its_passages_with_the_cause(play, cause, is_async):
    result = run(list_backend(play), is_async=is_async)
    assert [one.status for one in result.passages] == ["failed"] * 3
    assert all(cause in one.reason for one in result.passages)
    assert {one.unusable for one in result.passages} == {cause == "no key"}
    assert result.outcome == "degraded"
    assert result.usage["score"].calls == {"lost": 2}.get(cause, result.usage["score"].calls)


@pytest.mark.parametrize(
    ("bad", "cause"),
    [
        ({"score": 7}, "score: Input should be less than or equal to 1, got 7"),
        ({"score": "0.5"}, "score: Input should be a valid number"),
        ({"score": float("nan")}, "score"),
        (None, "unusable answer"),
        (Unjudged(cause="odd text", usage=FREE), "odd text"),
        (AnswerError("no answer"), "no answer"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_one_unusable_verdict_of_a_batch_sinks_no_other(bad, cause, is_async):
    def play(batch):
        return [bad if one["text"] == "Bad." else {"score": 0.9} for one in batch["windows"]]

    result = run(list_backend(play), is_async=is_async)
    [failed] = result.failed
    assert (failed.id, failed.status) == ("3", "failed")
    assert cause in failed.reason
    assert {one.score for one in result.kept} == {0.9}


class Planless(ListJudge):
    """Cannot plan."""

    def plan(self, request):
        raise KeyError("no plan")


class Forgetful(ListJudge):
    """Asks for what it has judged."""

    def plan(self, request):
        return [request.batch([0])]


class Content(ListJudge):
    """Wants no more than one window."""

    def plan(self, request):
        is_first = len(request.open) == len(request.windows)
        return [request.batch([0])] if is_first else []


@pytest.mark.parametrize(
    ("judge", "told"),
    [
        (Planless(), "the judge cannot plan: KeyError: 'no plan'"),
        (Forgetful(), "the judge cannot plan: it asks again for what it has judged"),
    ],
)
def test_a_judge_that_cannot_plan_is_a_clear_error(judge, told):
    with pytest.raises(RoleError, match=told):
        run(replace(list_backend(), judge=judge))


def test_a_judge_that_wants_no_more_leaves_the_rest_unneeded():
    result = run(replace(list_backend(), judge=Content(lambda batch: [judged(0.9)])))
    assert [one.status for one in result.passages] == ["scored", "not_needed", "not_needed"]
    assert {one.reason for one in result.not_needed} == {"skipped: the judge asked for no more"}


def by_word(task):
    return Judgement(score=0.9 if "grew" in task["text"] else 0.1)


async def slowly_by_word(task):
    await asyncio.sleep(0)
    return by_word(task)


class Asked:
    """A judge with a state of its own."""

    async def __call__(self, task):
        return await slowly_by_word(task)


TWO = ["Kelp grew.", "Kelp died."]
FUNCTIONS = {
    "function": by_word,
    "coroutine": slowly_by_word,
    "method": Asked().__call__,
    "runnable": RunnableLambda(slowly_by_word),
    "chain": RunnableLambda(lambda task: task) | RunnableLambda(slowly_by_word),
    "bound": RunnableLambda(slowly_by_word).with_config(tags=["mine"]),
}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("judge", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_judges_single_passages_and_a_coroutine_function_is_awaited(judge, is_async):
    result = run(replace(local_backend("rules"), judge=judge, spec=None), TWO, is_async=is_async)
    assert {one.text: one.score for one in result.passages} == dict(
        zip(TWO, (0.9, 0.1), strict=True)
    )
    assert result.outcome != "degraded"


def test_a_coroutine_function_judges_in_a_notebook_whose_loop_is_running():
    backend = replace(local_backend("rules"), judge=slowly_by_word, spec=None)

    async def cell():
        return EvidenceReranker(backend).rerank(QUESTION, TWO)

    assert [one.score for one in asyncio.run(cell()).passages] == [0.9, 0.1]


@pytest.mark.parametrize("is_async", [False, True])
def test_other_roles_may_be_coroutine_functions_too(is_async):
    rules = local_backend("rules")

    async def read(task):
        return await rules.intent.ainvoke(task)

    backend = replace(rules, intent=RunnableLambda(read), spec=None)
    assert run(backend, TWO, is_async=is_async).intent == run(rules, TWO).intent


def test_what_is_no_judge_is_named():
    with pytest.raises(
        SettingsError, match="judge must be a Judge, a Runnable or a function, got 7"
    ):
        EvidenceReranker(replace(list_backend(), judge=7))


@pytest.mark.parametrize("passages", [[], [Document(page_content=" ")]])
def test_a_second_turn_with_nothing_to_judge_forgets_the_windows_of_the_first(passages):
    backend = list_backend()
    graph = build_graph(backend, checkpointer=strict())
    config = {"configurable": {"thread_id": "one"}}
    graph.invoke({"question": QUESTION, "passages": TEXTS}, config)
    assert len(graph.get_state(config).values["windows"]) == 3
    graph.invoke({"question": QUESTION, "passages": passages}, config)
    assert graph.get_state(config).values["windows"] == []
    assert backend.judge.calls == 1


@pytest.mark.parametrize("has_cache", [False, True])
def test_a_judge_may_prepare_while_the_intent_is_asked_for_unless_it_is_known(has_cache):
    told = []
    backend = replace(list_backend(), spec={"kind": "told ahead"})
    backend.judge.prepare = lambda windows: told.append((backend.intent.calls, windows))
    cache = JudgementCache() if has_cache else None
    EvidenceReranker(backend, cache=cache).rerank(QUESTION, [*TEXTS, TEXTS[0]])
    [batch] = backend.judge.batches
    assert sorted(window["text"] for _, windows in told for window in windows) == (
        [] if has_cache else sorted(TEXTS)
    )
    assert has_cache or told == [(0, told[0][1])]
    assert [one["text"] for one in batch["windows"]] == sorted(TEXTS)


def test_nothing_is_prepared_once_the_budget_is_spent():
    told = []
    backend = list_backend()
    backend.judge.prepare = told.append
    meter = Meter(Budget(max_calls=1))
    asked = {"question": QUESTION, "passages": TEXTS}
    for n_told in (1, 1):
        build_graph(backend).invoke(asked, with_meter({}, meter))
        assert len(told) == n_told
        meter.charge(Usage(calls=1), n_ended=0)


def test_an_equal_set_of_passages_is_paid_for_once_and_another_is_judged_anew():
    with JudgementCache() as cache:
        first = list_backend(spec=SPEC)
        before = run(first, cache=cache)
        assert first.judge.calls == 1
        again = list_backend(spec=SPEC)
        after = run(again, [*TEXTS[::-1], TEXTS[0]], cache=cache)
        assert again.judge.calls == 0
        assert [one.score for one in after.passages[:3]] == [1.0, scores(before)["1"], 9 / 19]
        run(again, TEXTS[:2], cache=cache)
        assert again.judge.calls == 1


def test_a_batch_that_is_not_joint_is_cached_window_by_window():
    def play(batch):
        return [judged(0.9) for _ in batch["windows"]]

    with JudgementCache() as cache:
        backend = list_backend(play, is_joint=False, spec=SPEC)
        run(backend, TEXTS[:2], cache=cache)
        run(backend, TEXTS, cache=cache)
        asked = [[one["text"] for one in batch["windows"]] for batch in backend.judge.batches]
    assert asked == [sorted(TEXTS[:2]), [TEXTS[2]]]


def test_what_does_not_fit_is_not_cached_and_a_spent_budget_is_told():
    with JudgementCache() as cache:
        backend = list_backend(lambda batch: [], spec=SPEC)
        for n_calls in (1, 2):
            assert len(run(backend, cache=cache).failed) == 3
            assert backend.judge.calls == n_calls
        meter = Meter(Budget(max_calls=1))
        meter.admit()
        meter.charge(Usage(calls=1))
        reranker = EvidenceReranker(backend, cache=cache)
        result = reranker.rerank(QUESTION, TEXTS, config=with_meter({}, meter))
    assert {one.status for one in result.passages} == {"skipped_budget"}
    assert {one.reason for one in result.passages} == {"budget reached: 1 calls"}
    assert result.outcome == "budget_stop"
    assert backend.judge.calls == 2


@pytest.mark.parametrize("is_async", [False, True])
def test_a_resumed_run_does_not_repeat_a_finished_batch(is_async):
    surprise = [KeyboardInterrupt()]
    backend = list_backend()

    def summarize(task):
        if surprise:
            raise surprise.pop()
        return {"text": task["text"]}

    backend = replace(backend, summarizer=ScriptedRole(summarize))
    reranker = EvidenceReranker(backend, checkpointer=strict(), max_concurrency=1, threshold=0.9)
    config = {"configurable": {"thread_id": "one"}}

    def go(**options):
        if is_async:
            return asyncio.run(reranker.arerank(QUESTION, TEXTS, config=config, **options))
        return reranker.rerank(QUESTION, TEXTS, config=config, **options)

    with pytest.raises(KeyboardInterrupt):
        go()
    result = go(resume=True)
    assert (backend.intent.calls, backend.judge.calls) == (1, 1)
    assert scores(result) == scores(run(list_backend()))


def never(batch):
    raise AssertionError("an estimate must not ask")


def test_an_estimate_counts_a_batch_as_a_call_and_asks_nothing():
    estimate = EvidenceReranker(list_backend(never)).estimate([(QUESTION, TEXTS), (QUESTION, [])])
    assert {stage: used.calls for stage, used in estimate.usage.items()} == {
        "intent": 1, "score": 1, "summarize": 3,
    }  # fmt: skip
    assert not estimate.tokens_known


class LongestFirst(Judge):
    """A judge that can be pickled."""

    def judge(self, batch, config=None):
        return by_length(batch)


def test_a_judge_travels_with_its_reranker():
    backend = replace(local_backend(), judge=LongestFirst(), spec=None)
    copied = pickle.loads(pickle.dumps(EvidenceReranker(backend)))
    assert scores(copied.rerank(QUESTION, TEXTS)) == {"1": 9 / 19, "2": 1.0, "3": 4 / 19}


def test_a_mix_has_the_judge_of_one_part():
    joint, plain = list_backend(), scripted_backend(lambda task: judged(0.5))
    assert mixed_backend(intent=plain, judge=joint, summarizer=plain).judge is joint.judge
    assert mixed_backend(intent=joint, judge=plain, summarizer=joint).judge is plain.judge


@pytest.mark.parametrize("is_async", [False, True])
def test_behind_a_screen_each_judge_sees_what_it_needs(is_async):
    screen = list_backend(lambda batch: [judged(0.5, usage=Usage(1, 5, 5))] * len(batch["windows"]))
    backend = list_backend(is_joint=False)
    result = run(screened_backend(screen, backend), [*TEXTS, "x"], is_async=is_async)
    [first], [second] = screen.judge.batches, backend.judge.batches
    assert len(first["windows"]) == len(second["windows"]) == 4
    assert (first["part"], second["part"], first["is_joint"], second["is_joint"]) == (
        "", "", True, False,
    )  # fmt: skip
    assert result.usage["score"] == Usage(4, 20, 20)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_run_that_stops_tells_what_a_judge_of_the_whole_pool_said_before_its_turn(is_async):
    """A joint judge has judged all; what is beyond the last round is not needed all the same."""
    backend = list_backend(lambda batch: [judged(0.95)] * len(batch["windows"]))
    options = {"stop_after": 1, "round_size": 1}
    result = run(backend, is_async=is_async, **options)
    assert [(one.id, one.score, one.status) for one in result.passages] == [
        ("1", 0.95, "scored"), ("2", None, "not_needed"), ("3", None, "not_needed"),
    ]  # fmt: skip
    assert backend.judge.calls == 1


def test_without_a_pipeline_a_judge_judges_round_after_round():
    cheap = scripted_backend({"a": 0.1, "b": 0.9})
    careful = scripted_backend({"b": 0.7})
    judge = screened_backend(cheap, careful).judge
    windows = [{"text": text, "title": "", "section": ""} for text in ("b", "a")]
    found = judge_all(judge, QUESTION, UNKNOWN, windows)
    assert [one.score for one in found] == [0.7, 0.1]
