"""What `deepera_graph.testing` gives to those who test code built on this package."""

import asyncio

import pytest

from deepera_graph import EvidenceReranker, llm_backend
from deepera_graph.testing import Gauge, ScriptedChat, ScriptedRole, scripted_backend

QUESTION = "Does tea lower glucose?"
TEXTS = ["Tea lowered glucose. It was warm.", "Stars are far."]


@pytest.mark.parametrize("mode", ["separate", "fused", "grouped"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_scripted_chat_model_plays_all_roles_in_every_mode(mode, is_async):
    chat = ScriptedChat(scores={"lowered": 0.9})
    reranker = EvidenceReranker(llm_backend(chat, mode=mode), answer=True)
    ask = reranker.arerank(QUESTION, TEXTS) if is_async else None
    result = reranker.rerank(QUESTION, TEXTS) if ask is None else asyncio.run(ask)
    assert [one.score for one in result.passages] == [0.9, 0.1]
    assert (result.outcome, result.failed) == ("ok", ())
    assert result.kept[0].quote == "Tea lowered glucose."
    assert result.answer["citations"] == ["1"]
    assert len(chat.shown) == result.total_usage.calls


def test_an_error_in_the_script_is_one_of_the_model():
    chat = ScriptedChat(scores={"lowered": ValueError("out of order")})
    result = EvidenceReranker(llm_backend(chat), max_failed_share=1).rerank(QUESTION, TEXTS)
    assert "out of order" in result.failed[0].reason


def test_a_scripted_backend_judges_by_its_table_and_keeps_what_it_was_asked():
    gauge = Gauge()
    backend = scripted_backend({TEXTS[0]: 0.9, TEXTS[1]: ValueError("torn")}, gauge=gauge)
    result = EvidenceReranker(backend, max_failed_share=1).rerank(QUESTION, TEXTS)
    assert [one.score for one in result.passages] == [0.9, None]
    assert {task["text"] for task in backend.judge.tasks} == set(TEXTS)
    assert gauge.entered == backend.intent.calls + backend.judge.calls + backend.summarizer.calls


def test_a_scripted_role_says_how_it_was_called():
    role = ScriptedRole(lambda task: task)
    assert (role.invoke(1), asyncio.run(role.ainvoke(2))) == (1, 2)
    assert (role.tasks, role.threads_used, role.loops_used) == ([1, 2], 1, 1)
