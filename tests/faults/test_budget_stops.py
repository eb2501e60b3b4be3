"""At the limit of a budget no new call starts; when the time is up, no call is waited for."""

import asyncio
import json
import time
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import httpx
import pytest
from langchain_openai import ChatOpenAI

from deepera_graph import EvidenceReranker, JudgementCache, RerankResult, Usage, llm_backend
from support.faults import FAULTS
from support.faulty_model import NO_FAULTS, THRESHOLD, FaultyModel, Plan, question
from support.openai_server import ChatServer, Reply, Request

pytestmark = pytest.mark.full

AT_ONCE = 4
N_QUESTIONS, N_PASSAGES = 4, 10
RETRY = {"first_wait": 0.01, "timeout": 20.0}
MOST_TOKENS_A_CALL = 56 + 14
PRICES = {"input_price": 1e4, "output_price": 1e4}  # 0.01 a token
KINDS = ["rerank", "arerank", "batch", "abatch"]
FAULTY = {
    "no fault": NO_FAULTS,
    "all 500": Plan({"500": FAULTS["500"]["lasting"]}, 1.0),
    "all prose": Plan({"prose": FAULTS["prose"]["lasting"]}, 1.0),
    "half 429": Plan({"429": FAULTS["429"]["once"]}, 0.5),
}


class Trial:
    """One run with a budget, and what the server saw of it."""

    def __init__(self, kind: str, plan: Plan, budget: Mapping[str, float], **options: float):
        known = [plan.passages(number, N_PASSAGES) for number in range(N_QUESTIONS)]
        self.model = FaultyModel(plan, {one.id: one for some in known for one in some})
        self.jobs = [
            (question(number), [{"id": one.id, "text": one.text} for one in some])
            for number, some in enumerate(known)
        ][: N_QUESTIONS if "batch" in kind else 1]
        with ChatServer(self.model, latency=options.pop("latency", 0.0)) as server:
            limits = {name: options.pop(name) for name in list(options) if "per" in name}
            backend = llm_backend(
                "openai:m", base_url=server.base_url, retry={**RETRY, **options},
                limits=limits,
            )  # fmt: skip
            one = EvidenceReranker(
                backend, threshold=THRESHOLD, budget=budget, max_concurrency=AT_ONCE
            )
            started = time.monotonic()
            self.results = self._run(one, kind)
            self.seconds = time.monotonic() - started
            self.arrived = [request.arrived - started for request in server.requests]
        self.usage = sum((result.total_usage for result in self.results), Usage())

    def _run(self, one: EvidenceReranker, kind: str) -> list[RerankResult]:
        if kind == "batch":
            return one.batch(self.jobs)
        if kind == "abatch":
            return asyncio.run(one.abatch(self.jobs))
        if kind == "arerank":
            return [asyncio.run(one.arerank(*self.jobs[0]))]
        return [one.rerank(*self.jobs[0])]

    def check(self, limit: str) -> None:
        """Nothing lost, what was done is right, the rest says why, and all is counted."""
        assert "budget_stop" in {result.outcome for result in self.results}
        seen = self.model.seen
        if limit.endswith("seconds"):  # what a call took that was abandoned is not known
            assert self.usage.sent_calls >= seen["sent"]
            assert self.usage.tokens <= seen["in"] + seen["out"]
        else:
            assert self.usage.sent_calls == seen["sent"] == len(self.arrived)
            assert self.usage.tokens == seen["in"] + seen["out"]
        for (_, passages), result in zip(self.jobs, self.results, strict=True):
            assert sorted(one.id for one in result.passages) == [one["id"] for one in passages]
            skipped = [one for one in result.passages if one.status == "skipped_budget"]
            assert all(f"budget reached: {limit}" in one.reason for one in skipped)
            for one in result.passages:
                scored = one.status in {"scored", "repaired"}
                assert one.score == (self.model.known[one.id].score if scored else None)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        *(("all prose", kind) for kind in KINDS),
        *product(("no fault", "all 500", "half 429"), ("rerank", "abatch")),
    ],
)
def test_calls_never_exceed_the_budget(fault: str, kind: str) -> None:
    trial = Trial(kind, FAULTY[fault], {"max_calls": 7})
    trial.check("7 calls")
    assert len(trial.arrived) == 7


