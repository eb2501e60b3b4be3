"""A second copy of a straggler: first answer wins, both are charged, limits and budget hold."""

import asyncio
import time
from collections.abc import Callable

from deepera_graph import EvidenceReranker, RerankResult, llm_backend
from support.faulty_model import NO_FAULTS, FaultyModel, Known, question
from support.openai_server import ChatServer, Reply, Request

N_PASSAGES = 32
QUICK, LATE, SLOW = 0.02, 0.6, 4.0
Script = Callable[[Request, Reply, int], Reply]


class Straggling:
    """Answers, but about the stragglers as *script* says: request, right answer, try from 0."""

    def __init__(self, stragglers: set[str], script: Script) -> None:
        self.known = NO_FAULTS.passages(0, N_PASSAGES)
        self.right = FaultyModel(NO_FAULTS, {one.id: one for one in self.known})
        self.tries: dict[str, int] = {}
        self._stragglers, self._script = stragglers, script

    def __call__(self, request: Request) -> Reply:
        fields = Reply.__dataclass_fields__
        right = self.right(request)
        reply = Reply(**{**{name: getattr(right, name) for name in fields}, "latency": QUICK})
        hit = [one for one in self._stragglers if one in request.user]
        if not hit or "numbered" not in request.system:
            return reply
        n_before = self.tries.get(hit[0], 0)
        self.tries[hit[0]] = n_before + 1
        return self._script(request, reply, n_before)


def late(request: Request, reply: Reply, n_before: int) -> Reply:
    return Reply(content=reply.content, usage=reply.usage, latency=QUICK if n_before else LATE)


def slow(request: Request, reply: Reply, n_before: int) -> Reply:
    return Reply(content=reply.content, usage=reply.usage, latency=QUICK if n_before else SLOW)


def ask(
    answers: Straggling, *, limits: dict[str, float] | None = None, **options: object
) -> tuple[RerankResult, ChatServer, float]:
    patience = {"hedge": True, "timeout": 10.0, "first_wait": 0.01, **options}
    budget = patience.pop("budget", None)
    with ChatServer(answers) as server:
        backend = llm_backend(
            "openai:m", base_url=server.base_url, patience=patience, limits=limits
        )
        one = EvidenceReranker(
            backend, threshold=1.0, budget=budget, max_concurrency=4, require_evidence=False
        )
        passages = [{"id": known.id, "text": known.text} for known in answers.known]
        started = time.monotonic()
        result = asyncio.run(one.arerank(question(0), passages))
        seconds = time.monotonic() - started
        until = time.monotonic() + 2.0
        while server.in_flight and time.monotonic() < until:
            time.sleep(0.005)  # the server has yet to notice that a client has left
        assert server.in_flight == 0
    return result, server, seconds


def check(result: RerankResult, known: list[Known]) -> None:
    scores = {one.id: one.score for one in result.passages}
    assert scores == {one.id: one.score for one in known}


def check_charged(result: RerankResult, server: ChatServer) -> None:
    """All is charged; a copy may be given up on its way to the server, and is charged as well."""
    used = result.total_usage
    assert server.calls <= used.sent_calls <= server.calls + used.hedged_calls


LAST = f"q000p{N_PASSAGES - 1:02d}"


def test_a_straggler_is_overtaken_and_both_copies_are_charged() -> None:
    answers = Straggling({LAST}, slow)
    result, server, seconds = ask(answers)
    check(result, answers.known)
    used = result.total_usage
    assert seconds < SLOW
    assert used.failed_calls == 0
    assert used.hedged_calls >= 1
    check_charged(result, server)
    assert server.answered == used.calls  # the losers were cancelled


def test_the_first_copy_may_win() -> None:
    def second_never(request: Request, reply: Reply, n_before: int) -> Reply:
        if n_before:
            return Reply(fault="hang")
        return Reply(content=reply.content, usage=reply.usage, latency=LATE)

    answers = Straggling({LAST}, second_never)
    result, server, _ = ask(answers)
    check(result, answers.known)
    check_charged(result, server)
    assert result.total_usage.hedged_calls >= 1


def test_a_copy_that_fails_leaves_the_first_its_time() -> None:
    def second_fails(request: Request, reply: Reply, n_before: int) -> Reply:
        if n_before:
            return Reply(status=500)
        return Reply(content=reply.content, usage=reply.usage, latency=LATE)

    answers = Straggling({LAST}, second_fails)
    result, server, _ = ask(answers)
    check(result, answers.known)
    used = result.total_usage
    check_charged(result, server)
    assert used.failed_calls == 1


def test_two_copies_that_fail_are_two_failed_calls() -> None:
    def both_fail(request: Request, reply: Reply, n_before: int) -> Reply:
        return Reply(status=400, latency=LATE)

    answers = Straggling({LAST}, both_fail)
    result, server, _ = ask(answers)
    assert [one.id for one in result.failed] == [LAST]
    used = result.total_usage
    assert used.failed_calls == answers.tries[LAST] == 2
    check_charged(result, server)


def test_copies_that_time_out_are_all_counted() -> None:
    answers = Straggling({LAST}, lambda request, reply, n_before: Reply(fault="hang"))
    result, server, _ = ask(answers, timeout=LATE, attempts=2)
    assert [one.id for one in result.failed] == [LAST]
    check_charged(result, server)
    assert result.total_usage.failed_calls == answers.tries[LAST] == 4


def test_a_copy_never_exceeds_the_calls_in_flight() -> None:
    answers = Straggling({LAST, "q000p29"}, late)
    result, server, _ = ask(answers, limits={"calls_at_once": 2})
    check(result, answers.known)
    assert server.max_in_flight <= 2
    check_charged(result, server)


def test_a_copy_waits_for_its_turn_like_any_call() -> None:
    answers = Straggling({LAST}, late)
    result, server, _ = ask(answers, limits={"requests_per_minute": 3000})
    check(result, answers.known)
    arrived = [request.arrived for request in server.requests]
    assert arrived[-1] - arrived[0] >= (server.calls - 1) * 0.02 - 0.3


def test_a_copy_is_not_sent_beyond_the_budget() -> None:
    answers = Straggling({LAST}, late)
    result, server, _ = ask(answers, budget={"max_calls": 1 + N_PASSAGES})
    assert server.calls <= 1 + N_PASSAGES
    check_charged(result, server)
    done = {one.id: one.score for one in result.passages if one.score is not None}
    assert done.items() <= {one.id: one.score for one in answers.known}.items()
