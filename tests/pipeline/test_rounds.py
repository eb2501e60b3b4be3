"""Passages are asked about in rounds, and no longer than there is need, budget and a run."""

import asyncio
import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

from deepera_graph import (
    Budget,
    EvidenceReranker,
    JudgementCache,
    RerankResult,
    Settings,
    SettingsError,
    build_graph,
    cascade_backend,
    screened_backend,
)
from deepera_graph.errors import CallError, RoleError
from deepera_graph.judges.base import Judge
from deepera_graph.lab.rankers.deepera import DeepEra
from deepera_graph.pipeline.score import sure_from
from deepera_graph.settings.budget import Meter, with_meter
from deepera_graph.testing import judged, scripted_backend

QUESTION = "Which text?"
SPEC = {"kind": "factory", "path": "support.roles:importable_backend"}


def by_first_word(task):
    """A text that begins with its score."""
    return judged(float(task["text"].split()[0]), quote=task["text"])


def texts_of(scores):
    return [f"{score} of text {number}." for number, score in enumerate(scores)]


def ways(reranker, passages):
    """The results of both front doors."""
    return reranker.rerank(QUESTION, passages), asyncio.run(reranker.arerank(QUESTION, passages))


def essence(result):
    return {**result.to_dict(), "seconds": None, "manifest": None}


def run(scores, **options):
    backend = scripted_backend(by_first_word)
    result = EvidenceReranker(backend, **options).rerank(QUESTION, texts_of(scores))
    return result, backend


def ids(passages):
    return [one.id for one in passages]


SCORES = st.lists(st.sampled_from([0.1, 0.5, 0.8, 0.89, 0.9, 1.0]), min_size=1, max_size=12)


