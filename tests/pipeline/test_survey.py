"""A surveyor sees all passages of a question together; each judge gets the notes on its own."""

import asyncio
import io
import json
import math
import pickle
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from deepera_graph import (
    AnswerError,
    EvidenceReranker,
    JudgementCache,
    RerankResult,
    Settings,
    Survey,
    Usage,
    build_graph,
)
from deepera_graph.budget import Budget, Meter, with_meter
from deepera_graph.jobs.lines import count_question
from deepera_graph.jobs.report import Diagnostics, JobReport
from deepera_graph.jobs.rerank import rerank_lines
from deepera_graph.pipeline import survey
from deepera_graph.pipeline.edges import one_per_window
from deepera_graph.pipeline.intent import UNKNOWN
from support.roles import judged, scripted_backend
from support.surveys import QUESTION, TEXTS, by_length, run, scores, strict, surveyed


@pytest.mark.parametrize("is_async", [False, True])
def test_every_window_is_judged_with_its_own_notes(is_async):
    backend = surveyed()
    long = " ".join(f"word{n}" for n in range(70))
    passages = [*TEXTS, Document(page_content=" \n"), Document(page_content=long), TEXTS[0]]
    result = run(backend, passages, is_async=is_async, max_passage_chars=200)
    [task] = backend.surveyor.tasks
    pairs = zip(task["passages"], by_length(task).notes, strict=True)
    found = {one["text"]: notes for one, notes in pairs}
    assert len(found) == len(task["passages"]) == 6  # three texts, three windows, no blank one
    assert backend.judge.calls == 7  # the text that came twice is judged twice
    assert all(one["notes"] == found[one["text"]] for one in backend.judge.tasks)
    assert "notes" not in {key for one in backend.summarizer.tasks for key in one}
    assert result.survey == {"status": "read", "cause": ""}


def test_a_surveyor_is_shown_text_title_and_section_alone():
    backend = surveyed()
    secret = {"label": "secret", "score": 0.125, "title": "T", "section": "S"}
    run(backend, [{"id": "secret", "text": "Text.", "score": 0.125, "metadata": secret}])
    [task] = backend.surveyor.tasks
    assert task == {
        "question": QUESTION,
        "intent": backend.judge.tasks[0]["intent"],
        "passages": [{"text": "Text.", "title": "T", "section": "S"}],
    }


PASSAGE = st.builds(
    lambda text, title: Document(page_content=text, metadata={"title": title}),
    st.text("ab. ", max_size=6),
    st.sampled_from(["", "T"]),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(PASSAGE, max_size=6), st.randoms(use_true_random=False))
def test_notes_depend_on_the_set_of_passages_alone(passages, chance):
    asked = {"settings": Settings()}

    def noted(shown):
        state = {"question": QUESTION, "intent": {"fields": UNKNOWN}, "passages": shown}
        task = survey.ask(state, **asked)
        if not task["passages"]:
            return {}
        notes = [{"place": float(n)} for n in range(len(task["passages"]))]
        state |= survey.record(state, Survey(notes=notes), **asked)
        sends = one_per_window(state, **asked)
        return {
            (s.arg["task"]["title"], s.arg["task"]["text"]): s.arg["task"]["notes"] for s in sends
        }

    again = [
        Document(id=f"x{n}", page_content=one.page_content,
                 metadata={**one.metadata, "retrieval_rank": n + 1, "label": n})
        for n, one in enumerate([*passages, *passages[:2]])
    ]  # fmt: skip
    chance.shuffle(again)
    assert noted(again) == noted(passages)


def test_without_a_surveyor_nothing_is_new():
    plain, with_one = (build_graph(one, checkpointer=strict()) for one in (
        scripted_backend(lambda task: judged(0.9)), surveyed()))  # fmt: skip
    assert set(with_one.get_graph().nodes) - set(plain.get_graph().nodes) == {"survey"}
    config = {"configurable": {"thread_id": "one"}}
    given_in = {"question": QUESTION, "passages": TEXTS}
    assert set(with_one.invoke(given_in, config)) - set(plain.invoke(given_in, config)) == {
        "survey"
    }
    kept, more = (set(one.get_state(config).values) for one in (plain, with_one))
    assert more - kept == {"survey", "notes"}
    result = run(scripted_backend(lambda task: judged(0.9)))
    assert (result.survey, set(result.usage)) == (None, {"intent", "score", "summarize"})


