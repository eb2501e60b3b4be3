"""The front door."""

import asyncio
import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.documents import Document

from deepera_graph import EvidenceReranker, InputError, SettingsError, open_cache
from deepera_graph.pipeline.graph import build_graph
from deepera_graph.testing import Gauge, judged, scripted_backend
from support.scripted import TEA_SCORES

QUESTION = "Does tea lower glucose?"
FACTORY = "support.roles:importable_backend"
TEXTS = [f"Passage number {n}." for n in range(30)]
SETTINGS = [
    {},
    {"threshold": 0.99, "on_empty": "top1"},
    {"order": "retrieval", "top_n": 3, "answer": True},
    {"content": "passage", "threshold": 0.5},
    {"max_passage_chars": 200},
]


def by_length(task):
    if "7" in task["text"]:
        return RuntimeError("seven")
    return judged((len(task["text"]) * 37 + sum(map(ord, task["text"]))) % 101 / 100)


def timeless(result):
    return replace(result, seconds={})


@pytest.fixture
def reranker():
    return EvidenceReranker(scripted_backend(by_length))


@pytest.mark.full
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1], [], ["word " * 100, "Short."]])
def test_every_way_in_gives_the_same_result(settings, texts):
    reranker = EvidenceReranker(scripted_backend(by_length), **settings)
    result = timeless(reranker.rerank(QUESTION, texts))
    assert timeless(asyncio.run(reranker.arerank(QUESTION, texts))) == result
    assert timeless(list(reranker.stream(QUESTION, texts))[-1]["result"]) == result
    assert timeless(reranker.batch([(QUESTION, texts)])[0]) == result
    assert timeless(asyncio.run(reranker.abatch([(QUESTION, texts)]))[0]) == result

    async def last():
        return [event async for event in reranker.astream(QUESTION, texts)][-1]["result"]

    assert timeless(asyncio.run(last())) == result


def test_no_passages_take_no_call(reranker):
    result = reranker.rerank(QUESTION, [])
    assert result.outcome == "nothing_retrieved"
    assert reranker.backend.intent.calls == reranker.backend.judge.calls == 0


def test_documents_keep_the_id_that_they_were_handed_in_with(reranker):
    given = [Document(id="a", page_content="One."), Document(id="a", page_content="Two."), "Three."]
    found = {one.id: one.document_id for one in reranker.rerank(QUESTION, given).all_passages}
    assert found == {"a": "a", "a#2": "a", "3": None}


def test_one_passage_is_enough(reranker):
    result = reranker.rerank(QUESTION, ["Tea lowers it."])
    assert [one.rank for one in result.passages] == [1]


def test_documents_without_any_text_take_no_judge(reranker):
    result = reranker.rerank(QUESTION, [Document(page_content=""), Document(page_content=" ")])
    assert reranker.backend.judge.calls == 0
    assert (result.outcome, len(result.failed)) == ("degraded", 2)


def test_a_very_long_passage_is_read_in_windows_and_the_best_counts():
    text = "Nothing to see. " * 12_500
    text = text[:150_000] + " The cure was found. " + text[150_000:200_000]
    backend = scripted_backend(lambda task: judged(0.9 if "cure" in task["text"] else 0.0))
    result = EvidenceReranker(backend).rerank("Was a cure found?", [text, "Short."])
    long, short = result.passages
    assert (long.score, long.windowed, long.kept) == (0.9, True, True)
    assert "The cure was found." in long.text[slice(*long.window)]
    assert not short.windowed
    assert all(len(task["text"]) <= 12_000 for task in backend.judge.tasks)
    assert result.total_usage.calls == 0


def test_windows_without_text_are_not_judged():
    text = "Found." + " " * 2_000 + "\n" * 300 + "Also found."
    backend = scripted_backend(lambda task: judged(0.9))
    EvidenceReranker(backend, max_passage_chars=200).rerank("Was it found?", [text])
    assert all(task["text"].strip() for task in backend.judge.tasks)


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("", "must not be empty, got ''"),
        (" \n", "must not be empty, got"),
        (None, "must be a text, got None$"),
        (7, "must be a text, got 7$"),
        (b"why", "must be a text, got bytes$"),
        (["why"], "must be a text, got list$"),
    ],
)
def test_a_question_that_asks_nothing_is_named(reranker, question, named):
    with pytest.raises(InputError, match=f"question {named}"):
        reranker.rerank(question, ["text"])
    with pytest.raises(InputError, match=f"question {named}"):
        asyncio.run(reranker.arerank(question, ["text"]))


@pytest.mark.parametrize("passages", [["text"], ("text",), [Document(page_content="text")]])
def test_swapped_arguments_are_named(reranker, passages):
    with pytest.raises(InputError, match=r"are question and passages swapped\?"):
        reranker.rerank(passages, "Which text?")
    with pytest.raises(InputError, match=r"are question and passages swapped\?"):
        reranker.graph.invoke({"question": passages, "passages": "Which text?"})


