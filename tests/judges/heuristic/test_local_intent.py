from typing import get_args

import pytest

from deepera_graph.judges.heuristic.roles import guess_kind, recognize_intent
from deepera_graph.pipeline.intent import find_problem
from deepera_graph.schema import AnswerType, IntentKind


def intent(question):
    return recognize_intent({"question": question, "problem": ""})


@pytest.mark.parametrize(
    ("question", "kind", "answer"),
    [
        ("Does shade reduce rust?", "causal inference", "categorical"),
        ("How does ozone damage leaves?", "mechanism", "descriptive"),
        ("Why do stars twinkle?", "mechanism", "descriptive"),
        ("Is copper better than zinc?", "comparison", "categorical"),
        ("What is the role of calcium in moulting?", "functional role", "descriptive"),
        ("What is a moraine?", "definition", "descriptive"),
        ("How many moons has Saturn?", "other", "numeric"),
        ("What is the melting temperature of gallium?", "other", "numeric"),
        ("How can sulphate be measured in snow?", "other", "procedural"),
        ("Rye or vetch: which leaches less?", "comparison", "categorical"),
        ("By what mechanism does salt lower the yield?", "mechanism", "descriptive"),
        ("When is a soil called sodic?", "definition", "categorical"),
        ("How likely is a knot?", "other", "numeric"),
        ("They parsed trees with charts (Moss, 1999).", "other", "procedural"),
        ("Rust and shade", "other", "other"),
    ],
)
def test_kind_and_answer_form(question, kind, answer):
    found = intent(question)
    assert (found.intent, found.expected_answer_type) == (kind, answer)


QUESTION_OF = {
    "definition": "What is a moraine?",
    "mechanism": "Why do stars twinkle?",
    "comparison": "Is copper better than zinc?",
    "causal inference": "Does shade reduce rust?",
    "functional role": "What is the role of calcium in moulting?",
    "other": "Rust and shade",
}
QUESTION_FOR = {
    "numeric": "How many moons has Saturn?",
    "categorical": "Does shade reduce rust?",
    "procedural": "How can sulphate be measured in snow?",
    "descriptive": "What is a moraine?",
    "other": "Rust and shade",
}


@pytest.mark.parametrize("kind", get_args(IntentKind))
def test_the_rules_find_every_intent_class_of_the_schema(kind):
    assert intent(QUESTION_OF[kind]).intent == kind


@pytest.mark.parametrize("answer", get_args(AnswerType))
def test_the_rules_find_every_answer_type_of_the_schema(answer):
    assert intent(QUESTION_FOR[answer]).expected_answer_type == answer


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("Does aspirin prevent stroke in patients?", "medicine"),
        ("Which gene encodes the enzyme?", "molecular and cell biology"),
        ("Why do galaxies rotate?", "astronomy"),
        ("Does syntactic parsing help translation?", "linguistics"),
        ("Is nephrectomy safe?", "medicine"),
        ("Does tranexamic acid help in hip replacement?", "medicine"),
        ("Do tariffs raise consumer prices?", "economics and social science"),
        ("When did it start?", "natural sciences"),
    ],
)
def test_topic(question, topic):
    assert intent(question).topic == topic


def test_entities_are_runs_of_the_questions_own_words_with_their_kind():
    found = intent("Does nightly ventilation reduce asthma in school children?").entity_type
    assert found == "process: nightly ventilation; disease: asthma; population: school children"


@pytest.mark.parametrize(
    ("question", "entities"),
    [
        (
            "Does intravenous tranexamic acid given before hip replacement save blood?",
            "material: intravenous tranexamic acid; procedure: hip replacement; concept: blood",
        ),
        (
            "How does bend radius affect mode content?",
            "quantity: bend radius; quantity: mode content",
        ),
        (
            "How far has the line of Ross Glacier moved inland?",
            "earth system: Ross Glacier",
        ),
        ("Does 40 mg simvastatin lower mortality?", "drug: simvastatin; quantity: mortality"),
        (
            "Do lagoons quench algal blooms?",  # no listed verb: a plural and a word that is none
            "concept: lagoons; concept: algal blooms",
        ),
        (
            "Does drought stress increase leaf abscission?",
            "concept: drought stress; process: leaf abscission",
        ),
        (
            "How many storm surges hit the delta each winter?",
            "concept: storm surges; concept: delta",
        ),
        (
            "What share of the nitrate load reaches the estuary?",
            "quantity: nitrate load; concept: estuary",
        ),
        (
            "Does water that seeps through cracks loosen basalt columns?",
            "concept: water; concept: cracks; concept: basalt columns",
        ),
    ],
)
def test_a_name_ends_before_a_verb_a_participle_and_an_adverb(question, entities):
    assert intent(question).entity_type == entities


@pytest.mark.parametrize(
    ("question", "entities"),
    [
        (
            "Does metformin help in type 2 diabetes?",
            "drug: metformin; disease: type 2 diabetes",
        ),
        (
            "Does moss survive 600 MPa at 30 °C under hypolimnion water?",
            "concept: moss; concept: hypolimnion water",
        ),
        (
            "How do heat stress effects on broilers arise?",
            "concept: heat stress; species: broilers",
        ),
        (
            "What is the residence time in the reactor?",
            "quantity: residence time; concept: reactor",
        ),
        ("Are reed beds resilient?", "concept: reed beds"),
        ("How fast is sediment transport?", "process: sediment transport"),
        ("Shade reduces rust in coffee", "concept: Shade; concept: rust; crop or food: coffee"),
    ],
)
def test_a_name_holds_its_number_and_no_unit_predicate_or_empty_word(question, entities):
    assert intent(question).entity_type == entities


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("adult mouse brain", "concept"),  # no rain
        ("sewage", "concept"),  # no wage
        ("slow release", "concept"),  # no enzyme
        ("polyphenol oxidase", "gene or protein"),
        ("protein 4", "gene or protein"),
    ],
)
def test_the_kind_of_a_name_is_read_from_its_last_word(name, kind):
    assert guess_kind(name) == kind


@pytest.mark.parametrize(
    "question",
    [
        "¿Por qué?",
        "氷はなぜ浮くのか",
        "x",
        "Why " + "so " * 500 + "cold?",
        "Ice?" * 300,
    ],
)
def test_no_field_is_ever_empty_and_the_guard_is_content(question):
    found = intent(question)
    assert all([found.topic, found.entity_type, found.intent, found.expected_answer_type])
    assert find_problem(question, found) == ""


@pytest.mark.parametrize("question", ["Does it?", "Is this what they do?", "?"])
def test_a_question_without_content_is_its_own_entity(question):
    assert intent(question).entity_type == f"concept: {question}"


def test_reading_costs_no_call():
    assert intent("Why?").usage.calls == 0
