"""A server that refuses everybody is found out at once."""

import asyncio
import io
import json

import pytest

from deepera_graph import EvidenceReranker, llm_backend
from deepera_graph.chat.retry import CircuitBreaker
from deepera_graph.errors import BackendError, CallError
from deepera_graph.jobs.report import JobReport
from deepera_graph.jobs.rerank import rerank_lines
from support.faulty_model import NO_FAULTS, FaultyModel, question
from support.openai_server import ChatServer, Reply

N_QUESTIONS, N_PASSAGES = 20, 10
CALLS_BEFORE_IT_IS_CLEAR = 8 + 16  # refused in a row, and in flight meanwhile


def reranker(server: ChatServer) -> EvidenceReranker:
    return EvidenceReranker(llm_backend("openai:m", base_url=server.base_url))


def jobs() -> list[tuple[str, list[str]]]:
    return [
        (question(n), [f"q{n:03d}p{p:02d} grew." for p in range(N_PASSAGES)]) for n in range(20)
    ]


@pytest.mark.full
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


@pytest.mark.full
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
