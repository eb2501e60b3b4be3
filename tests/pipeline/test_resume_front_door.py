"""`resume=True` at the front door: the same call again goes on where the last one stopped."""

import asyncio
from dataclasses import replace

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from deepera_graph import Budget, EvidenceReranker, InputError, SettingsError, Summary
from deepera_graph.testing import first_sentence, judged, scripted_backend

pytestmark = pytest.mark.full

QUESTION = "Which text?"
TEXTS = [f"Text {n}." for n in range(6)]
CONFIG = {"configurable": {"thread_id": "one"}}


class Summarizer:
    """Takes the first sentence; the first time it is asked it is interrupted.

    It is the only call of its stage, so whatever was judged before it has been saved. What is in
    flight at a kill, and may be repeated, is counted in `test_kill`.
    """

    def __init__(self):
        self.interrupted = False

    def __call__(self, task):
        if not self.interrupted:
            self.interrupted = True
            raise KeyboardInterrupt
        return first_sentence(task)


def asked(reranker, texts=TEXTS, *, question=QUESTION, is_async=False, resume=True):
    if is_async:
        return asyncio.run(reranker.arerank(question, texts, config=CONFIG, resume=resume))
    return reranker.rerank(question, texts, config=CONFIG, resume=resume)


def verdicts(result):
    return [(one.id, one.text, one.score, one.kept, one.summary) for one in result.passages]


@pytest.mark.parametrize("is_async", [False, True])
def test_only_what_is_missing_is_asked(is_async):
    seen = []

    def judge(task):
        seen.append(task["text"])
        return judged(0.9)

    backend = scripted_backend(judge, summary=Summarizer())
    reranker = EvidenceReranker(backend, checkpointer=InMemorySaver(), top_n=1)
    with pytest.raises(KeyboardInterrupt):
        asked(reranker)
    done = len(seen)
    result = asked(reranker, is_async=is_async)
    assert done > 0
    assert sorted(seen) == TEXTS
    assert backend.intent.calls == 1
    plain = scripted_backend(lambda task: judged(0.9))
    whole = EvidenceReranker(plain, top_n=1).rerank(QUESTION, TEXTS)
    assert verdicts(result) == verdicts(whole)
    assert result.usage == whole.usage


@pytest.mark.parametrize("is_async", [False, True])
def test_a_finished_run_is_given_back_and_nothing_is_asked(is_async):
    backend = scripted_backend(lambda task: judged(0.9))
    reranker = EvidenceReranker(backend, checkpointer=InMemorySaver())
    first = asked(reranker, is_async=is_async)
    again = asked(reranker, is_async=is_async)
    assert verdicts(again) == verdicts(first)
    assert backend.judge.calls == 6


@pytest.mark.parametrize("n_events", range(1, 9))
def test_a_stream_that_nobody_read_to_its_end_goes_on(n_events):
    backend = scripted_backend(lambda task: judged(0.9))
    reranker = EvidenceReranker(backend, checkpointer=InMemorySaver())
    stream = reranker.stream(QUESTION, TEXTS, config=CONFIG)
    for _ in range(n_events):
        next(stream)
    stream.close()
    result = asked(reranker)
    plain = scripted_backend(lambda task: judged(0.9))
    assert verdicts(result) == verdicts(EvidenceReranker(plain).rerank(QUESTION, TEXTS))


def test_a_stream_of_a_finished_run_has_the_result_alone():
    reranker = EvidenceReranker("local", checkpointer=InMemorySaver())
    asked(reranker)
    events = list(reranker.stream(QUESTION, TEXTS, config=CONFIG, resume=True))
    assert [event["event"] for event in events] == ["result"]


def test_a_thread_of_another_question_or_other_passages_is_refused():
    reranker = EvidenceReranker("local", checkpointer=InMemorySaver())
    asked(reranker)
    with pytest.raises(InputError, match="of another question: 'Which text\\?', not 'Which one"):
        asked(reranker, question="Which one?")
    with pytest.raises(InputError, match="of other passages"):
        asked(reranker, TEXTS[:2])