def test_odd_characters_go_through_unharmed(reranker):
    texts = ["Größe \u200b5 µm 🧪", "العربية \u202e mixed", "a\x00b", "line\r\nline", "\u2028"]
    result = reranker.rerank("Größe? 🧪", texts[:4])
    assert {one.text for one in result.passages} == set(texts[:4])
    assert json.loads(result.to_json())["question"] == "Größe? 🧪"


def test_equal_texts_are_judged_each_on_their_own(reranker):
    result = reranker.rerank(QUESTION, ["same", "same", "same"])
    assert [one.id for one in result.passages] == ["1", "2", "3"]
    assert len({one.score for one in result.passages}) == 1


def test_callers_objects_stay_as_they_were(reranker):
    passages = ["Text.", {"text": "B", "metadata": {"n": [1]}}, Document(page_content="C")]
    config = {"tags": ["mine"], "metadata": {"k": [1]}, "configurable": {"mine": 1}}
    before = copy.deepcopy((passages, config))
    reranker.rerank(QUESTION, passages, config=config)
    reranker.batch([(QUESTION, passages)], config=config)
    asyncio.run(reranker.arerank(QUESTION, passages, config=config))
    assert (passages, config) == before


@pytest.mark.full
@pytest.mark.parametrize("is_async", [False, True])
def test_calls_of_all_questions_together_keep_to_the_limit(is_async):
    gauge = Gauge()
    backend = scripted_backend(by_length, seconds=0.004, gauge=gauge)
    reranker = EvidenceReranker(backend, max_concurrency=5)
    jobs = [(f"Question {n}, does it?", TEXTS[:12]) for n in range(8)]
    results = asyncio.run(reranker.abatch(jobs)) if is_async else reranker.batch(jobs)
    assert [one.question for one in results] == [question for question, _ in jobs]
    assert gauge.most == 5


@pytest.mark.full
@pytest.mark.parametrize("is_async", [False, True])
def test_a_lower_limit_in_the_config_holds_for_a_batch_together(is_async):
    gauge = Gauge()
    reranker = EvidenceReranker(scripted_backend(by_length, seconds=0.004, gauge=gauge))
    jobs = [(f"Question {n}, does it?", TEXTS[:12]) for n in range(6)]
    config = {"max_concurrency": 2}
    if is_async:
        asyncio.run(reranker.abatch(jobs, config=config))
    else:
        reranker.batch(jobs, config=config)
    assert gauge.most == 2


@pytest.mark.full
def test_a_lower_limit_in_the_config_holds():
    gauge = Gauge()
    backend = scripted_backend(by_length, seconds=0.005, gauge=gauge)
    EvidenceReranker(backend).rerank(QUESTION, TEXTS, config={"max_concurrency": 2})
    assert gauge.most == 2


ONE_AT_A_TIME = """
import asyncio
from deepera_graph import EvidenceReranker
from deepera_graph.testing import scripted_backend
reranker = EvidenceReranker(scripted_backend({"a": 0.9, "b": 0.1}), max_concurrency=1)
assert len(reranker.rerank("Which?", ["a", "b"]).kept) == 1
assert len(asyncio.run(reranker.arerank("Which?", ["a", "b"])).kept) == 1
"""


@pytest.mark.full
def test_a_limit_of_one_does_not_wait_for_ever():
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", ONE_AT_A_TIME], env=environment, timeout=30, check=False
    )
    assert done.returncode == 0


@pytest.mark.parametrize("is_async", [False, True])
def test_a_bad_question_in_a_batch_raises_what_it_would_raise_alone(reranker, is_async):
    jobs = [(QUESTION, ["a"]), ("", ["b"]), (QUESTION, ["c"])]
    with pytest.raises(InputError, match="question must not be empty"):
        asyncio.run(reranker.abatch(jobs)) if is_async else reranker.batch(jobs)


def test_an_empty_batch_is_no_work(reranker):
    assert reranker.batch([]) == asyncio.run(reranker.abatch([])) == []


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ((QUESTION, [None]), "job 2: passage 1 must be a string, dict or Document, got None"),
        ((" ", ["a"]), "job 2: question must not be empty"),
        (QUESTION, r"job 2 must be \(question, passages\), got "),
    ],
)
def test_a_job_that_cannot_be_used_is_named_before_any_is_judged(bad, named):
    asked = []

    def judge(task):
        asked.append(task)
        return judged(0.5)

    reranker = EvidenceReranker(scripted_backend(judge))
    jobs = [(QUESTION, iter(["Tea is green."])), bad]
    with pytest.raises(InputError, match=named):
        reranker.batch(jobs)
    with pytest.raises(InputError, match=named):
        asyncio.run(reranker.abatch(jobs))
    assert asked == []