@pytest.mark.parametrize("kind", ["rerank", "abatch"])
@pytest.mark.parametrize(
    ("budget", "limit"),
    [({"max_tokens": 400}, "400 tokens"), ({"max_cost": 4.0, **PRICES}, "cost 4.00")],
    ids=["tokens", "money"],
)
def test_tokens_and_money_exceed_the_budget_by_calls_in_flight_at_most(
    kind: str, budget: dict[str, float], limit: str
) -> None:
    trial = Trial(kind, FAULTY["all prose"], budget)
    trial.check(limit)
    assert 400 <= trial.usage.tokens < 400 + AT_ONCE * MOST_TOKENS_A_CALL


@pytest.mark.parametrize("kind", KINDS)
def test_no_call_starts_after_the_time_is_up(kind: str) -> None:
    trial = Trial(kind, NO_FAULTS, {"max_seconds": 0.35}, latency=0.1)
    trial.check("0.35 seconds")
    on_its_way = [at for at in trial.arrived if at > 0.35]
    assert len(on_its_way) <= AT_ONCE


def test_nobody_waits_for_a_turn_that_comes_after_the_time_is_up() -> None:
    trial = Trial("rerank", NO_FAULTS, {"max_seconds": 1.0}, requests_per_minute=30)
    trial.check("1 seconds")
    assert len(trial.arrived) == 1
    assert trial.seconds < 2.0


def test_nobody_waits_for_a_retry_that_comes_after_the_time_is_up() -> None:
    plan = Plan({"500": FAULTS["500"]["lasting"]}, 1.0)
    trial = Trial("rerank", plan, {"max_seconds": 1.0}, first_wait=10.0, latency=0.01)
    trial.check("1 seconds")
    assert trial.seconds < 2.0
    assert "after HTTP 500" in trial.results[0].passages[0].reason


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_in_flight_is_abandoned_when_the_time_is_up(kind: str) -> None:
    trial = Trial(kind, NO_FAULTS, {"max_seconds": 0.3}, latency=30.0)
    assert trial.seconds < 15.0
    for result in trial.results:
        assert result.outcome == "budget_stop"
        assert {one.status for one in result.passages} == {"skipped_budget"}
        assert "budget reached: 0.3 seconds" in result.intent["cause"]
    assert trial.usage.failed_calls >= len(trial.arrived)
    assert trial.usage.calls == 0
    causes = {result.intent["cause"] for result in trial.results}
    assert any("a call in flight was abandoned" in one for one in causes)


def test_a_client_without_async_is_not_waited_for_either() -> None:
    with ChatServer(lambda _: {}, latency=30.0) as server, httpx.Client() as client:
        model = ChatOpenAI(model="m", base_url=server.base_url, api_key="k", http_client=client)
        one = EvidenceReranker(llm_backend(model), budget={"max_seconds": 0.3})
        started = time.monotonic()
        result = one.rerank("Does moss grow?", ["Moss grew."])
        seconds = time.monotonic() - started
    assert result.outcome == "budget_stop"
    assert seconds < 15.0


def test_what_was_answered_in_time_is_kept_though_the_rest_is_abandoned(
    tmp_path: Path,
) -> None:
    passages = ["Moss grew by 4% in the shade.", "Moss was measured."]
    fields = {
        "topic": "moss", "entity_type": "plant", "intent": "other", "expected_answer_type": "other",
        "reason": "measured", "evidence": [1], "score": 0.9,
    }  # fmt: skip

    def answer(got: Request) -> Reply:
        slow = "was measured" in got.user
        return Reply(content=json.dumps(fields), latency=30.0 if slow else 0.0)

    with (
        ChatServer(answer) as server,
        JudgementCache(tmp_path / "cache") as cache,
    ):
        backend = llm_backend("openai:m", base_url=server.base_url)
        one = EvidenceReranker(backend, cache=cache, content="passage", budget={"max_seconds": 0.5})
        first = one.rerank("Does moss grow?", passages)
        again = one.rerank("Does moss grow?", passages[:1])
    statuses = {one.text: one.status for one in first.passages}
    assert statuses == {passages[0]: "scored", passages[1]: "skipped_budget"}
    assert again.outcome == "ok"
    assert (again.total_usage.cached_calls, again.total_usage.sent_calls) == (3, 0)


def test_what_is_done_is_kept() -> None:
    trial = Trial("batch", NO_FAULTS, {"max_calls": 20})
    statuses = [one.status for result in trial.results for one in result.passages]
    assert statuses.count("scored") + statuses.count("skipped_budget") == 40
    assert statuses.count("scored") >= 20 - 2 * N_QUESTIONS