@pytest.mark.full
@hypothesis_settings(max_examples=25, deadline=None)
@given(
    scores=SCORES,
    stop_after=st.none() | st.integers(1, 5),
    round_size=st.none() | st.integers(1, 7),
    top_n=st.sampled_from([2, 20]),
    order=st.randoms(use_true_random=False),
)
def test_a_run_that_stops_says_what_a_run_over_those_asked_about_says(
    scores, stop_after, round_size, top_n, order
):
    """Kept is what is kept of the passages asked about, which are the first ones, in whole rounds.

    So with room for all, what is kept is kept without rounds, too; and a run that stops has enough.
    """
    ranks = list(range(1, len(scores) + 1))
    order.shuffle(ranks)
    passages = [
        Document(id=str(rank), page_content=text, metadata={"retrieval_rank": rank})
        for rank, text in zip(ranks, texts_of(scores), strict=True)
    ]
    backend = scripted_backend(by_first_word)
    reranker = EvidenceReranker(backend, stop_after=stop_after, round_size=round_size, top_n=top_n)
    result, other = ways(reranker, passages)
    assert essence(result) == essence(other)
    assert backend.judge.calls == 2 * (len(scores) - len(result.not_needed)) <= 2 * len(scores)
    assert sorted(ids(result.passages)) == sorted(map(str, ranks))

    size = reranker.settings.passages_a_round or len(scores)
    n_asked = len(scores) - len(result.not_needed)
    asked = [one for one in passages if one.metadata["retrieval_rank"] <= n_asked]
    assert set(ids(asked)) | set(ids(result.not_needed)) == set(map(str, ranks))
    assert n_asked == len(scores) or n_asked % size == 0
    alone = EvidenceReranker(backend, top_n=top_n).rerank(QUESTION, asked)
    whole = EvidenceReranker(backend, top_n=top_n).rerank(QUESTION, passages)
    assert [(one.id, one.summary) for one in result.kept] == [
        (one.id, one.summary) for one in alone.kept
    ]
    if top_n >= len(scores):
        assert set(ids(result.kept)) <= set(ids(whole.kept))
    in_turn = dict(sorted(zip(ranks, scores, strict=True)))
    sure = [rank for rank, score in in_turn.items() if score >= 0.9]
    if result.not_needed:
        assert sum(rank <= n_asked for rank in sure) >= stop_after
        assert sum(rank <= n_asked - size for rank in sure) < stop_after
    elif stop_after and n_asked > size:
        assert sum(rank <= (n_asked - 1) // size * size for rank in sure) < stop_after


def test_what_is_not_needed_is_told_everywhere_and_is_no_failure():
    result, _ = run([0.95, 0.2, 1.0, *[0.9] * 20], stop_after=2)
    assert result.outcome == "ok"
    assert (len(result.kept), len(result.not_needed), result.failed) == (7, 15, ())
    assert len(result.kept + result.dropped + result.not_needed) == len(result.all_passages)
    assert [one.rank for one in result.passages] == list(range(1, 24))
    last = result.passages[-1]
    assert (last.id, last.score, last.kept, last.status) == ("23", None, False, "not_needed")
    assert last.reason == "skipped: 7 passages already scored >= 0.9"
    assert "15 not needed" in repr(result)
    assert "not needed 15" in result._repr_html_()
    assert RerankResult.from_json(result.to_json()) == result


def test_an_event_tells_of_each_passage_that_is_not_asked_about():
    reranker = EvidenceReranker(scripted_backend(by_first_word), stop_after=1, round_size=1)
    events = list(reranker.stream(QUESTION, texts_of([0.9, 0.9, 0.9])))
    told = [(one["id"], one["status"]) for one in events if one["event"] == "scored"]
    assert told == [("1", "scored"), ("2", "not_needed"), ("3", "not_needed")]


@pytest.mark.parametrize(
    ("threshold", "margin", "sure"),
    [
        pytest.param(0.8, 0.1, 0.9, id="a-tenth-above"),
        pytest.param(0.2, 0.1, 0.3, id="no-dust-of-floats"),
        pytest.param(0.95, 0.1, 0.975, id="half-way-at-most"),
        pytest.param(1.0, 0.1, 1.0, id="reachable"),
        pytest.param(0.5, 0.0, 0.5, id="no-margin"),
        pytest.param({"kind": "per_intent", "values": {"mechanism": 0.4}}, 0.1, 0.5, id="intent"),
    ],
)
def test_sure_is_a_margin_above_the_threshold(threshold, margin, sure):
    settings = Settings(threshold=threshold, stop_after=1, stop_margin=margin)
    assert sure_from(settings, "mechanism") == sure


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"stop_after": 0}, "stop_after must be a whole number >= 1, got 0"),
        ({"stop_after": 2.0}, "stop_after must be a whole number >= 1, got 2.0"),
        ({"round_size": True}, "round_size must be a whole number >= 1, got True"),
        ({"stop_margin": 1.5}, r"stop_margin must be in \[0, 1\], got 1.5"),
        ({"stop_after": 1, "threshold": {"kind": "gap"}}, "got the rule 'gap'"),
        ({"stop_after": 1, "threshold": {"kind": "quantile"}}, "got the rule 'quantile'"),
    ],
)
def test_settings_of_rounds_are_checked(given, named):
    with pytest.raises(SettingsError, match=named):
        Settings(**given)


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ({}, None),
        ({"stop_after": 3}, 8),
        ({"stop_after": 6}, 12),
        ({"stop_after": 6, "round_size": 2}, 2),
    ],
)
def test_the_size_of_a_round_depends_on_what_is_enough_alone(given, size):
    assert Settings(**given, max_concurrency=2).passages_a_round == size


def test_only_a_passage_with_evidence_counts_where_evidence_is_required():
    backend = scripted_backend(lambda task: judged(0.95, quote=task["text"][9:]))
    texts = ["No quote.", "Again no.", "There is one here.", "Here, too, is one."]
    options = {"stop_after": 1, "round_size": 1, "require_evidence": True}
    result = EvidenceReranker(backend, **options).rerank(QUESTION, texts)
    assert (ids(result.kept), ids(result.not_needed)) == (["3"], ["4"])


