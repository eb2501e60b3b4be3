"""What the card of the shipped weights says of them, counted again."""

import json

import pytest

from deepera_graph.judges.trained.features import PassageFeatures
from deepera_graph.judges.trained.model import SHIPPED
from deepera_graph.judges.trained.pool_features import (
    COMPARED_FEATURES,
    CONTEXT_FEATURES,
    RANKING_FEATURES,
)
from deepera_graph.judges.trained.scorer import MIN_SAME_DOCUMENT, EvidenceScorer
from deepera_graph.lab.training.fitting.ranking import ARTICLE, CLAIM, QUESTION, RANK_ROUNDS

pytestmark = pytest.mark.skipif(
    not (SHIPPED / "head.json").is_file(), reason="this checkout has no weights"
)


@pytest.fixture(scope="module")
def card():
    return " ".join((SHIPPED / "MODEL_CARD.md").read_text(encoding="utf-8").split())


def test_the_card_counts_numbers_as_the_code_does(card):
    assert f"{len(PassageFeatures._fields)} measures of each passage" in card
    assert f"{len(CONTEXT_FEATURES)} measures of its surroundings" in card
    assert f"of {len(COMPARED_FEATURES)} of these measures" in card
    assert f"The ranking goes by {len(RANKING_FEATURES)} numbers" in card
    assert "Twenty passages or fewer" in card
    assert MIN_SAME_DOCUMENT == 20


@pytest.mark.full
def test_the_card_tells_the_trees_and_questions_that_the_head_has(card):
    head = EvidenceScorer.load(SHIPPED / "head.json")
    n_trees = [len(one.order.roots) for one in (head.question, head.article, head.claim)]
    n_ensembles = [one.n_ensembles for one in (QUESTION, ARTICLE, CLAIM)]
    assert n_trees == [RANK_ROUNDS * one for one in n_ensembles]
    assert n_ensembles == [3, 3, 3]
    assert f"three ensembles of {RANK_ROUNDS} trees" in card
    sets = json.loads((SHIPPED / "trained_on.json").read_text(encoding="utf-8"))["sets"]
    assert sets == head.about["questions"]
    for name in ("sciences", "multi", "question_titles", "evidence_inference", "scifact_train"):
        assert f"{sets[name]} " in card
