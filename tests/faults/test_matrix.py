"""Every fault, alone and mixed, against a real server: nothing lost, nothing wrong, all counted."""

import asyncio
import logging
import re
import time
from collections import Counter
from dataclasses import asdict

import pytest

from deepera_graph import EvidenceReranker, RerankResult, Usage, llm_backend
from support.faults import ATTEMPTS, EVERY, FAULTS, Fault
from support.faulty_model import NO_FAULTS, THRESHOLD, FaultyModel, Known, Plan, question
from support.openai_server import ChatServer

pytestmark = pytest.mark.full

_log = logging.getLogger(__name__)
SHORT, LONG = 0.5, 30.0  # seconds a call may take
EXACT = ("score", "status", "reason", "quote", "quote_span", "quote_status", "kept")
COLUMNS = ("sent", "answered", "failed", "reasked", "in", "out")
STAGES = ("intent", "score", "summarize")


class Trial:
    """One run of some questions against a server with a plan."""

    def __init__(self, plan: Plan, n_questions: int, n_passages: int) -> None:
        self.plan = plan
        self.known = [plan.passages(number, n_passages) for number in range(n_questions)]
        self.model = FaultyModel(plan, {one.id: one for some in self.known for one in some})
        self.results: list[RerankResult] = []
        self.seconds = 0.0

    def run(self, *, is_async: bool, timeout: float = LONG) -> "Trial":
        with ChatServer(self.model) as server:
            one = reranker(server, timeout)
            jobs = [
                (question(number), [{"id": known.id, "text": known.text} for known in some])
                for number, some in enumerate(self.known)
            ]
            started = time.monotonic()
            self.results = asyncio.run(one.abatch(jobs)) if is_async else one.batch(jobs)
            self.seconds = time.monotonic() - started
        return self

    @property
    def usage(self) -> Usage:
        return sum((result.total_usage for result in self.results), Usage())

    def check(self) -> None:
        for number, (known, result) in enumerate(zip(self.known, self.results, strict=True)):
            check_question(self.plan, number, known, result)
        for stage in ("", *self.stages):
            used = sum((one.usage[stage] for one in self.results), Usage()) if stage else self.usage
            check_columns(self.model.seen, used, f"{stage} ".lstrip())

    @property
    def stages(self) -> set[str]:
        return {stage for one in self.results for stage in one.usage}


def reranker(server: ChatServer, timeout: float) -> EvidenceReranker:
    retry = {
        "attempts": ATTEMPTS,
        "timeout": timeout,
        "first_wait": 0.02,
        "longest_wait": 0.5,
        "total_wait": 2.0,
    }
    backend = llm_backend("openai:m", base_url=server.base_url, retry=retry)
    return EvidenceReranker(backend, threshold=THRESHOLD, top_n=99)


def check_question(plan: Plan, number: int, known: list[Known], result: RerankResult) -> None:
    intent = plan.fault("intent", f"q{number:03d}")
    failed = bool(intent and intent.fails)
    assert (result.intent["status"] == "fallback") == failed, result.intent
    if intent and failed:
        assert re.search(intent.cause, result.intent["cause"])
    found = {one.id: one for one in result.passages}
    assert sorted(found) == [one.id for one in known]
    assert [one.rank for one in result.passages] == list(range(1, len(known) + 1))
    for one in known:
        summary = plan.fault("summarize", one.id) if found[one.id].kept else None
        check_passage(plan.fault("score", one.id), summary, one, asdict(found[one.id]))
        if found[one.id].kept:
            check_summary(summary, one, asdict(found[one.id]))


