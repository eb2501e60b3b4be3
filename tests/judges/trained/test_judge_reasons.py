"""Reasons of the local judge say what anybody can check."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph.judges.heuristic.analysis import (
    explain_quote,
    find_words,
    list_signs,
    read_sentences,
)
from deepera_graph.judges.trained import local_model
from deepera_graph.pipeline.intent import UNKNOWN
from deepera_graph.text.words import stem, stems

QUESTION = "Does wax coating keep apples firm in storage?"
FORMS = """
wax waxed coating coats keep kept apples apple firm firmness storage stored moss does
"""
texts = st.lists(st.sampled_from(FORMS.split()), max_size=8).map(" ".join)


def window(text, title=""):
    return {"text": text, "title": title, "section": ""}


@pytest.mark.full
@given(texts, texts)
def test_what_is_had_occurs_and_what_is_lacked_does_not(question, text):
    has, lacks = find_words(question, text)
    assert {stem(one) for one in has} <= {*stems(text)}
    assert not {stem(one) for one in lacks} & {*stems(text)}
    assert not any(re.search(rf"\b{one[:4]}", text) for one in lacks)
    assert {*has, *lacks} <= {*question.split()}


@pytest.mark.parametrize(
    ("text", "quote", "told"),
    [
        (
            "Wax coating kept apples firm: 6% fewer were lost (p = 0.01).",
            "Wax coating kept apples firm: 6% fewer were lost (p = 0.01).",
            "has wax, coating, apples, firm; lacks storage; quote states a result: ",
        ),
        (
            "Moss will be measured.",
            "Moss will be measured.",
            "lacks coating, apples, storage; quote has no number",
        ),
        (
            "To determine whether wax keeps apples firm.",
            "To determine whether wax keeps apples firm.",
            "has wax, keep, apples, firm; lacks coating, storage; quote reads like an aim",
        ),
        ("Apples in storage.", "", "has apples, storage; lacks coating"),
    ],
)
def test_a_reason_names_words_and_how_the_quote_reads(text, quote, told):
    assert explain_quote(QUESTION, window(text), quote).startswith(told)


@pytest.mark.parametrize(
    ("quote", "told"),
    [
        ("Contrary to our hypothesis, wax worsened the firmness of apples.", "has 'worsened'"),
        ("As hypothesized, wax lowered losses of apples.", "has 'lowered'"),
        ("The hypothesis that wax lowers losses was confirmed.", "has 'confirmed'"),
        ("Wasps took 2 to 5 times longer to find waxed apples.", "has 'longer'"),
        ("Pickers were faster to identify waxed apples.", "has 'faster'"),
        ("Our hypothesis is that wax lowers losses.", "reads like an aim"),
        ("We hypothesized that wax lowered losses.", "reads like an aim"),
        ("To confirm the hypothesis, we waxed apples.", "reads like an aim"),
        ("Longer storage was used to find what wax does.", "reads like an aim"),
    ],
)
def test_a_result_that_speaks_of_a_plan_does_not_read_like_an_aim(quote, told):
    assert explain_quote(QUESTION, window(quote), quote).endswith(f"quote {told}")


COFFEE = "Coffee increased alertness in 40 students by 12% and shortened colds."


@pytest.mark.parametrize(
    ("question", "text", "lacking"),
    [
        ("Does tea change alertness?", COFFEE, ["tea"]),
        ("Does yoga change alertness?", COFFEE, ["yoga"]),
        ("Does zinc shorten colds?", COFFEE, ["zinc"]),
        ("Does salt raise blood pressure?", "Sugar raised blood pressure.", ["salt"]),
        ("Does eating fish protect the heart?", "Eating nuts protected the heart.", ["fish"]),
        ("Does salt raise blood pressure?", "Salty food raised blood pressure.", []),
        ("Does fish protect the heart?", "Fishes protected the heart.", []),
        ("Does tea aid or harm alertness?", "Tea changed alertness.", []),
        ("Does tea keep alertness high?", "Tea changed alertness.", []),
        ("Does the new drug cut pain?", "Aspirin changed pain.", []),
    ],
)
def test_a_short_word_is_lacking_only_where_it_is_the_name_of_something(question, text, lacking):
    assert find_words(question, text)[1] == lacking


def test_the_level_of_an_interval_is_no_result():
    quote = "Wax coating kept apples firm (difference 3 N, 95% CI 1 to 5)."
    told = explain_quote(QUESTION, window(quote), quote)
    assert told.endswith("quote states a result: 'difference'")


@pytest.mark.parametrize(
    ("quote", "told"),
    [
        ("A 10% increase in wages reduced hours by 1.5%.", "'reduced', 1.5%"),
        ("Each 5% rise in humidity was associated with 12% more rot.", "'associated', 12%"),
        ("A 12% decrease in rot was seen (p = 0.02).", "'decrease', 12%"),
        ("We found no effect of wage increases on hours (p = 0.4).", "'found', p = 0.4"),
        ("Rot developed in 8.2% of apples and in 14% of 50 controls.", "'developed', 8.2%"),
        ("Of waxed apples 8.2% rotted, compared with 14% of 50 controls (RR 0.56).", "8.2%"),
    ],
)
def test_the_word_and_number_of_a_result_are_of_what_was_found(quote, told):
    signs = list_signs(read_sentences(quote, "result")[0])
    assert ", ".join(signs) == told


def test_what_controls_an_outcome_is_a_result():
    assert list_signs(read_sentences("Ethylene controls ripening.", "result")[0]) == ["'controls'"]


@pytest.mark.parametrize(
    ("quote", "number"),
    [
        ("In farms with more than 20% forest wax made a difference (p = 0.02).", "p = 0.02"),
        ("A difference was associated with 12% rot (p = 0.02).", "12%"),
        ("A difference was associated with over 12% rot (p = 0.02).", "12%"),
        ("A difference of more than 20% was seen (p = 0.02).", "20%"),
        ("A difference came with storage: 12% (p = 0.02).", "12%"),
    ],
)
def test_a_share_that_tells_of_what_a_sentence_speaks_is_no_result(quote, number):
    told = explain_quote(QUESTION, window(quote), quote)
    assert told.endswith(f"quote states a result: 'difference', {number}")
    alone = "In farms with over 20% forest wax made a difference."
    assert explain_quote(QUESTION, window(alone), alone).endswith("quote has 'difference'")


def test_of_many_words_the_first_are_named():
    question = "Do oak, beech, maple, birch, larch or alder seeds float?"
    told = explain_quote(question, window("Oak, beech, maple, birch, larch and alder."), "")
    assert told.startswith("has oak, beech, maple, birch and 2 more")


def test_an_abbreviation_is_not_lacking():
    has, lacks = find_words("Does aspirin prevent myocardial infarction?", "Aspirin and MI.")
    assert (has, "infarction" in lacks, "myocardial" in lacks) == (["aspirin"], False, False)


def test_the_judge_gives_such_a_reason_and_no_number_of_its_own():
    text = "Wax coating kept apples firm in storage: firmness fell by 6%."
    [found] = local_model().judge(QUESTION, UNKNOWN, [window(text)])
    assert found.reason == explain_quote(QUESTION, window(text), found.quote)
    assert "(0." not in found.reason


def test_a_short_claim_is_judged_as_the_question_that_it_answers():
    claim, asked = (
        "Wax coating lowers loss of firmness.",
        "Does wax coating lower loss of firmness?",
    )
    given = [window("Wax coating lowered loss of firmness by 6%."), window("Apples were stored.")]
    assert local_model().judge(claim, UNKNOWN, given) == local_model().judge(asked, UNKNOWN, given)
