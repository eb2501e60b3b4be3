"""The one event loop of all model calls."""

import asyncio
import contextvars
import threading

import pytest

from deepera_graph import EvidenceReranker, llm_backend
from deepera_graph.chat import sending
from deepera_graph.testing import answer_in_json
from support.openai_server import ChatServer

QUESTION = "Does tea lower fasting glucose?"
WHO = contextvars.ContextVar("who", default="nobody")


async def where():
    return threading.current_thread().name, asyncio.get_running_loop()


def test_all_work_runs_in_one_thread_and_one_loop():
    async def from_here():
        return await sending.arun(where())

    found = {sending.run(where()), asyncio.run(from_here()), asyncio.run(from_here())}
    assert len(found) == 1
    assert next(iter(found))[0] == "deepera-io"


def test_work_within_the_loop_is_simply_awaited():
    async def nested():
        return await sending.arun(where())

    assert sending.run(nested()) == sending.run(where())


@pytest.mark.filterwarnings("error")
def test_waiting_for_itself_is_an_error():
    async def wrong():
        sending.run(where())

    with pytest.raises(RuntimeError, match="from inside a model call"):
        sending.run(wrong())


def test_errors_come_back_as_they_are():
    async def fail():
        raise KeyError("k")

    with pytest.raises(KeyError, match="k"):
        sending.run(fail())


def test_work_sees_the_context_of_its_caller():
    async def who():
        return WHO.get()

    async def caller():
        WHO.set("async caller")
        return await sending.arun(who())

    token = WHO.set("caller")
    assert sending.run(who()) == "caller"
    WHO.reset(token)
    assert asyncio.run(caller()) == "async caller"


async def test_work_stops_when_its_caller_is_cancelled():
    stopped = threading.Event()

    async def endless():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.set()
            raise

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(sending.arun(endless()), 0.05)
    assert await asyncio.to_thread(stopped.wait, 5)


# LangGraph never awaits the branches that wait for their turn when a run is cancelled.
@pytest.mark.full
@pytest.mark.filterwarnings("ignore:.*was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_cancelled_rerank_drops_its_calls_and_the_next_one_works():
    def answer(request):
        return answer_in_json({"Tea": 0.9}, request.system, request.user)

    texts = [f"Tea {n}." for n in range(12)]
    with ChatServer(answer, latency=0.1) as server:
        backend = llm_backend("openai:m", base_url=server.base_url)
        reranker = EvidenceReranker(backend, max_concurrency=4)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reranker.arerank(QUESTION, texts), 0.15)
        await asyncio.sleep(0.1)  # what was on its way has come
        before = server.calls
        await asyncio.sleep(0.2)
        assert server.calls == before < len(texts)
        assert server.in_flight == 0
        result = await asyncio.wait_for(reranker.arerank(QUESTION, texts[:4]), 5)
        assert len(result.kept) == 4