@pytest.mark.parametrize("cache", [None, JudgementCache()], ids=["no-cache", "cache"])
def test_once_the_budget_is_spent_only_the_cache_is_asked(cache):
    backend = scripted_backend(lambda task: by_first_word(task).model_copy(update={"usage": None}))
    backend = replace(backend, spec=SPEC)
    texts = texts_of([0.5] * 9)
    reranker = EvidenceReranker(
        backend, cache=cache, round_size=2, max_concurrency=1, content="passage"
    )
    if cache is not None:
        reranker.rerank(QUESTION, texts[6:])
    limited = reranker.with_settings(budget=Budget(max_calls=3))
    for result in ways(limited, texts)[: 1 if cache else 2]:
        assert result.outcome == "budget_stop"
        statuses = Counter(one.status for one in result.passages)
        assert statuses == {"scored": 6 if cache else 3, "skipped_budget": 3 if cache else 6}
        assert {one.reason for one in result.failed} == {"budget reached: 3 calls"}
        assert (cache is not None) == ("9" in ids(result.dropped))


def test_once_the_budget_is_spent_no_round_is_sent_out():
    backend = scripted_backend(lambda task: by_first_word(task).model_copy(update={"usage": None}))
    graph = build_graph(backend, Settings(round_size=2))
    config = with_meter({}, Meter(Budget(max_calls=3)))
    asked = {"question": QUESTION, "passages": texts_of([0.5] * 9)}
    nodes = [next(iter(one)) for one in graph.stream(asked, config, stream_mode="updates")]
    assert nodes == ["receive", "intent", *["score", "score", "plan"] * 2, "select"]


def test_a_backend_that_lets_nobody_in_is_not_asked_round_after_round():
    backend = scripted_backend(lambda task: CallError("no such key", unusable=True))
    result = EvidenceReranker(backend, round_size=2).rerank(QUESTION, texts_of([0.9] * 9))
    assert backend.judge.calls == 2
    assert result.backend_failure == "no such key"
    assert (len(result.failed), result.outcome) == (9, "degraded")


def test_failures_are_a_share_of_what_was_asked_about_and_stay_last():
    backend = scripted_backend(
        lambda task: CallError("out") if "0.0" in task["text"] else by_first_word(task)
    )
    texts = texts_of([0.0, 1.0, *[0.5] * 8])
    reranker = EvidenceReranker(backend, stop_after=1, round_size=2)
    result = reranker.rerank(QUESTION, texts)
    assert result.outcome == "degraded"
    assert ids(result.passages)[-2:] == ["10", "1"]
    assert ids(reranker.with_settings(on_error="drop").rerank(QUESTION, texts).left_out) == ["1"]
    with pytest.raises(RoleError, match="passage '1' could not be judged: out"):
        reranker.with_settings(on_error="raise").rerank(QUESTION, texts)


def test_all_windows_of_a_passage_are_in_one_round():
    seen = []
    backend = scripted_backend(lambda task: seen.append(task["text"]) or judged(0.9))
    passages = [" ".join(f"w{n:03}" for n in range(100)), "Short one.", "Short two."]
    options = {"max_passage_chars": 200, "round_size": 1, "stop_after": 1}
    result = EvidenceReranker(backend, **options).rerank(QUESTION, passages)
    assert (len(seen), ids(result.not_needed)) == (3, ["2", "3"])
    assert not any(one.windowed for one in result.not_needed)


class Groups(Judge):
    """Judges several texts a call, each by its first word, or as *play* says."""

    def __init__(self, group_size=3, play=by_first_word):
        self.group_size, self.play = group_size, play
        self.groups = []

    def plan(self, request):
        numbers = sorted(request.next)
        starts = range(0, len(numbers), self.group_size)
        return [request.batch(numbers[start : start + self.group_size]) for start in starts]

    def judge(self, batch, config=None):
        self.groups.append([one["text"] for one in batch["windows"]])
        return [self.play(one) for one in batch["windows"]]


