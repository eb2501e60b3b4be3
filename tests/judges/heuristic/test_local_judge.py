import pytest

from deepera_graph.judges.heuristic.roles import judge
from deepera_graph.text.words import split_sentences
from deepera_graph.usage import Usage

QUESTION = "Does shade reduce leaf rust in coffee plants?"


@pytest.mark.parametrize("kind", ["aim", "methods", "background", "speculation", "elsewhere"])
def test_a_result_outranks_its_look_alikes(task, question, passages, kind):
    result = judge(task(question, passages["result"])).score
    assert judge(task(question, passages[kind])).score < min(result, 0.8)


def test_a_matching_result_reaches_the_default_threshold(task, question, passages):
    assert judge(task(question, passages["result"])).score >= 0.8


def test_the_reason_names_what_was_seen(task, question, passages):
    assert judge(task(question, passages["result"])).reason == (
        "states a result: 12%; names 6 of 6 question terms"
    )
    assert "an aim" in judge(task(question, passages["aim"])).reason


def test_the_quote_is_a_sentence_of_the_passage(task, question, passages):
    for text in passages.values():
        quote = judge(task(question, text)).quote
        assert quote in [sentence.text for sentence in split_sentences(text)]


def test_the_score_depends_on_nothing_but_the_task(task, question, passages):
    alone = judge(task(question, passages["result"]))
    for text in passages.values():
        judge(task(question, text))
    assert judge(task(question, passages["result"])) == alone


def test_a_section_label_moves_the_score(task, question, passages):
    text = passages["result"]
    scores = [
        judge(task(question, text, section=section)).score
        for section in ("Methods", "", "ABSTRACT.RESULTS")
    ]
    assert scores == sorted(scores)
    assert len(set(scores)) == 3


def test_a_title_helps_a_text_that_leaves_the_topic_unsaid(task, question):
    text = "Severity fell from 31% to 12% (p = 0.002)."
    titled = judge(task(question, text, title="Shade and leaf rust of coffee plants")).score
    assert titled > judge(task(question, text)).score


def test_an_entity_of_the_intent_counts_beside_the_question(task, question):
    text = "Under Inga trees 12% of the plants were diseased, against 31% in the open (p = 0.002)."
    known = judge(task(question, text, entity_type="organism: coffee; organism: Inga trees"))
    other = judge(task(question, text, entity_type="organism: coffee; organism: banana palms"))
    assert known.score > other.score


def test_a_definition_is_not_sought_among_results(task):
    question = "What is a glacier tongue?"
    defining = "A glacier tongue is a long strip of ice that reaches from a glacier out to sea."
    result = "The glacier tongue lost 12% of its ice (p = 0.01) and was 3 km shorter than before."
    intent = {"intent": "definition", "expected_answer_type": "descriptive"}
    assert judge(task(question, defining, **intent)).score > judge(task(question, defining)).score
    assert "read for a definition" in judge(task(question, result, **intent)).reason


def test_a_figure_is_missed_where_one_is_asked_for(task):
    question = "How many eggs do fulmars lay on shaded ledges?"
    text = "Fulmars laid fewer eggs on shaded ledges than in the sun."
    numeric = judge(task(question, text, expected_answer_type="numeric")).score
    assert numeric < judge(task(question, text)).score


@pytest.mark.parametrize("text", ["", " \n "])
def test_a_blank_text_scores_nothing(task, question, text):
    found = judge(task(question, text))
    assert (found.score, found.quote) == (0.0, "")
    assert found.reason


@pytest.mark.parametrize("question", ["?", "What is it?", "为什么?", "of the and"])
@pytest.mark.parametrize("text", ["12.5; 3.4", "!", "No words of the question.", "雪 2 m。"])
def test_odd_questions_and_texts_get_a_score_in_range(task, question, text):
    assert 0 <= judge(task(question, text)).score <= 1


def test_a_judgement_costs_no_call(task, question, passages):
    assert judge(task(question, passages["aim"])).usage == Usage()


@pytest.mark.full
def test_a_long_passage_is_judged_in_little_time(task, question, passages):
    import time

    text = " ".join(passages.values()) * 200
    before = time.process_time()
    judge(task(question, text))
    assert time.process_time() - before < 2
