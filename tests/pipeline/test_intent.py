"""The guard in front of every intent."""

import pytest

from deepera_graph import EvidenceReranker, Usage
from deepera_graph.errors import AnswerError
from deepera_graph.pipeline.intent import UNKNOWN, find_problem
from deepera_graph.testing import an_intent, scripted_backend

QUESTION = "Does green tea lower fasting glucose in adults?"
COST = Usage(1, 10, 2)
USELESS = an_intent(QUESTION, entity_type="planet: Mars", usage=COST)
GOOD = an_intent(QUESTION, usage=COST)


def asked(*answers):
    """Rerank with an intent role that gives these answers, one after the other."""
    left = list(answers)
    backend = scripted_backend({"p": 0.9}, intent=lambda task: left.pop(0))
    result = EvidenceReranker(backend, content="passage").rerank(QUESTION, ["p"])
    return result, backend


@pytest.mark.parametrize(
    "changes",
    [
        {"topic": ""},
        {"topic": "  "},
        {"topic": "N/A"},
        {"topic": "Unknown"},
        {"topic": "--"},
        {"entity_type": ""},
        {"entity_type": "kind: name"},
        {"entity_type": "none"},
        {"entity_type": "planet: Mars"},
        {"entity_type": "in: the"},
        {"topic": "scientific research"},
        {"topic": "Science"},
    ],
)
def test_an_empty_or_foreign_intent_is_a_problem(changes):
    assert find_problem(QUESTION, an_intent(QUESTION, **changes))


@pytest.mark.parametrize(
    ("question", "entities"),
    [
        (QUESTION, "drink: green tea; marker: Fasting Glucose"),
        (QUESTION, "population: adult"),
        ("How do lymphocytes mature?", "cell type: lymphocyte"),
        ("Does TGF-β matter?", "protein: TGF-β"),
        ("二甲双胍能治疗糖尿病吗？", "疾病: 糖尿病"),
        ("Wirkt Metformin bei Übergewicht?", "Zustand: übergewicht"),
    ],
)
def test_entities_of_the_question_are_no_problem(question, entities):
    assert find_problem(question, an_intent(question, entity_type=entities)) == ""


@pytest.mark.parametrize(
    ("question", "entities", "named"),
    [
        ("Does metformin lower the risk of cancer in patients?", "population: patients; risk",
         "metformin"),
        ("What is the effect of liming on trout?", "relation: effect", "liming, trout"),
        ("Which treatment of scurvy works?", "intervention: treatment", "scurvy"),
    ],
)  # fmt: skip
def test_entities_that_fit_any_question_are_a_problem(question, entities, named):
    problem = find_problem(question, an_intent(question, entity_type=entities))
    assert problem == f"entity_type is too general: {entities!r} names none of {named}"


@pytest.mark.parametrize(
    ("question", "entities"),
    [
        ("Does treatment change the risk for patients?", "population: patients"),
        ("Does metformin lower the risk of cancer in patients?", "drug: metformin"),
    ],
)
def test_common_words_do_where_the_question_has_no_others_or_one_is_named(question, entities):
    assert find_problem(question, an_intent(question, entity_type=entities)) == ""


def test_a_good_intent_is_asked_for_once():
    result, backend = asked(GOOD)
    assert backend.intent.calls == 1
    assert (result.intent["status"], result.intent["cause"]) == ("recognised", "")
    assert result.usage["intent"] == COST


def test_a_useless_intent_is_repaired_once_and_both_calls_count():
    result, backend = asked(USELESS, GOOD)
    first, second = backend.intent.tasks
    assert first == {"question": QUESTION, "problem": ""}
    assert second["question"] == QUESTION
    assert "planet: Mars" in second["problem"]
    assert result.intent["status"] == "repaired"
    assert result.usage["intent"] == COST + COST


def test_a_second_useless_intent_falls_back_to_the_question_and_is_flagged():
    result, backend = asked(USELESS, USELESS)
    assert backend.intent.calls == 2
    assert result.intent["fields"] == UNKNOWN
    assert result.intent["status"] == "fallback"
    assert "planet: Mars" in result.intent["cause"]
    assert result.usage["intent"] == COST + COST
    assert backend.judge.tasks[0]["intent"] == UNKNOWN
    assert [one.id for one in result.kept] == ["1"]


def test_a_failed_repair_costs_what_both_calls_cost():
    result, _ = asked(USELESS, AnswerError("no intent", usage=COST))
    assert result.intent["status"] == "fallback"
    assert result.usage["intent"] == COST + COST


def test_an_intent_that_cannot_be_had_does_not_stop_the_run():
    result, backend = asked(ConnectionError("no route"))
    assert backend.intent.calls == 1
    assert result.intent == {
        "fields": UNKNOWN, "status": "fallback", "cause": "ConnectionError: no route",
    }  # fmt: skip
    assert len(result.kept) == 1


def test_an_intent_that_the_role_repaired_itself_is_flagged():
    result, _ = asked(GOOD.model_copy(update={"repaired": True}))
    assert result.intent["status"] == "repaired"


async def test_the_guard_works_in_the_running_loop():
    for answers, status in [([USELESS, GOOD], "repaired"), ([USELESS, USELESS], "fallback")]:
        backend = scripted_backend({"p": 0.9}, intent=lambda task, left=answers: left.pop(0))
        result = await EvidenceReranker(backend, content="passage").arerank(QUESTION, ["p"])
        assert result.intent["status"] == status
        assert result.usage["intent"] == COST + COST


async def test_a_failed_repair_costs_the_same_in_the_running_loop():
    left = [USELESS, AnswerError("no intent", usage=COST)]
    backend = scripted_backend({"p": 0.9}, intent=lambda task: left.pop(0))
    result = await EvidenceReranker(backend, content="passage").arerank(QUESTION, ["p"])
    assert result.usage["intent"] == COST + COST
