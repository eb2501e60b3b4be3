"""What a backend says of itself: whether it asks a chat model, and who reads the question."""

import pytest
from langchain_core.runnables import RunnableLambda

from deepera_graph import (
    Backend,
    EvidenceReranker,
    cascade_backend,
    encoder_backend,
    llm_backend,
    load_backend,
    mixed_backend,
    screened_backend,
)
from deepera_graph.judges import NAMED
from deepera_graph.testing import ScriptedChat, scripted_backend
from support.own_judges import overlap_backend, silent_backend

JOBS = [("Does tea cool?", ["Tea cools.", "Cups are round."])]


class GivenScores:
    """A cross-encoder of one's own."""

    def predict(self, pairs):
        return [0.5 for _ in pairs]


def llm():
    return llm_backend(ScriptedChat(scores={}))


@pytest.mark.parametrize("name", NAMED)
def test_a_judge_that_has_a_name_asks_no_model(name):
    backend = load_backend(name)
    assert not backend.asks_model
    assert backend.reads_by_rules


def test_a_chat_model_asks_and_reads_by_itself():
    assert llm().asks_model
    assert not llm().reads_by_rules


@pytest.mark.parametrize(
    ("make", "asks", "reads"),
    [
        (lambda a, b: cascade_backend(a, b, 3), True, False),
        (screened_backend, True, False),
        (lambda a, b: cascade_backend(a, a, 3), False, True),
        (lambda a, b: mixed_backend(intent=a, judge=a, summarizer=b), True, True),
        (lambda a, b: mixed_backend(intent=b, judge=a, summarizer=a), True, False),
    ],
)
def test_a_backend_of_several_asks_if_one_of_its_roles_does(make, asks, reads):
    backend = make(load_backend("rules"), llm())
    assert (backend.asks_model, backend.reads_by_rules) == (asks, reads)


def test_roles_that_do_not_say_are_taken_to_ask():
    role = RunnableLambda(lambda task: None)
    assert Backend(name="own", intent=role, judge=role, summarizer=role).asks_model
    assert silent_backend().asks_model
    assert not overlap_backend().asks_model
    assert overlap_backend().reads_by_rules
    assert not scripted_backend({}).reads_by_rules


def test_an_estimate_counts_no_call_of_a_judge_that_asks_no_model():
    told = EvidenceReranker(overlap_backend()).estimate(JOBS)
    assert (told.total_usage.calls, told.tokens_known) == (0, True)
    silent = EvidenceReranker(silent_backend()).estimate(JOBS)
    assert (silent.total_usage.calls, silent.tokens_known) == (1, False)


def test_a_result_says_who_read_the_question_and_is_read_back():
    by_rules = EvidenceReranker("rules").rerank(*JOBS[0])
    assert by_rules.reads_by_rules
    assert type(by_rules).from_dict(by_rules.to_dict()).reads_by_rules
    assert "intent:" not in by_rules._repr_html_()
    by_model = EvidenceReranker(llm_backend(ScriptedChat(scores={"Tea": 0.9}))).rerank(*JOBS[0])
    assert not by_model.reads_by_rules
    assert "intent:" in by_model._repr_html_()


def test_an_encoder_that_is_an_object_may_ask_a_server():
    assert encoder_backend(GivenScores(), scale="probability").asks_model