@pytest.mark.parametrize(
    ("play", "cause"),
    [
        (lambda task: RuntimeError("out of memory"), "RuntimeError: out of memory"),
        (lambda task: Survey(notes=[{}]), "unusable answer: 1 notes on 3 passages"),
        (lambda task: Survey(notes=[{}] * 4), "unusable answer: 4 notes on 3 passages"),
        (lambda task: {"notes": [{"x": math.nan}] * 3}, "finite number, got nan"),
        (lambda task: {"notes": [{"x": "0.5"}] * 3}, "valid number, got '0.5'"),
        (lambda task: {"notes": [{"x": True}] * 3}, "valid number, got True"),
        (lambda task: None, "unusable answer"),
        (lambda task: AnswerError("lost", usage=Usage(2, 7, 7)), "lost"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_after_a_failed_survey_passages_are_judged_without_notes_and_it_is_told(
    play, cause, is_async
):
    backend = surveyed(play)
    result = run(backend, is_async=is_async, threshold=0.4)
    assert (result.survey["status"], result.outcome) == ("failed", "ok")
    assert cause in result.survey["cause"]
    assert scores(result) == {"1": 0.5, "2": 0.5, "3": 0.5}
    assert not any("notes" in task for task in backend.judge.tasks)
    used = result.usage["survey"]
    assert used.calls + used.failed_calls == (2 if cause == "lost" else 1)
    assert RerankResult.from_json(result.to_json()) == result == pickle.loads(pickle.dumps(result))
    assert "survey: <b>failed</b>" in result._repr_html_()
    diagnostics = Diagnostics()
    diagnostics.add(count_question(result))
    assert diagnostics.to_dict()["surveys"] == {"failed": 1}


@pytest.mark.parametrize("is_async", [False, True])
def test_a_survey_is_a_stage_of_its_own(is_async):
    reranker = EvidenceReranker(
        surveyed(lambda task: by_length(task).model_copy(update={"usage": Usage(3, 20, 10)}))
    )

    async def collected():
        return [event async for event in reranker.astream(QUESTION, TEXTS)]

    found = asyncio.run(collected()) if is_async else list(reranker.stream(QUESTION, TEXTS))
    assert [event["event"] for event in found[:3]] == ["intent", "surveyed", "scored"]
    assert found[1] == {"event": "surveyed", "status": "read", "cause": ""}
    result = found[-1]["result"]
    assert result.usage["survey"] == Usage(3, 20, 10)
    assert result.seconds["survey"] >= 0
    assert "survey:" not in result._repr_html_()


def test_a_file_of_questions_tells_of_its_surveys():
    passages = [{"id": str(n), "text": text} for n, text in enumerate(TEXTS)]
    line = json.dumps({"id": "q", "question": QUESTION, "passages": passages}).encode()
    out, report = io.BytesIO(), JobReport()
    rerank_lines(EvidenceReranker(surveyed()), io.BytesIO(line + b"\n"), out, report=report)
    assert json.loads(out.getvalue())["survey"] == {"status": "read", "cause": ""}
    plain = report.to_dict()
    assert plain["diagnostics"]["surveys"] == {"read": 1}
    assert "survey" in plain["usage"]["stages"]


@pytest.mark.parametrize("passages", [[], [Document(page_content=" ")]])
def test_a_second_turn_with_nothing_to_judge_forgets_the_survey_of_the_first(passages):
    backend = surveyed()
    graph = build_graph(backend, checkpointer=strict())
    config = {"configurable": {"thread_id": "one"}}
    first = graph.invoke({"question": QUESTION, "passages": TEXTS}, config)
    second = graph.invoke({"question": QUESTION, "passages": passages}, config)
    assert [one["survey"]["status"] for one in (first, second)] == ["read", "none"]
    assert graph.get_state(config).values["notes"] == []
    assert backend.surveyor.calls == 1


@pytest.mark.parametrize("has_cache", [False, True])
def test_a_surveyor_may_read_ahead_while_the_intent_is_asked_for_unless_it_is_known(has_cache):
    told = []
    backend = surveyed()
    backend.surveyor.read_ahead = lambda passages: told.append((backend.intent.calls, passages))
    cache = JudgementCache() if has_cache else None
    backend = replace(backend, spec={"kind": "told ahead"})
    EvidenceReranker(backend, cache=cache).rerank(QUESTION, [*TEXTS, TEXTS[0]])
    [task] = backend.surveyor.tasks
    assert sorted(text["text"] for _, texts in told for text in texts) == (
        [] if has_cache else sorted(TEXTS)
    )
    assert has_cache or told == [(0, told[0][1])]
    assert [one["text"] for one in task["passages"]] == sorted(TEXTS)


def test_nothing_is_read_ahead_once_the_budget_is_spent():
    told = []
    backend = surveyed()
    backend.surveyor.read_ahead = told.append
    meter = Meter(Budget(max_calls=1))
    asked = {"question": QUESTION, "passages": TEXTS}
    for n_told in (1, 1):
        build_graph(backend).invoke(asked, with_meter({}, meter))
        assert len(told) == n_told
        meter.add(Usage(calls=1))


def test_every_branch_carries_its_own_notes_alone():
    n = 1000
    state = {
        "question": QUESTION,
        "intent": {"fields": UNKNOWN},
        "passages": [Document(page_content=f"Text {k}.") for k in range(n)],
        "notes": [{"place": float(k)} for k in range(n)],
    }
    sends = one_per_window(state, settings=Settings())
    assert [send.arg["task"]["notes"] for send in sends] == state["notes"]
    assert max(len(pickle.dumps(send.arg)) for send in sends) < 500
