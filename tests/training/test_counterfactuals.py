"""Lessons in which what a question asks about gives way to something near it."""

import re
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph.lab.training.lessons.counterfactuals import (
    find_runs,
    find_words,
    put,
    teach_counterfactuals,
)
from deepera_graph.lab.training.lessons.groups import Lesson

pytestmark = pytest.mark.full

NAMES = ["".join(one) for one in product("bdgklm", "aeiou", "nrst", ("ite", "ane"))]


def embed(terms):
    """Vectors that differ a little, the same ones for the same terms."""
    found = np.array([[len(term), *map(ord, term.ljust(40)[:40])] for term in terms], np.float64)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def ask(name):
    question = f"Can salt harm the {name} of harbours?"
    return (
        Lesson(question, f"{name.title()} lost 2% of its weight near harbours.", 1, (0,)),
        Lesson(question, f"We weighed sheets of {name}.", 0),
        Lesson(question, f"Whether salt does {name} harm is not known.", 0),
    )


GROUPS = [ask(name) for name in NAMES]


@pytest.mark.parametrize(
    ("question", "runs"),
    [
        (
            "Does aspirin reduce colorectal cancer in women?",
            ["aspirin", "colorectal cancer", "women"],
        ),
        ("How does IL-6 affect bone mass?", ["IL-6", "bone mass"]),
        ("What is it, and why?", []),
    ],
)
def test_terms_are_runs_of_words_that_name_something(question, runs):
    assert [question[start:end] for start, end in find_runs(question)] == runs
    for start, end in find_words(question):
        assert " " not in question[start:end]


def test_a_term_gives_way_wherever_it_stands_as_a_whole():
    assert put("Copper, not coppery; copper.", "copper", "tin") == "Tin, not coppery; tin."


def test_both_changed_it_answers_and_one_changed_it_does_not():
    found = list(teach_counterfactuals(GROUPS, embed, Random(1), share=1.0))
    assert len(found) == 2 * len(GROUPS)
    for group in found:
        assert len({one.question for one in group}) == 1
        [asked] = find_names(group[0].question)
        ends = [one for one in group if " lost " in one.text]
        assert {find_names(one.text)[0] == asked for one in ends} == {True, False}
        for one in ends:
            assert one.label == (find_names(one.text) == [asked])
        assert not any(one.label for one in group if one not in ends)


def find_names(text):
    return [word for word in re.findall(r"\w+", text.lower()) if word in NAMES]


@given(st.integers(0, 99))
def test_the_same_chance_gives_the_same_lessons(seed):
    first, second = (list(teach_counterfactuals(GROUPS, embed, Random(seed))) for _ in "ab")
    assert first == second


def test_a_question_without_evidence_or_terms_teaches_nothing():
    bare = [tuple(one for one in group if not one.label) for group in GROUPS]
    nameless = [(Lesson("Why is it so?", "It is.", 1), Lesson("Why is it so?", "Is it?", 0))]
    assert list(teach_counterfactuals([*bare, *nameless], embed, Random(0), share=1.0)) == []