@pytest.mark.parametrize("is_async", [False, True])
def test_without_a_saver_there_is_nothing_to_resume_from(is_async):
    with pytest.raises(SettingsError, match="needs a checkpointer"):
        asked(EvidenceReranker("local"), is_async=is_async)


@pytest.mark.parametrize(
    "config", [None, {}, {"configurable": {}}, {"configurable": {"user": "a"}}]
)
def test_a_saver_without_a_thread_is_named(config):
    reranker = EvidenceReranker("local", checkpointer=InMemorySaver())
    for run in (
        lambda: reranker.rerank(QUESTION, TEXTS, config=config),
        lambda: asyncio.run(reranker.arerank(QUESTION, TEXTS, config=config)),
        lambda: reranker.rerank(QUESTION, TEXTS, config=config, resume=True),
        lambda: reranker.batch([(QUESTION, TEXTS)], config=config),
    ):
        with pytest.raises(SettingsError, match=r"needs a thread: config=.*'thread_id'"):
            run()


def test_numbers_of_numpy_among_metadata_are_saved():
    numpy = pytest.importorskip("numpy")
    metadata = {"year": numpy.int64(2019), "more": [{"share": numpy.float32(0.5)}]}
    metadata |= {"open": numpy.bool_(1), "name": numpy.str_("a")}
    passages = [{"text": "Text 1.", "metadata": metadata}]
    reranker = EvidenceReranker("local", checkpointer=InMemorySaver())
    first, again = (asked(reranker, passages) for _ in range(2))
    assert first.passages == again.passages
    assert first.passages[0].metadata == metadata
    assert type(metadata["year"]) is numpy.int64


@pytest.mark.parametrize("is_async", [False, True])
def test_a_thread_of_other_settings_or_of_another_backend_is_refused(is_async):
    saver = InMemorySaver()
    reranker = EvidenceReranker(scripted_backend(lambda task: judged(0.9)), checkpointer=saver)
    asked(reranker)
    with pytest.raises(SettingsError, match="another backend or with other settings"):
        asked(reranker.with_settings(threshold=0.3), is_async=is_async)
    other = replace(reranker.backend, about={"model": "another"})
    with pytest.raises(SettingsError, match="another backend or with other settings"):
        asked(EvidenceReranker(other, checkpointer=saver), is_async=is_async)


def test_a_limit_may_change_before_a_thread_is_resumed():
    backend = scripted_backend(lambda task: judged(0.9))
    reranker = EvidenceReranker(backend, checkpointer=InMemorySaver(), budget=Budget(max_calls=50))
    first = asked(reranker)
    freed = reranker.with_settings(budget=None, max_concurrency=3)
    assert verdicts(asked(freed)) == verdicts(first)


def test_without_resume_a_finished_thread_is_begun_anew():
    backend = scripted_backend(lambda task: judged(0.9))
    reranker = EvidenceReranker(backend, checkpointer=InMemorySaver())
    asked(reranker)
    again = asked(reranker.with_settings(threshold=1.0), resume=False)
    assert (again.threshold, again.kept, backend.judge.calls) == (1.0, (), 2 * len(TEXTS))


@pytest.mark.parametrize("next_node", ["summarize", None])
def test_a_thread_of_an_earlier_version_that_left_nothing_out_is_resumed(next_node):
    """Before 0.2 a state had no `left_out`, and nothing said who had made it."""

    class Forgetful(InMemorySaver):
        def get_tuple(self, config):
            saved = super().get_tuple(config)
            if saved is not None:
                saved.checkpoint["channel_values"].pop("left_out", None)
                saved.metadata.pop("deepera_made_by", None)
            return saved

    calls = []

    def summary(task):
        calls.append(task["text"])
        if len(calls) == 1 and next_node:
            raise KeyboardInterrupt
        return Summary(text=task["text"])

    backend = scripted_backend(lambda task: judged(0.9), summary=summary)
    reranker = EvidenceReranker(backend, checkpointer=Forgetful(), max_concurrency=1)
    if next_node:
        with pytest.raises(KeyboardInterrupt):
            asked(reranker)
    else:
        asked(reranker)
    result = asked(reranker)
    assert (len(result.kept), result.left_out) == (len(TEXTS), ())
