"""Answers without a model: yes or no, names and numbers, sentences."""

import gzip
import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deepera_graph.bioasq.phase_b import WEIGHTS
from deepera_graph.bioasq.phase_b.answer import TypedAnswerer
from deepera_graph.bioasq.phase_b.extract import (
    extract_exact,
    extract_ideal,
    probability_of_yes,
    rank_sentences,
    trim,
)
from deepera_graph.bioasq.phase_b.terms import Term, choose_names, find_terms, synonyms_in
from deepera_graph.bioasq.questions import parse_question
from support.bioasq import SHARED
from support.bioasq_answers import ALL, asked

YES_OR_NO = [
    ("Does wax coating lower weight loss?", "Wax coating lowered weight loss by 30%.", "yes"),
    ("Does wax coating lower weight loss?", "Wax coating did not change weight loss.", "no"),
    (
        "Is celalol superior to placebo in asthma?",
        "Attacks did not differ between celalol and placebo (p = 0.64).",
        "no",
    ),
    (
        "Is celalol effective in asthma?",
        "Celalol was effective: attacks fell significantly (p < 0.001).",
        "yes",
    ),
    (
        "Is serum zirin associated with mortality?",
        "Serum zirin was significantly associated with mortality (HR 2.1, p = 0.002).",
        "yes",
    ),
    (
        "Is serum zirin associated with mortality?",
        "There was no significant association between serum zirin and mortality.",
        "no",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("question", "snippet", "answer"), YES_OR_NO)
def test_yes_or_no_follows_a_plain_finding(question, snippet, answer):
    assert (probability_of_yes(question, [snippet]) >= 0.5) == (answer == "yes")


@pytest.mark.full
@given(
    question=st.text(max_size=80), snippets=st.lists(st.text(max_size=200), min_size=1, max_size=4)
)
def test_any_text_has_a_probability(question, snippets):
    assert 0 < probability_of_yes(question, snippets) < 1


TERMS = [
    ("Which enzyme does tea inhibit?", ["Tea inhibited the helicase ZIR3."], "helicase ZIR3"),
    ("How many genes has the virus?", ["It was found in 1990.", "It has 11 genes."], "11"),
    (
        "What is the half-life of celalol?",
        ["Celalol was given to 12 men.",
            "The half-life of celalol is 14 hours.",
            "Celalol has a half-life of 14 hours.",],
        "14 hours",
    ),
    ("When was celalol approved?", ["Celalol was approved in 2011 for 40 mg a day."], "2011"),
    (
        "Which gene is mutated in Moss syndrome?",
        ["Moss syndrome is caused by mutations of MSS1.", "Mutated MSS1 was found in all."],
        "MSS1",
    ),
    (
        "Which drug is the antidote of celalol?",
        ["Celalol poisoning was treated with zirizumab.", "The antidote of celalol is zirizumab."],
        "zirizumab",
    ),
    ("Which chromosome holds the gene MSS1?", ["MSS1 lies on chromosome 17."], "chromosome 17"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "snippets", "answer"), TERMS)
def test_the_best_term_is_of_the_kind_that_is_asked_for(question, snippets, answer):
    assert find_terms(question, snippets)[0].text == answer


def test_a_term_that_more_snippets_have_is_better():
    texts = ["Moss syndrome is linked to MSS1.", "Moss syndrome is linked to RAX2."]
    more = [*texts, "In Moss syndrome RAX2 was lost."]
    assert find_terms("Which gene is linked to Moss syndrome?", more)[0].text == "RAX2"


def test_a_name_is_written_as_most_snippets_write_it():
    texts = ["Moss is bound by RAX kinase.", "RAX Kinase binds moss.", "RAX Kinase is free."]
    found = [one.text for one in find_terms("What binds moss?", texts)]
    assert "RAX Kinase" in found
    assert "RAX kinase" not in found


def test_no_name_goes_on_over_the_end_of_a_sentence():
    found = find_terms("Which gene is lost?", ["It was RAX2. MSS1 was not."])
    assert sorted(one.text for one in found) == ["MSS1", "RAX2"]


def test_words_of_the_question_and_general_words_are_no_terms():
    found = find_terms("Which drug lowers fever?", ["The drug lowers fever in most patients."])
    assert found == []


def test_what_is_listed_alike_is_in_the_list():
    [_, _, effects, _] = ALL
    found = TypedAnswerer().answer(effects)
    assert set(found.exact) == {("ankle swelling",), ("muscle cramps",)}


def test_what_stands_in_a_series_is_listed_together():
    texts = [
        "Brandt fever is treated with dorixil, mevacort and tolupine.",
        "Dorixil, tolupine and mevacort were given for Brandt fever.",
    ]
    task = {
        "type": "list",
        "question": "Which drugs treat Brandt fever?",
        "snippets": texts,
        "exact": None,
    }
    assert sorted(one.lower() for one in extract_exact(task).names) == [
        "dorixil",
        "mevacort",
        "tolupine",
    ]


def test_a_short_form_is_not_listed_beside_its_long_form():
    texts = ["Moss activates tumour growth factor (TGF).", "TGF was activated by moss."]
    assert synonyms_in(texts) == {"TGF": "tumour growth factor"}
    found = extract_exact(
        {
            "type": "list",
            "question": "Which factors does moss activate?",
            "snippets": texts,
            "exact": None,
        }
    )
    assert not {"TGF", "tumour growth factor"} <= set(found.names)


def test_a_factoid_has_at_most_five_names_and_no_status_of_a_model():
    texts = [f"Celalol inhibited the kinase QRX{n} of yeast." for n in range(9)]
    found = TypedAnswerer().answer(asked("factoid", texts=texts))
    assert len(found.exact) == 5
    assert found.exact_status == found.ideal_status == found.outcome == "extracted"
    assert found.total_usage.calls == 0
    assert found.manifest["backend"] == "extractive"


def test_nothing_of_the_kind_asked_for_is_told():
    found = TypedAnswerer().answer(asked("factoid", texts=["It was not known which."]))
    assert found.exact is None
    assert found.outcome == "failed"
    assert found.problems == ("exact: the snippets name nothing of the kind asked for",)


def test_an_ideal_answer_says_yes_or_no_and_then_a_finding():
    found = extract_ideal(
        {
            "type": "yesno",
            "question": "Does wax coating lower weight loss of apples?",
            "snippets": [
                "Apples were stored for 60 days.",
                "Wax coating lowered weight loss of apples by 30% (p < 0.01).",
            ],
            "exact": ["yes"],
        }
    )  # fmt: skip
    assert found.text == "Yes. Wax coating lowered weight loss of apples by 30%."


def test_an_ideal_answer_of_a_factoid_has_the_sentence_that_names_it():
    found = extract_ideal(
        {
            "type": "factoid",
            "question": "Which enzyme does celalol inhibit?",
            "snippets": ["Celalol is given to mice and men.", "It blocks helicase ZIR3 at once."],
            "exact": ["helicase ZIR3"],
        }
    )  # fmt: skip
    assert "helicase ZIR3" in found.text


@pytest.mark.parametrize(
    ("sentence", "bare"),
    [
        ("RESULTS: Pain fell (71% vs 61%; P<0.05).", "Pain fell."),
        ("Pain fell, P = .03, in men [3, 4].", "Pain fell, in men."),
        ("IL-6 (a cytokine) fell.", "IL-6 (a cytokine) fell."),
        ("However, our results showed that pain fell in most men.", "Pain fell in most men."),
        ("In multivariate analysis, pain fell in most men.", "Pain fell in most men."),
        (
            "Pain and fever fell by 2 and 3 points, respectively.",
            "Pain and fever fell by 2 and 3 points.",
        ),
        (
            "The aim of this study was to assess whether tea helps.",
            "The study assessed whether tea helps.",
        ),
        ("To compare tea with milk in men.", "The study compared tea with milk in men."),
        ("We sought to further evaluate tea.", "The study evaluated tea."),
    ],
)
def test_statistics_in_brackets_are_left_out_of_a_sentence(sentence, bare):
    assert trim(sentence) == bare


def test_a_sentence_that_is_repeated_is_weighed_once():
    ranked = rank_sentences(
        "Does tea help sleep?", ["Tea did help sleep.", "Tea did help sleep. It was green tea."]
    )
    in_order = sorted(ranked, key=lambda one: one.place)
    assert [one.text for one in in_order] == ["Tea did help sleep.", "It was green tea."]


def test_the_chosen_sentences_stand_in_the_order_of_the_snippets():
    texts = [f"Celalol lowered the pressure of vessel {n} in mice." for n in range(9)]
    question = "What does celalol do to the pressure of vessels?"
    task = {"type": "summary", "question": question, "snippets": texts, "exact": None}
    said = extract_ideal(task).text
    chosen = [one for one in texts if one in said]
    assert len(chosen) == 4
    assert " ".join(chosen) == said


def test_the_same_snippets_give_the_same_answers():
    first, again = (TypedAnswerer().batch(ALL) for _ in range(2))
    assert [(one.exact, one.ideal) for one in first] == [(one.exact, one.ideal) for one in again]


def test_the_weights_say_what_they_reach_on_years_they_were_not_fitted_on():
    record = json.loads(WEIGHTS.read_text(encoding="utf-8"))["cross_validated"]
    reached, one_sentence = record["all"], record["first_sentence"]
    assert reached["yesno_macro_f1"] >= 0.72
    assert reached["factoid_mrr"] >= 0.28
    assert reached["list_f1"] >= 0.32
    for simple in (one_sentence, record["first_snippets"]):
        assert reached["ideal_rouge-su4_f1"] > simple["ideal_rouge-su4_f1"]
    assert reached["ideal_rouge-su4_recall"] > one_sentence["ideal_rouge-su4_recall"]


@pytest.mark.full
@given(
    question=st.text(max_size=80), snippets=st.lists(st.text(max_size=200), min_size=1, max_size=4)
)
@example(question="", snippets=["0_"])
def test_any_text_has_names_once_each_the_best_first(question, snippets):
    found = find_terms(question, snippets)
    names = [" ".join(one.text.lower().split()) for one in found]
    assert len({*names}) == len(names)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert all(math.isfinite(one.score) for one in found)


def test_names_of_a_list_are_no_parts_of_one_another():
    terms = [Term(3.0, "helicase ZIR3"), Term(2.9, "ZIR3"), Term(2.0, "kinase QRX1")]
    assert choose_names("list", terms, []) == ["helicase ZIR3", "kinase QRX1"]
    assert choose_names("factoid", terms, []) == ["helicase ZIR3", "ZIR3", "kinase QRX1"]


def test_a_list_ends_where_names_are_much_less_likely_than_the_best():
    terms = [Term(3.0, "dorixil"), Term(0.0, "mevatine"), Term(-0.1, "tolupine")]
    assert choose_names("list", terms, []) == ["dorixil", "mevatine"]


@pytest.mark.full
@pytest.mark.skipif(not SHARED.exists(), reason="the shared data is not here")
def test_the_shipped_weights_are_used_for_golden_questions():
    """What is reached on questions they were fitted on; the record has what is cross-validated."""
    files = sorted((SHARED / "bioasq" / "golden").glob("*_golden.json*"))
    read = (json.loads(gzip.decompress(path.read_bytes())) for path in files)
    questions = [parse_question(one) for each in read for one in each["questions"]][:150]
    asked_yes_no = [one for one in questions if one.type == "yesno"]
    found = TypedAnswerer().batch(asked_yes_no)
    right = [one.exact == one.question.exact_answer for one in found]
    assert sum(right) / len(right) > 0.8
