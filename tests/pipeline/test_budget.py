"""At the limit no new call starts, and what is done is kept."""

import asyncio
import time
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph import Budget, EvidenceReranker, SettingsError
from deepera_graph.errors import BudgetError
from deepera_graph.settings.budget import Meter, Tab, ado_many, do_many
from deepera_graph.usage import Usage
from support.scripted import Script

PASSAGES = [f"moss {number}" for number in range(20)]
QUESTION = "Does moss grow?"


def reranker(script: Script, **budget: float) -> EvidenceReranker:
    return EvidenceReranker(script.backend(), max_concurrency=4, budget=budget)


def test_no_call_starts_beyond_the_limit() -> None:
    script = Script({}, default=0.9)
    result = reranker(script, max_calls=8).rerank(QUESTION, PASSAGES)
    assert result.outcome == "budget_stop"
    assert result.total_usage.calls == 8
    assert len(script.judged) == 7


def test_what_is_done_is_kept_and_the_rest_says_why_it_was_skipped() -> None:
    result = reranker(Script({}, default=0.9), max_calls=8).rerank(QUESTION, PASSAGES)
    done = [passage for passage in result.passages if passage.score is not None]
    skipped = result.failed
    assert len(done) == 7
    assert {passage.status for passage in skipped} == {"skipped_budget"}
    assert {passage.reason for passage in skipped} == {"budget reached: 8 calls"}
    assert sorted(passage.id for passage in result.passages) == sorted(
        str(number) for number in range(1, 21)
    )


@pytest.mark.full
def test_passages_kept_without_a_summary_hold_their_own_text() -> None:
    result = reranker(Script({}, default=0.9), max_calls=22).rerank(QUESTION, PASSAGES)
    assert result.outcome == "budget_stop"
    kept = result.kept
    assert [passage.summary_status for passage in kept].count("ok") == 1
    assert all(passage.summary == passage.text for passage in kept[1:])


def test_sync_and_async_stop_alike() -> None:
    one = reranker(Script({}, default=0.9), max_calls=8)
    sync, other = one.rerank(QUESTION, PASSAGES), asyncio.run(one.arerank(QUESTION, PASSAGES))
    assert sync.outcome == other.outcome == "budget_stop"
    assert len(sync.failed) == len(other.failed) == 13


@pytest.mark.full
def test_every_rerank_has_a_budget_of_its_own_and_a_batch_has_one() -> None:
    one = reranker(Script({}), max_calls=30)
    assert [one.rerank(QUESTION, PASSAGES).outcome for _ in range(3)] == ["no_evidence"] * 3
    outcomes = [result.outcome for result in one.batch([(QUESTION, PASSAGES)] * 3)]
    assert "budget_stop" in outcomes
    total = sum((result.total_usage for result in one.batch([(QUESTION, PASSAGES)] * 3)), Usage())
    assert total.calls == 30


@pytest.mark.full
async def test_time_runs_out() -> None:
    one = reranker(Script({}, seconds=0.05), max_seconds=0.1)
    result = await one.arerank(QUESTION, PASSAGES)
    assert result.outcome == "budget_stop"
    assert 4 <= len(result.dropped) <= 12


def test_tokens_and_money_are_limits_too() -> None:
    spent = Usage(calls=1, input_tokens=900_000, output_tokens=100_000)
    for budget in (
        Budget(max_tokens=1_000_000),
        Budget(max_cost=1.9, input_price=1, output_price=10),
    ):
        meter = Meter(budget)
        meter.admit()
        meter.charge(spent)
        with pytest.raises(BudgetError):
            meter.admit()


