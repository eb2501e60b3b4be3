"""What a run may cost, told before it."""

import pytest
from langchain_core.runnables import RunnableLambda

from deepera_graph import (
    Backend,
    Budget,
    EvidenceReranker,
    InputError,
    llm_backend,
    local_backend,
    mixed_backend,
    screened_backend,
)
from deepera_graph.testing import ScriptedChat

pytestmark = pytest.mark.full

JOBS = [("Does tea cool?", ["tea fell", "it fell", "all fell"]), ("Does it rain?", ["rain fell"])]


def calls(estimate):
    return {stage: used.calls for stage, used in estimate.usage.items()}


def never(task):
    raise AssertionError("an estimate must not ask")


def test_an_estimate_is_what_a_run_costs_that_keeps_everything():
    reranker = EvidenceReranker(llm_backend(ScriptedChat(scores={"fell": 0.9})), top_n=2)
    estimate = reranker.estimate(JOBS)
    real = [result.total_usage.calls for result in reranker.batch(JOBS)]
    assert calls(estimate) == {"intent": 2, "score": 4, "summarize": 3}
    assert estimate.total_usage.calls == sum(real)
    assert (estimate.n_questions, estimate.n_passages) == (2, 4)
    assert estimate.tokens_known
    assert estimate.cost is None


def test_money_is_told_where_prices_are_given_and_limits_are_not_looked_at():
    budget = Budget(max_calls=1, max_cost=0.01, input_price=2.0, output_price=10.0)
    unasked = ScriptedChat(scores={"fell": AssertionError("an estimate must not ask")})
    estimate = EvidenceReranker(llm_backend(unasked), budget=budget).estimate(JOBS)
    total = estimate.total_usage
    assert total.calls > 1
    assert estimate.cost == pytest.approx(
        (2 * total.input_tokens + 10 * total.output_tokens) / 1_000_000
    )


def test_the_local_backend_costs_nothing():
    estimate = EvidenceReranker("local").estimate(JOBS)
    assert estimate.total_usage.calls == 0
    assert estimate.tokens_known


def test_roles_of_ones_own_are_not_asked_and_count_calls_alone():
    role = RunnableLambda(never)
    own = Backend(name="own", intent=role, judge=role, summarizer=role, answerer=role)
    estimate = EvidenceReranker(own, answer=True).estimate(JOBS)
    assert calls(estimate) == {"intent": 2, "score": 4, "summarize": 4, "answer": 2}
    assert not estimate.tokens_known


def test_of_mixed_roles_only_those_that_ask_are_counted():
    llm, local = llm_backend(ScriptedChat(scores={})), local_backend()
    mixed = mixed_backend(intent=local, judge=local, summarizer=llm)
    assert EvidenceReranker(mixed).estimate(JOBS).total_usage.calls == 4


def test_a_screen_is_counted_as_if_it_let_everything_through():
    screened = screened_backend(local_backend(), llm_backend(ScriptedChat(scores={})), floor=0.9)
    assert calls(EvidenceReranker(screened).estimate(JOBS))["score"] == 4


def test_a_blank_question_cannot_be_estimated():
    with pytest.raises(InputError, match="question must not be empty"):
        EvidenceReranker("local").estimate([(" ", ["a"])])
