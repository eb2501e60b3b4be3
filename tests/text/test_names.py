"""Names in texts and questions."""

import pytest

from deepera_graph.text.questions import (
    as_words,
    contains_words,
    find_names,
    question_names,
    without_brackets,
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("It was written by Ada Brook in Leeds.", ["Ada Brook", "Leeds"], id="two"),
        pytest.param("at the University of the West", ["University of the West"], id="links"),
        pytest.param("The Harbour opened. Its lamp failed.", ["Harbour"], id="openers"),
        pytest.param("born in Orsay, Marrow County", ["Orsay", "Marrow County"], id="comma"),
        pytest.param("J. M. Brook's house", ["J. M. Brook"], id="initials, possessive"),
        pytest.param("sold to Ora Ltd. Then Ida came", ["Ora Ltd", "Ida"], id="full stop"),
        pytest.param("the 1920 Summer Games", ["1920 Summer Games"], id="number in a name"),
        pytest.param("in 1920 and 1924", [], id="numbers alone"),
        pytest.param("Ångström met Émile Žižek", ["Ångström", "Émile Žižek"], id="not ASCII"),
        pytest.param("river of Brook", ["Brook"], id="a link does not open a name"),
        pytest.param("", [], id="nothing"),
        pytest.param("no name in here", [], id="none"),
    ],
)
def test_names_are_runs_of_words_with_capitals(text, names):
    found = list(find_names(text))
    assert [one.text for one in found] == names
    assert all(text[one.start :].startswith(one.text) for one in found)


def test_names_of_a_question_come_whole_and_in_parts_and_once():
    question = 'Who is older, Ida Brook or Max Orr, and who wrote "the last lamp" and Ida Brook?'
    names = ["Ida Brook or Max Orr", "Ida Brook", "Max Orr", "the last lamp"]
    assert question_names(question) == names


def test_a_title_with_a_preposition_is_one_name_of_a_question():
    assert question_names("Who directed Lost in Marl?") == ["Lost in Marl", "Lost", "Marl"]


def test_a_question_without_names_has_none():
    assert question_names("why do apples stay firm in 2020?") == []


@pytest.mark.parametrize(
    ("title", "bare"),
    [("Brand (play)", "Brand"), ("Brand", "Brand"), ("(sic)", "(sic)"), ("", "")],
)
def test_a_title_loses_what_tells_it_from_others_but_not_all(title, bare):
    assert without_brackets(title) == bare


def test_names_are_compared_without_case_marks_and_article():
    assert as_words("The Émile-Roy Works") == "emile roy works"
    assert contains_words("made by emile roy works", "emile roy")
    assert not contains_words("made by emile royal", "emile roy")