def test_a_round_holds_whole_groups_and_equal_texts_at_once():
    judge = Groups()
    backend = replace(scripted_backend({}), judge=judge)
    texts = [*texts_of([0.9, 0.5, 0.5, 0.4, 0.4]), "0.9 of text 0.", *texts_of([0.1] * 9)]
    options = {"round_size": 2, "stop_after": 3}
    result = EvidenceReranker(backend, **options).rerank(QUESTION, texts)
    assert [sorted(group) for group in judge.groups[:2]] == [
        sorted(texts[:3]),
        sorted([*texts[3:5], texts[6]]),
    ]
    assert result.not_needed == ()
    without = Groups()
    EvidenceReranker(replace(backend, judge=without)).rerank(QUESTION, texts)
    assert len(judge.groups) == len(without.groups) == 5


def test_nobody_in_the_first_stage_is_passed_over_to_fill_a_round():
    judge = Groups(2)
    texts = ["0.9 first.", f"0.5 {'word ' * 60}", "0.9 third."]
    options = {"round_size": 2, "stop_after": 1, "max_passage_chars": 200}
    reranker = EvidenceReranker(replace(scripted_backend({}), judge=judge), **options)
    assert ids(reranker.rerank(QUESTION, texts).not_needed) == ["2", "3"]


def test_behind_a_cascade_the_most_promising_are_first_and_the_unread_are_no_round():
    cheap = scripted_backend(lambda task: judged(int(task["text"].split()[1]) / 10))
    careful = scripted_backend(lambda task: judged(0.95, quote=task["text"]), spec=SPEC)
    texts = [f"text {number}" for number in (1, 8, 3, 9, 5)]
    groups = Groups(1, lambda window: judged(0.95, quote=window["text"]))
    for backend in (careful, replace(careful, judge=groups)):
        reranker = EvidenceReranker(cascade_backend(cheap, backend, 3), stop_after=2, round_size=1)
        result = reranker.rerank(QUESTION, texts)
        asked = [[one["text"]] for one in careful.judge.tasks]
        assert (groups.groups if backend is not careful else asked) == [["text 9"], ["text 8"]]
        assert [one.text for one in result.not_needed] == ["text 5"]
        assert [one.text for one in result.dropped] == ["text 3", "text 1"]


@pytest.mark.full
def test_behind_a_screen_a_round_is_screened_and_judged_before_the_next():
    screen = scripted_backend(lambda task: judged(0.1 if "bad" in task["text"] else 0.5))
    careful = scripted_backend(lambda task: judged(0.95, quote=task["text"]))
    texts = ["text 1", "bad 2", "text 3", "text 4", "text 5"]
    reranker = EvidenceReranker(screened_backend(screen, careful), stop_after=2, round_size=2)
    result = reranker.rerank(QUESTION, texts)
    asked = [one["text"] for one in careful.judge.tasks]  # those of one round in any order
    assert (asked[:1], set(asked[1:])) == (["text 1"], {"text 3", "text 4"})
    assert len(asked) == 3
    assert screen.judge.calls == 4
    assert ids(result.not_needed) == ["5"]
    assert [(one.id, one.score) for one in result.dropped] == [("2", 0.1)]


