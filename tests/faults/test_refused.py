"""A server that refuses everybody is found out at once."""

import asyncio
import io
import json
import re

import pytest

from deepera_graph import EvidenceReranker, llm_backend
from deepera_graph.chat.sending import CircuitBreaker
from deepera_graph.errors import BackendError, CallError
from deepera_graph.jobs.report import JobReport
from deepera_graph.jobs.rerank import rerank_lines
from support.faulty_model import NO_FAULTS, FaultyModel, question
from support.openai_server import ChatServer, Reply

pytestmark = pytest.mark.full

N_QUESTIONS, N_PASSAGES = 20, 10
CALLS_BEFORE_IT_IS_CLEAR = 8 + 16  # refused in a row, and in flight meanwhile


def reranker(server: ChatServer) -> EvidenceReranker:
    return EvidenceReranker(llm_backend("openai:m", base_url=server.base_url))


def jobs() -> list[tuple[str, list[str]]]:
    return [
        (question(n), [f"q{n:03d}p{p:02d} grew." for p in range(N_PASSAGES)]) for n in range(20)
    ]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_server_that_refuses_everything_is_not_asked_for_every_passage(
    status: int, is_async: bool
) -> None:
    with ChatServer(lambda request: Reply(status=status)) as server:
        one = reranker(server)
        results = asyncio.run(one.abatch(jobs())) if is_async else one.batch(jobs())
        assert server.calls <= CALLS_BEFORE_IT_IS_CLEAR
        used = sum(result.total_usage.sent_calls for result in results)
        assert used == server.calls
    for result in results:
        assert str(status) in (result.backend_failure or "")
        assert {passage.status for passage in result.passages} == {"failed"}
        assert result.outcome == "degraded"


def test_a_file_of_questions_ends_with_one_clear_error() -> None:
    lines = [{"question": text, "passages": passages} for text, passages in jobs()]
    source = io.BytesIO("\n".join(map(json.dumps, lines)).encode())
    with ChatServer(lambda request: Reply(status=401)) as server:
        with pytest.raises(BackendError, match=r"line 1: .*refused the API key \(HTTP 401\)"):
            rerank_lines(reranker(server), source, io.BytesIO(), report=JobReport())
        assert server.calls <= CALLS_BEFORE_IT_IS_CLEAR


def test_a_server_that_fails_at_everything_is_not_asked_for_every_passage() -> None:
    with ChatServer(lambda request: Reply(status=500)) as server:
        backend = llm_backend("openai:m", base_url=server.base_url, retry={"first_wait": 0.01})
        results = EvidenceReranker(backend).batch(jobs())
        assert server.calls <= 16 + 16  # failed in a row, and in flight meanwhile
    for result in results:
        assert "500" in result.passages[0].reason
        assert {passage.status for passage in result.passages} == {"failed"}


def test_a_key_that_is_activated_late_is_found_out() -> None:
    now = [0.0]
    breaker = CircuitBreaker(lambda: now[0])
    refused = CallError("refused", status=401)
    for _ in range(8):
        breaker.check()
        breaker.note_failure(refused)
    with pytest.raises(CallError, match="refused"):
        breaker.check()
    now[0] = 5.0
    breaker.check()
    breaker.note_failure(refused)
    with pytest.raises(CallError, match="refused"):
        breaker.check()
    now[0] = 10.0
    breaker.check()
    breaker.note_answer()
    for _ in range(20):
        breaker.note_failure(refused)
        breaker.check()


def test_failures_that_pass_never_open_the_breaker() -> None:
    breaker = CircuitBreaker()
    for _ in range(20):
        breaker.note_failure(CallError("busy", status=503))
        breaker.check()


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("status", [429, 503])
def test_an_overloaded_server_is_not_asked_for_every_passage(status: int, is_async: bool) -> None:
    attempts = 3
    with ChatServer(lambda request: Reply(status=status)) as server:
        retry = {"first_wait": 0.001, "attempts": attempts}
        backend = llm_backend("openai:m", base_url=server.base_url, retry=retry)
        one = EvidenceReranker(backend, max_concurrency=4)
        job = (question(0), [f"moss {n} grew." for n in range(200)])
        result = asyncio.run(one.arerank(*job)) if is_async else one.rerank(*job)
        assert server.calls <= attempts * (8 + 4)  # given up in a row, and in flight meanwhile
        assert result.total_usage.sent_calls == server.calls
    assert {passage.status for passage in result.passages} == {"failed"}
    assert result.outcome == "degraded"
    unsent = f"HTTP {status}: .*; \\d+ calls in a row were given up, so that this one was not sent"
    assert sum(bool(re.match(unsent, one.reason)) for one in result.passages) >= 188


def test_a_file_of_questions_ends_where_the_server_stays_overloaded() -> None:
    lines = [{"question": text, "passages": passages} for text, passages in jobs()]
    source = io.BytesIO("\n".join(map(json.dumps, lines)).encode())
    with ChatServer(lambda request: Reply(status=503)) as server:
        retry = {"first_wait": 0.001, "attempts": 2}
        backend = llm_backend("openai:m", base_url=server.base_url, retry=retry)
        with pytest.raises(BackendError, match=r"line \d+: HTTP 503: .* calls in a row were given"):
            rerank_lines(EvidenceReranker(backend), source, io.BytesIO(), report=JobReport())
        assert server.calls <= 2 * (8 + 16)


def test_a_breaker_that_opened_on_an_overload_closes_at_the_first_answer() -> None:
    now = [0.0]
    breaker = CircuitBreaker(lambda: now[0])
    busy, bad = CallError("busy", status=503), CallError("too long", status=400)
    breaker.note_answer()  # a server that worked before is no exception
    for error in (*[busy] * 7, bad, *[busy] * 7):
        breaker.note_given_up(error)
        breaker.check()
    breaker.note_given_up(busy)
    with pytest.raises(CallError, match="busy; 8 calls in a row were given up") as told:
        breaker.check()
    assert (told.value.status, told.value.unusable) == (503, True)
    now[0] = 5.0
    breaker.check()
    breaker.note_given_up(busy)
    with pytest.raises(CallError, match="9 calls in a row"):
        breaker.check()
    breaker.note_answer()  # of a call that was in flight
    for _ in range(7):
        breaker.note_given_up(busy)
        breaker.check()


def test_a_server_that_answers_some_is_asked_for_every_passage() -> None:
    known = {one.id: one for n in range(2) for one in NO_FAULTS.passages(n, 10)}
    model = FaultyModel(NO_FAULTS, known)

    def some(request):
        reply = model(request)
        return Reply(status=401) if "p00" not in request.user and request.number else reply

    with ChatServer(some) as server:
        one = reranker(server)
        result = one.rerank(question(0), [known[f"q000p{p:02d}"].text for p in range(10)])
        assert server.calls == 1 + 10 + len(result.kept)
    assert [passage.status for passage in result.passages].count("scored") == 1
    assert result.backend_failure is None