def test_retries_are_charged_and_the_cache_is_not() -> None:
    meter = Meter(Budget(max_calls=4))
    meter.admit()
    meter.charge(Usage(calls=3, cached_calls=3))
    meter.admit()
    meter.charge(Usage(calls=1, failed_calls=3))
    with pytest.raises(BudgetError, match="4 calls"):
        meter.admit()


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"max_calls": 0}, "max_calls must be > 0, got 0"),
        ({"max_tokens": -1}, "max_tokens must be > 0, got -1"),
        ({"max_cost": 1.0}, "max_cost needs input_price and output_price"),
        ({"max_cals": 1}, r"budget: unknown field 'max_cals'; did you mean 'max_calls'\?"),
        ({"dollars": 1}, "budget: unknown field 'dollars'; fields are max_calls, "),
        (5, r"budget must be a Budget or its fields by name \(max_calls, .* got 5"),
    ],
)
def test_a_budget_out_of_range_is_named(budget: object, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        EvidenceReranker(Script({}).backend(), budget=budget)


def test_a_budget_survives_writing_down() -> None:
    one = EvidenceReranker("local", budget={"max_calls": 5})
    assert EvidenceReranker.from_dict(one.to_dict()).settings.budget == Budget(max_calls=5)


def test_a_role_that_charges_no_call_itself_is_charged_when_it_ends() -> None:
    meter = Meter(Budget(max_calls=3))
    meter.admit()
    Tab(meter, Usage(calls=2)).close()
    assert meter.spent == Usage(calls=2)
    meter.admit()
    with pytest.raises(BudgetError, match="3 calls"):
        meter.admit()


def test_what_was_charged_call_by_call_is_not_charged_again() -> None:
    meter = Meter(Budget(max_calls=3))
    meter.admit()
    tab = Tab(meter)
    for cost in (Usage(failed_calls=1), Usage(1, 40, 2)):
        tab.start()
        tab.end(cost)
    tab.usage = Usage(1, 40, 2, failed_calls=1)
    tab.close()
    assert meter.spent == Usage(1, 40, 2, failed_calls=1)
    meter.admit()


def test_a_role_that_sent_nothing_costs_nothing() -> None:
    meter = Meter(Budget(max_calls=1))
    for _ in range(3):
        meter.admit()
        Tab(meter).close()
    assert meter.spent == Usage()


def test_the_first_call_of_a_role_is_admitted_already_but_not_for_ever() -> None:
    now = [0.0]
    meter = Meter(Budget(max_calls=1, max_seconds=5), lambda: now[0])
    meter.admit()
    tab = Tab(meter)
    tab.meter.check(after=4.9)
    assert tab.meter.seconds_left == 5
    now[0] = 6.0
    assert tab.meter.seconds_left == 0
    with pytest.raises(BudgetError, match="5 seconds"):
        tab.start()


@pytest.mark.full
@given(
    limit=st.integers(1, 12),
    steps=st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["start", "end", "close"]))),
)
def test_whatever_roles_do_no_more_calls_start_than_the_limit(
    limit: int, steps: list[tuple[int, str]]
) -> None:
    meter = Meter(Budget(max_calls=limit))
    tabs: dict[int, Tab] = {}
    going: Counter[int] = Counter()
    done: Counter[int] = Counter()
    n_started = 0
    for role, step in steps:
        with suppress(BudgetError):
            if role not in tabs:
                meter.admit()
                tabs[role] = Tab(meter)
            if step == "start":
                tabs[role].start()
                going[role] += 1
                n_started += 1
            elif step == "end" and going[role]:
                tabs[role].end(Usage(calls=1))
                going[role] -= 1
                done[role] += 1
            elif step == "close" and not going[role]:
                tab = tabs.pop(role)
                tab.usage = Usage(calls=done.pop(role, 0))
                tab.close()
    assert n_started <= limit
    assert meter.spent.sent_calls == n_started - going.total()


@pytest.mark.parametrize("in_loop", [False, True])
def test_where_a_budget_is_spent_nothing_more_begins_and_what_is_in_flight_ends(
    in_loop: bool,
) -> None:
    begun, ended = list[int](), list[int]()

    def work(job: int) -> None:
        begun.append(job)
        if job == 1:
            raise BudgetError("spent")
        time.sleep(0.05)
        ended.append(job)

    async def awork(job: int) -> None:
        begun.append(job)
        if job == 1:
            raise BudgetError("spent")
        await asyncio.sleep(0.05)
        ended.append(job)

    def do_all() -> None:
        if in_loop:
            asyncio.run(ado_many(awork, range(40), 2))
        else:
            do_many(work, range(40), 2)

    with pytest.raises(BudgetError, match="spent"):
        do_all()
    assert len(begun) < 10
    assert set(ended) == set(begun) - {1}
