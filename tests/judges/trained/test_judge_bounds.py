"""Where measures of the trained judge draw their lines: trees are fitted to just these."""

from types import SimpleNamespace

import numpy as np
import pytest

from deepera_graph.judges.trained.features import PassageFeatures, match_passage
from deepera_graph.judges.trained.pool_features import PoolFeatures
from deepera_graph.schema import passage_task

INTENT = {"topic": "", "entity_type": "", "intent": "other", "expected_answer_type": "other"}


def match(cosines):
    """Match a question whose tokens have these best cosines with a passage's one token."""
    asked = np.array([[cosine, np.sqrt(1 - cosine**2)] for cosine in cosines], np.float32)
    token = np.array([[1.0, 0.0]], np.float32)
    units = np.stack([*asked[:1], *asked, *asked[:1]])
    question = SimpleNamespace(units=units, mean=asked[0], tuned_mean=asked[0])
    passage = SimpleNamespace(
        tokens=token, vector=token[0], body=token[0], n_in_text=1, spans=[slice(0, 1)],
        sentences=token, tuned=token[0], tuned_sentences=token,
    )  # fmt: skip
    window = {"text": "Shade cut rust.", "title": "", "section": ""}
    plain = match_passage(question, passage_task("Does shade cut rust?", INTENT, window), passage)
    return dict(zip(PassageFeatures._fields, plain.plain, strict=False))


@pytest.mark.parametrize(
    ("cosines", "share"),
    [((0.9, 0.65, 0.5), 2 / 3), ((0.9, 0.55, 0.5), 1 / 3), ((0.61, 0.62, 0.63), 1.0)],
)
def test_a_token_of_the_question_is_found_above_a_cosine_of_six_tenths(cosines, share):
    assert match(cosines)["found"] == pytest.approx(share)


def test_the_tokens_matched_worst_are_three():
    found = match((0.9, 0.1, 0.3, 0.5, 0.8))
    assert found["match_least"] == pytest.approx(0.1, abs=1e-6)
    assert found["match_least3"] == pytest.approx(0.3, abs=1e-6)


def others(cosine):
    """Tell which of two passages with this cosine counts as another for each."""
    square = np.array([[1.0, cosine], [cosine, 1.0]])
    return PoolFeatures.others.fget(SimpleNamespace(cosines=square)).tolist()


def test_a_passage_is_another_up_to_the_cosine_of_copies():
    assert others(0.984) == [[False, True], [True, False]]
    assert others(0.987) == [[False, False], [False, False]]