def test_other_settings_share_backend_and_limit(reranker):
    other = reranker.with_settings(top_n=1)
    assert (other.settings.top_n, reranker.settings.top_n) == (1, 10)
    assert other.backend is reranker.backend
    with pytest.raises(SettingsError, match="top_n"):
        reranker.with_settings(top_n=0)


@pytest.mark.full
def test_a_graph_is_compiled_when_it_is_first_asked_for_and_once(reranker, monkeypatch):
    made = []

    def build(*args, **options):
        made.append(args)
        return build_graph(*args, **options)

    monkeypatch.setattr("deepera_graph.reranker.build_graph", build)
    other = reranker.with_settings(top_n=1).with_backend(reranker.backend)
    assert made == []
    assert timeless(other.rerank(QUESTION, TEXTS)) == timeless(other.rerank(QUESTION, TEXTS))
    assert made == [(reranker.backend, other.effective_settings)]


def test_a_relative_that_cannot_work_is_refused_when_it_is_made(reranker, tmp_path):
    without = replace(reranker.backend, answerer=None)
    with pytest.raises(SettingsError, match="no answerer"):
        reranker.with_settings(answer=True).with_backend(without)
    cached = EvidenceReranker("rules", cache=open_cache(tmp_path / "kept.sqlite"))
    with pytest.raises(SettingsError, match="made from live objects"):
        cached.with_backend(reranker.backend)


@pytest.mark.full
def test_a_named_backend_survives_dict_and_pickle():
    reranker = EvidenceReranker(FACTORY, top_n=2, threshold=0.4)
    plain = json.loads(json.dumps(reranker.to_dict()))
    again = EvidenceReranker.from_dict(plain)
    thawed = pickle.loads(pickle.dumps(reranker))
    texts = ["aaaa", "aaaaaaaa", "a"]
    result = timeless(reranker.rerank(QUESTION, texts))
    for other in (again, thawed, copy.deepcopy(reranker)):
        assert other.settings == reranker.settings
        assert other.backend is not reranker.backend
        assert timeless(other.rerank(QUESTION, texts)) == result


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_pays_for_no_judgement_that_is_kept(again, tmp_path):
    kept = open_cache(tmp_path / "kept.sqlite")
    reranker = EvidenceReranker("support.scripted:tea_backend", cache=kept)
    texts = list(TEA_SCORES)
    first, second = (one.rerank(QUESTION, texts) for one in (reranker, again(reranker)))
    assert (first.total_usage.cached_calls, first.total_usage.calls > 0) == (0, True)
    assert second.total_usage.cached_calls == second.total_usage.calls


def test_live_objects_cannot_be_written_down(reranker):
    with pytest.raises(SettingsError, match="'scripted' was made from live objects"):
        reranker.to_dict()


def test_the_repr_names_backend_and_settings(reranker):
    assert repr(reranker).startswith("EvidenceReranker('scripted', Settings(threshold=None")


def test_an_early_end_of_a_stream_leaves_the_reranker_usable(reranker):
    stream = reranker.stream(QUESTION, TEXTS)
    next(stream)
    stream.close()
    assert len(reranker.rerank(QUESTION, TEXTS).passages) == 30


def test_a_stream_that_is_broken_off_starts_no_further_call():
    backend = scripted_backend(lambda task: judged(0.9), seconds=0.02)
    stream = EvidenceReranker(backend, max_concurrency=2).stream(QUESTION, TEXTS)
    while next(stream)["event"] != "scored":
        pass
    stream.close()
    assert backend.judge.calls <= 6  # two at once, when the first is told of and when it ends


@pytest.mark.skipif(sys.platform == "win32", reason="needs a signal for one thread")
@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda one: one.rerank(QUESTION, TEXTS), id="rerank"),
        pytest.param(lambda one: one.batch([(QUESTION, TEXTS)] * 2), id="batch"),
    ],
)
def test_what_is_interrupted_starts_no_further_call(ask):
    def judge(task):
        if len(begun) == 3:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        begun.append(task)
        time.sleep(0.05)
        return judged(0.9)

    begun = []
    reranker = EvidenceReranker(scripted_backend(judge), max_concurrency=2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ask(reranker)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(begun) <= 8


# LangGraph never awaits the branches that wait for their turn when a run is cancelled.
@pytest.mark.full
@pytest.mark.filterwarnings("ignore:.*was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_cancelled_rerank_gives_its_turns_back():
    backend = scripted_backend(by_length, seconds=0.05)
    reranker = EvidenceReranker(backend, max_concurrency=2)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reranker.arerank(QUESTION, TEXTS), 0.08)
    result = await asyncio.wait_for(reranker.arerank(QUESTION, TEXTS[:2]), 5)
    assert len(result.passages) == 2