@pytest.mark.full
def test_a_drain_stops_between_two_rounds_and_a_resume_goes_on_there():
    control, texts = RunControl(), texts_of([0.5, 0.5, 0.9, 0.5, 0.9, 0.9])

    def judge(task):
        if task["text"] == texts[1] and not control.drain_requested:
            control.request_drain("the machine is needed")
        return by_first_word(task)

    backend = scripted_backend(judge)
    options = Settings(round_size=2, stop_after=2)
    graph = build_graph(backend, options, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "one"}, "max_concurrency": 1}
    passages = [Document(id=text, page_content=text) for text in texts]
    asked = {"question": QUESTION, "passages": passages}
    with pytest.raises(GraphDrained, match="the machine is needed"):
        graph.invoke(asked, config, control=control)
    assert backend.judge.calls == 2
    state = graph.invoke(None, config)
    assert Counter(one["text"] for one in backend.judge.tasks) == Counter(texts)
    assert state == build_graph(scripted_backend(by_first_word), options).invoke(asked)


def test_a_run_cut_short_within_a_round_goes_on_within_it():
    texts, surprises = texts_of([0.9, 0.5, 0.9, 0.5, 0.9, 0.9]), [KeyboardInterrupt]

    def judge(task):
        if task["text"] == texts[2] and surprises:
            raise surprises.pop()
        return by_first_word(task)

    backend = scripted_backend(judge)
    options = {"round_size": 2, "stop_after": 2}
    reranker = EvidenceReranker(backend, checkpointer=InMemorySaver(), max_concurrency=1, **options)
    config = {"configurable": {"thread_id": "one"}}
    with pytest.raises(KeyboardInterrupt):
        reranker.rerank(QUESTION, texts, config=config)
    with pytest.raises(SettingsError, match="other settings"):
        reranker.with_settings(stop_after=3).rerank(QUESTION, texts, config=config, resume=True)
    result = reranker.rerank(QUESTION, texts, config=config, resume=True)
    again = EvidenceReranker(scripted_backend(by_first_word), **options).rerank(QUESTION, texts)
    assert {**essence(result), "usage": None} == {**essence(again), "usage": None}
    judged_texts = Counter(one["text"] for one in backend.judge.tasks)
    assert set(judged_texts) == set(texts[:4])
    assert judged_texts[texts[0]] == judged_texts[texts[1]] == 1


@pytest.mark.full
def test_a_hundred_rounds_are_no_recursion_without_end():
    result, backend = run([0.5] * 100, round_size=1)
    assert (backend.judge.calls, len(result.dropped)) == (100, 100)


def test_an_estimate_counts_all_that_may_be_asked_about():
    reranker = EvidenceReranker(scripted_backend(by_first_word), stop_after=1, round_size=1)
    estimate = reranker.estimate([(QUESTION, texts_of([1.0] * 12))])
    assert estimate.usage["score"].calls == 12


class Promising(Judge):
    """A judge that knows beforehand what is promising."""

    def __init__(self):
        self.batches = []

    def promise(self, request):
        return {n: float(one["text"][:3]) for n, one in enumerate(request.windows)}

    def judge(self, batch, config=None):
        self.batches.append([one["text"] for one in batch["windows"]])
        return [by_first_word(one) for one in batch["windows"]]


def test_what_a_judge_finds_promising_is_first():
    judge = Promising()
    backend = replace(scripted_backend(by_first_word), judge=judge)
    reranker = EvidenceReranker(backend, stop_after=1, round_size=1)
    result = reranker.rerank(QUESTION, texts_of([0.1, 0.3, 0.9, 0.2]))
    assert judge.batches == [["0.9 of text 2."]]
    assert ids(result.passages) == ["3", "1", "2", "4"]
    assert json.loads(result.to_json())["outcome"] == "ok"


def test_a_ranking_of_the_bench_still_holds_every_passage():
    reranker = EvidenceReranker(scripted_backend(by_first_word), stop_after=1, round_size=2)
    passages = [
        {"id": text, "text": text, "title": "", "section": ""} for text in texts_of([0.2, 0.9, 0.7])
    ]
    ranking = DeepEra(reranker).rank(QUESTION, passages)
    assert [score for _, score in ranking] == [0.9, 0.2, -1.0]
    assert {id for id, _ in ranking} == {one["id"] for one in passages}
