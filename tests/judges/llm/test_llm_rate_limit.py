"""Limits of a model hold for everybody who asks it."""

import asyncio
import time

import pytest

from deepera_graph import EvidenceReranker, SettingsError, llm_backend
from deepera_graph.chat.sending import RateLimiter, RateLimits
from deepera_graph.settings.budget import Meter, Tab
from support.openai_server import ChatServer, Request

pytestmark = pytest.mark.full

INTENT = {
    "topic": "botany",
    "entity_type": "plant: moss",
    "intent": "other",
    "expected_answer_type": "other",
}


def answer(request: Request) -> dict[str, object]:
    if "numbered" not in request.system:
        return INTENT
    return {"reason": "r", "evidence": [], "score": 0.1}


def reranker(server: ChatServer, **limits: float) -> EvidenceReranker:
    return EvidenceReranker(llm_backend("openai:m", base_url=server.base_url, limits=limits))


async def test_calls_at_once_are_shared_by_rerankers() -> None:
    with ChatServer(answer, latency=0.02) as server:
        several = [reranker(server, calls_at_once=3) for _ in range(3)]
        jobs = [one.arerank("Does moss grow?", ["moss"] * 8) for one in several]
        await asyncio.gather(*jobs)
        assert server.max_in_flight == 3


def test_threads_and_loops_share_the_limit() -> None:
    with ChatServer(answer, latency=0.02) as server:
        one, other = reranker(server, calls_at_once=2), reranker(server, calls_at_once=2)

        async def both() -> None:
            await asyncio.gather(
                asyncio.to_thread(one.rerank, "Does moss grow?", [f"moss {n}" for n in range(6)]),
                other.arerank("Does moss grow?", [f"moss {n}" for n in range(6)]),
            )

        asyncio.run(both())
        assert server.max_in_flight == 2


@pytest.mark.full
async def test_requests_are_spaced_evenly() -> None:
    with ChatServer(answer) as server:
        several = [reranker(server, requests_per_minute=1200) for _ in range(2)]
        await asyncio.gather(
            *(one.arerank("Does moss grow?", [f"moss {n}" for n in range(9)]) for one in several)
        )
        arrived = sorted(request.arrived for request in server.requests)
        assert len(arrived) == 20
        assert arrived[-1] - arrived[0] >= 19 * 0.05 * 0.95


async def test_tokens_are_paced_by_what_they_really_were() -> None:
    limiter = RateLimiter(RateLimits(tokens_per_minute=60_000))
    started = time.monotonic()
    tab = Tab(Meter(None))
    async with limiter.slot(100, tab):
        limiter.settle(400, 100, 150, 50)
    async with limiter.slot(100, tab):
        pass
    assert 0.19 <= time.monotonic() - started < 1


@pytest.mark.parametrize("name", ["calls_at_once", "requests_per_minute", "tokens_per_minute"])
def test_a_limit_out_of_range_is_named(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} must be > 0, got 0"):
        RateLimits(**{name: 0})


def test_an_unknown_limit_is_an_error() -> None:
    with pytest.raises(SettingsError, match="limits"):
        llm_backend("openai:m", base_url="http://127.0.0.1:1/v1", limits={"per_hour": 3})


def test_limits_and_retries_are_written_down() -> None:
    made = reranker_of({"limits": {"calls_at_once": 3}, "retry": {"attempts": 2}})
    plain = made.to_dict()
    assert plain["backend"]["limits"]["calls_at_once"] == 3
    assert EvidenceReranker.from_dict(plain).to_dict() == plain


def reranker_of(options: dict[str, dict[str, int]]) -> EvidenceReranker:
    return EvidenceReranker(llm_backend("openai:m", base_url="http://127.0.0.1:1/v1", **options))
