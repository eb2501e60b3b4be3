"""Calls of the LLM backend to a real server on loopback: how many, how many at once, how fast."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from deepera_graph import EvidenceReranker, Usage, llm_backend
from deepera_graph.testing import answer_in_json
from support.openai_server import ChatServer, Reply, Request

pytestmark = pytest.mark.full

QUESTION = "Does tea lower fasting glucose?"
PASSAGES = [f"Tea trial {n} had {n + 20} adults." for n in range(30)]
FEW = PASSAGES[:9]  # the seven that are kept, and two
SCORES = {f"Tea trial {n} ": 0.9 for n in range(7)}
KEPT = [str(n + 1) for n in range(7)]


def answer(request: Request) -> dict[str, object]:
    return answer_in_json(SCORES, request.system, request.user)


def made(server: ChatServer, **settings: object) -> EvidenceReranker:
    return EvidenceReranker(
        llm_backend("openai:scripted", base_url=server.base_url, api_key_env=None), **settings
    )


def rerank(reranker: EvidenceReranker, is_async: bool, passages: list[str] = PASSAGES):
    if is_async:
        return asyncio.run(reranker.arerank(QUESTION, passages))
    return reranker.rerank(QUESTION, passages)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecret")


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def is_async(request):
    return request.param


def kinds(server: ChatServer) -> list[str]:
    names = {"You read": "intent", "You judge": "score", "You shorten": "summary"}
    return [
        next((name for mark, name in names.items() if mark in request.system), "answer")
        for request in server.requests
    ]


def test_it_takes_one_call_for_the_intent_one_a_passage_and_one_a_kept_passage(is_async):
    with ChatServer(answer) as server:
        result = rerank(made(server), is_async)
        assert kinds(server) == ["intent", *["score"] * 30, *["summary"] * 7]
    assert [one.id for one in result.kept] == KEPT
    calls = {stage: used.calls for stage, used in result.usage.items()}
    assert calls == {"intent": 1, "score": 30, "summarize": 7}


def test_an_answer_is_one_call_more_and_no_summaries_are_none(is_async):
    with ChatServer(answer) as server:
        rerank(made(server, content="passage"), is_async, FEW)
        assert server.calls == 1 + len(FEW)
        server.reset_counts()
        rerank(made(server, threshold=0.99), is_async, FEW)
        assert server.calls == 1 + len(FEW)


def test_tokens_are_those_the_server_counted(is_async):
    with ChatServer(answer) as server:
        result = rerank(made(server), is_async, FEW)
        words = sum(
            len(str(message["content"]).split())
            for request in server.requests
            for message in request.messages
        )
    assert result.total_usage.input_tokens == words
    assert result.total_usage.output_tokens > 0


@pytest.mark.parametrize(("is_async", "limit"), [(False, 2), (False, 30), (True, 1), (True, 30)])
def test_never_more_than_the_limit_is_in_flight(is_async, limit):
    with ChatServer(answer, latency=0.02) as server:
        passages = PASSAGES if limit > 2 else FEW
        rerank(made(server, max_concurrency=limit), is_async, passages)
        assert min(limit, 2) <= server.max_in_flight <= limit


def test_the_limit_holds_for_all_questions_together(is_async):
    jobs = [(f"Does tea {n} lower it?", PASSAGES[:8]) for n in range(3)]
    with ChatServer(answer, latency=0.01) as server:
        reranker = made(server, max_concurrency=5)
        results = asyncio.run(reranker.abatch(jobs)) if is_async else reranker.batch(jobs)
        assert server.max_in_flight <= 5
        kept = sum(len(result.kept) for result in results)
        assert server.calls == 3 * (1 + 8) + kept == 3 * 9 + 21


def test_no_more_than_sixteen_are_in_flight_by_default(is_async):
    with ChatServer(answer, latency=0.02) as server:
        rerank(made(server), is_async)
        assert 2 <= server.max_in_flight <= 16


def answer_together(request: Request) -> Reply:
    """Answers a call once all of its stage have arrived, so that none may wait for another."""
    plain = answer(request)
    ends = {"You read": 1, "You judge": 1 + 30, "You shorten": 1 + 30 + 7}
    after = next(n for mark, n in ends.items() if mark in request.system)
    return Reply(content=json.dumps(plain), after=after)


def test_all_calls_of_a_stage_are_out_at_once(is_async):
    with ChatServer(answer_together) as server:
        result = rerank(made(server, max_concurrency=30), is_async)
        assert server.max_in_flight == 30
    assert [one.id for one in result.kept] == KEPT


async def test_all_calls_of_a_stage_are_out_at_once_inside_a_running_loop():
    with ChatServer(answer_together) as server:
        result = await made(server, max_concurrency=30).arerank(QUESTION, PASSAGES)
        assert server.max_in_flight == 30
    assert [one.id for one in result.kept] == KEPT


async def test_a_synchronous_call_works_inside_a_running_loop():
    with ChatServer(answer) as server:
        result = made(server).rerank(QUESTION, PASSAGES)
        assert [one.id for one in result.kept] == KEPT


async def test_the_loop_of_the_caller_goes_on_while_calls_are_out():
    with ChatServer(answer, latency=0.1) as server:
        task = asyncio.create_task(made(server).arerank(QUESTION, PASSAGES[:3]))
        beats = 0
        while not task.done():
            await asyncio.sleep(0.01)
            beats += 1
        assert len((await task).kept) == 3
        assert beats > 10


def test_one_reranker_serves_loop_after_loop_and_threads_in_between():
    with ChatServer(answer) as server:
        reranker = made(server)
        expected = reranker.rerank(QUESTION, FEW)
        for _ in range(3):
            for result in (
                asyncio.run(reranker.arerank(QUESTION, FEW)),
                reranker.rerank(QUESTION, FEW),
            ):
                assert result.passages == expected.passages
                assert result.usage == expected.usage
                assert not result.failed
        assert server.calls == 7 * (1 + len(FEW) + len(KEPT))


def test_many_loops_in_many_threads_share_one_reranker():
    with ChatServer(answer, latency=0.005) as server:
        reranker = made(server, max_concurrency=6)
        with ThreadPoolExecutor(6) as pool:
            ways = [lambda n=n: rerank(reranker, bool(n % 2)) for n in range(6)]
            results = list(pool.map(lambda way: way(), ways))
        assert {tuple(one.id for one in result.kept) for result in results} == {tuple(KEPT)}
        assert server.max_in_flight <= 6


def test_the_whole_result_is_the_same_sync_and_async():
    with ChatServer(answer) as server:
        reranker = made(server, answer=False)
        sync, not_sync = rerank(reranker, False, FEW), rerank(reranker, True, FEW)
    assert (sync.intent, sync.passages, sync.usage) == (
        not_sync.intent, not_sync.passages, not_sync.usage,
    )  # fmt: skip


def test_an_answer_cites_what_was_kept(is_async):
    def with_answer(request: Request) -> dict[str, object]:
        if "You answer" in request.system:
            return {"text": "It may [2], not [99].", "citations": [1, 99]}
        return answer(request)

    with ChatServer(with_answer) as server:
        result = rerank(made(server, answer=True), is_async, FEW)
        assert kinds(server)[-1] == "answer"
        evidence = server.requests[-1].user
    assert result.answer["text"] == "It may [2], not ."
    assert result.answer["citations"] == ["2", "1"]
    assert "[7] (none): Tea trial 6 had 26 adults." in evidence
    assert result.usage["answer"].calls == 1
    assert result.total_usage.calls == 1 + len(FEW) + len(KEPT) + 1
    assert result.total_usage + Usage() == result.total_usage
