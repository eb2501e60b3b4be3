"""A passage as it is seen: its text, and its title beside it."""

import re

import numpy as np
import pytest

from deepera_graph.judges.trained.features import match_passage, vectorize_passage
from deepera_graph.judges.trained.reading.vectors import Encoded

TEXT = "Leaf rust fell to 12 % in shade. Yields did not differ. Nobody asked the birds."
INTENT = {"topic": "", "entity_type": "", "intent": "other", "expected_answer_type": "other"}
NOWHERE = (0, 0)


def encoded(text, *, break_after=None, seed=0):
    """Words with random vectors between marks, which a long text also has within."""
    places = [match.span() for match in re.finditer(r"\S+", text)]
    if break_after is not None:
        places[break_after:break_after] = [NOWHERE, NOWHERE]
    offsets = np.array([NOWHERE, *places, NOWHERE])
    tokens = np.random.default_rng(seed).normal(size=(len(offsets), 8)).astype(np.float32)
    return Encoded(tokens, offsets)


def looked(body, title=None, name=""):
    task = {"question": "Does shade cut rust?", "intent": INTENT, "section": ""}
    question = encoded(task["question"], seed=5)
    return match_passage(
        question, {**task, "text": TEXT, "title": name}, vectorize_passage(TEXT, body, title)
    )


@pytest.mark.parametrize("break_after", [None, 9])
def test_a_title_is_beside_its_text_and_not_in_its_sentences(break_after):
    body, title = encoded(TEXT, break_after=break_after), encoded("A shaded field", seed=1)
    bare, named = vectorize_passage(TEXT, body), vectorize_passage(TEXT, body, title)
    assert bare.n_in_text == named.n_in_text == len(body.tokens)
    assert len(named.tokens) == len(body.tokens) + 3
    assert np.array_equal(named.tokens[: len(body.tokens)], bare.tokens)
    assert len(bare.sentences) == 3
    assert np.array_equal(named.sentences, bare.sentences)
    assert np.array_equal(named.body, bare.body)
    assert np.array_equal(bare.vector, bare.body)
    assert not np.allclose(named.vector, bare.vector)
    alone, beside = looked(body), looked(body, title, "A shaded field")
    assert np.array_equal(alone.matches, beside.matches)
    assert np.array_equal(alone.cosines, beside.cosines)
    assert beside.plain[1] >= alone.plain[1]  # the title can only add to what is matched