def check_passage(fault: Fault | None, summary: Fault | None, known: Known, found: dict) -> None:
    expected = expected_result(known)
    if found["score"] is not None:
        found["reason"], _, causes = found["reason"].partition("; ")
        asked_twice = (found["status"], found["summary_status"]).count("repaired")
        assert causes.count("asked twice, as the reply") == asked_twice, causes
        if summary and summary.fails:
            assert re.search(summary.cause, causes), (summary.cause, causes)
    if fault is None or fault.status is None:
        assert {name: found[name] for name in EXACT} == expected
    elif fault.status == "repaired":
        assert found["status"] in {"repaired", "scored"}  # asked another way is not asked again
        assert {name: found[name] for name in EXACT} == {**expected, "status": found["status"]}
    elif fault.status == "unproven":
        assert not found["kept"]
        assert not found["quote_span"]
    else:
        assert (found["status"], found["score"], found["kept"]) == ("failed", None, False)
        assert re.search(fault.cause, found["reason"]), (fault.cause, found["reason"])


def check_summary(fault: Fault | None, known: Known, found: dict) -> None:
    if fault and fault.fails:
        assert (found["summary_status"], found["summary"]) == ("failed", known.text)
    else:
        statuses = {"ok", "repaired"} if fault and fault.status == "repaired" else {"ok"}
        assert found["summary"] == known.sentences[1]
        assert found["summary_status"] in statuses


def expected_result(known: Known) -> dict:
    quote = known.sentences[1]
    start = known.text.index(quote)
    return {
        "score": known.score,
        "status": "scored",
        "reason": f"about {known.id}",
        "quote": quote,
        "quote_span": (start, start + len(quote)),
        "quote_status": "verbatim",
        "kept": known.score >= THRESHOLD,
    }


def check_columns(seen: dict[str, int], usage: Usage, stage: str) -> None:
    """What was counted here, in all or for one stage, is what the server saw."""
    assert {
        "sent": usage.sent_calls,
        "answered": usage.calls,
        "failed": usage.failed_calls,
        "reasked": usage.reasked_calls,
        "in": usage.input_tokens,
        "out": usage.output_tokens,
    } == {name: seen[stage + name] for name in COLUMNS}


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_without_faults_every_passage_gets_its_score(is_async: bool) -> None:
    trial = Trial(NO_FAULTS, n_questions=2, n_passages=8).run(is_async=is_async)
    trial.check()
    assert trial.usage.failed_calls == trial.usage.reasked_calls == 0


@pytest.mark.parametrize("name", FAULTS)
def test_one_fault_alone_hits_its_passages_only(name: str) -> None:
    plan = Plan(FAULTS[name], 0.4, seed=1)  # of which every kind hits some passage
    timeout = SHORT if name == "hang" else LONG
    trial = Trial(plan, n_questions=2, n_passages=8).run(is_async=True, timeout=timeout)
    trial.check()
    hit = [plan.fault("score", one.id) for some in trial.known for one in some]
    costs = [one.cost if one else (1, 0, 0) for one in hit]
    scored = sum((result.usage["score"] for result in trial.results), Usage())
    counted = (scored.calls, scored.failed_calls, scored.reasked_calls)
    assert counted == tuple(map(sum, zip(*costs, strict=True)))
    assert {one for one in hit if one} == set(FAULTS[name].values())


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_mix_of_faults_in_every_stage_hits_its_victims_only(is_async: bool) -> None:
    quick = {name: fault for name, fault in EVERY.items() if not name.startswith("hang")}
    trial = Trial(Plan(quick, 0.2, STAGES), n_questions=6, n_passages=8)
    trial.run(is_async=is_async).check()


def test_waiting_is_bounded() -> None:
    name = "hang, lasting"
    trial = Trial(Plan({name: EVERY[name]}, 1.0), n_questions=1, n_passages=8)
    trial.run(is_async=False, timeout=0.1)
    assert {one.status for one in trial.results[0].passages} == {"failed"}
    assert trial.seconds < ATTEMPTS * 0.1 + 2.0 + 1.0


@pytest.mark.slow
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_mix_of_faults_over_many_questions_hits_its_victims_only(is_async: bool) -> None:
    trial = Trial(Plan(EVERY, 0.2, STAGES, seed=1), n_questions=200, n_passages=30)
    trial.run(is_async=is_async, timeout=4.0).check()
    statuses = Counter(one.status for result in trial.results for one in result.passages)
    assert statuses.total() == 200 * 30
    _log.info("%s, %s, %.0f s", dict(statuses), trial.usage, trial.seconds)
