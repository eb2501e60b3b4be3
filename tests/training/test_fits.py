"""Parts of a fit, each by itself: trees, kinds of questions, one paper, presence."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepera_graph.judges.trained.features import PassageFeatures
from deepera_graph.judges.trained.pool_features import (
    CONTEXT_FEATURES,
    RANKING_FEATURES,
    SINGLE_FEATURES,
    PoolFeatures,
)
from deepera_graph.lab.training.fitting.features import (
    N_SPLITS,
    ContextPool,
    FeaturedPool,
    MatchedPool,
    assign_split,
    exclude_split,
)
from deepera_graph.lab.training.fitting.ranking import (
    ARTICLE,
    CLAIM,
    QUESTION,
    convert_trees,
    fit_answerability,
    fit_scaled_logistic,
    fit_trees,
)
from deepera_graph.lab.training.fitting.scorer import (
    NEVER_SAME_DOCUMENT,
    fit_results_classifier,
    fit_same_document,
)
from deepera_graph.lab.training.lessons.augment import label_own_paper
from deepera_graph.lab.training.lessons.pools import OTHER_PAPER
from deepera_graph.lab.training.weights import log_nothing
from support.pools import pool

NOTHING = np.zeros((1, 1))


def leaves(*values):
    """Trees of a leaf each."""
    dump = {"tree_info": [{"tree_structure": {"leaf_value": one}} for one in values]}
    return convert_trees(dump, len(values))


def near(name, n=24, *, kind="other paper", cosine=0.0):
    """A pool whose first passage is golden, and in which passages are this alike."""
    article = kind != "other paper"
    one = pool(name, [1, *[0] * (n - 1)], kinds=[kind] * n, of_one_paper=article)
    table, each = np.zeros((n, n)), np.zeros(n)
    company = PoolFeatures(
        np.zeros((n, len(PassageFeatures._fields))), table, table, table, table, table, each, each,
        [np.zeros((1, 2), np.float32)] * n,
    )  # fmt: skip
    around = np.zeros((n, len(CONTEXT_FEATURES)))
    around[:, CONTEXT_FEATURES.index("pool_cosine")] = cosine
    return ContextPool(
        FeaturedPool(MatchedPool(one, [], np.array(one.labels)), company, assign_split(one)), around
    )


def test_ensembles_of_as_many_rounds_have_as_many_trees():
    random = np.random.default_rng(0)
    rows, labels = random.normal(size=(100, 4)), (random.random(100) < 0.2).astype(int)
    labels[::20], labels[1::20] = 1, 0
    grown = [
        fit_trees(
            rows, labels, rounds=30, seed=seed, share=0.3, sizes=[20] * 5, monotone=[True] * 4
        )
        for seed in range(2)
    ]
    assert [len(one.roots) for one in grown] == [30, 30]


def test_a_tree_that_was_left_out_adds_nothing():
    dump = {"tree_info": [{"tree_structure": {"leaf_value": 0.25}}]}
    padded = convert_trees(dump, 4)
    assert len(padded.roots) == 4
    assert padded.depth == 0
    assert padded.predict(NOTHING).tolist() == [0.25]


def test_claims_are_ranked_by_likeness_alone_of_which_more_may_only_help():
    assert CLAIM.uses("cosine")
    assert CLAIM.uses("cosine, z-score")
    assert not CLAIM.uses("cosine, rank")
    assert not any(
        name.startswith(("role", "support")) for name in RANKING_FEATURES if CLAIM.uses(name)
    )
    assert CLAIM.find_monotone(SINGLE_FEATURES) == [CLAIM.uses(name) for name in SINGLE_FEATURES]


def test_questions_are_ranked_by_all_numbers_but_those_left_out_wherever_they_stand():
    for kind in (QUESTION, ARTICLE):
        assert all(kind.uses(name) for name in (*RANKING_FEATURES, *SINGLE_FEATURES))
        assert kind.find_monotone(RANKING_FEATURES) is None
    left = [name for name in RANKING_FEATURES if not QUESTION.uses(name, without=("cosine",))]
    assert left == ["cosine", "cosine, z-score", "cosine, rank"]


def test_a_pool_is_of_the_kind_that_its_passages_make_it():
    several, one = near("roofs").row, near("lamps", kind="BODY.METHODS").row
    assert [kind.includes(several) for kind in (QUESTION, ARTICLE, CLAIM)] == [True, False, False]
    assert [kind.includes(one) for kind in (QUESTION, ARTICLE, CLAIM)] == [False, True, False]


@settings(max_examples=25)
@given(st.text(min_size=1), st.lists(st.integers(0, N_SPLITS - 1), max_size=9))
def test_a_part_is_read_by_what_was_fitted_on_others(group, parts):
    one, other = (assign_split(pool(name, [1, 0], group=group)) for name in ("a", "b"))
    assert one == other
    kept = exclude_split(parts, one, int)
    assert kept == (parts if set(parts) <= {one} else [part for part in parts if part != one])


def test_passages_of_one_paper_are_told_by_what_they_share():
    several = [near(f"roofs {number}", cosine=0.1 * (number % 3)) for number in range(6)]
    articles = [
        near(f"lamps {number}", kind="BODY.METHODS", cosine=0.5 + 0.1 * (number % 3))
        for number in range(6)
    ]
    found = fit_same_document([*several, *articles])
    assert found.probability(several[2].context) < 0.25 < found.probability(articles[0].context)
    assert fit_same_document(several) is fit_same_document(articles) is None
    assert NEVER_SAME_DOCUMENT.probability(articles[0].context) < 1e-6


def presence_of(some):
    """How likely evidence is there, told of pools whose passages are all alike."""
    alike = np.zeros(24), np.zeros(24)
    found = fit_answerability([one.row for one in some], [alike for _ in some], log_nothing)
    return found.probability(*alike)


def test_where_nothing_shows_what_is_missing_evidence_is_always_taken_to_be_there():
    assert presence_of([near(f"roofs {number}") for number in range(3)]) == pytest.approx(1)


def test_one_question_in_five_is_taken_to_have_no_evidence():
    some = [near(f"roofs {number}") for number in range(8)]
    for one in some[4:]:
        one.row.labels[:] = 0
    assert presence_of(some) == pytest.approx(0.8)


def test_where_all_passages_are_of_the_paper_that_answers_none_tells_it_from_others():
    kinds = ["methods", "", "other paper"]
    assert label_own_paper(pool("a", [0, 1, 0], kinds=kinds)).tolist() == [True, True, False]
    assert label_own_paper(pool("a", [0, 1], kinds=kinds[:2])) is None


@pytest.mark.full
def test_the_unit_of_a_number_changes_no_probability():
    random = np.random.default_rng(0)
    numbers = random.normal(size=(60, 2))
    labels = (numbers[:, 0] + random.normal(size=60) > 0).tolist()
    (first, _), start = fit_scaled_logistic(numbers, labels)
    (again, _), same = fit_scaled_logistic(numbers * [0.01, 1], labels)
    assert first > 0
    assert (again, same) == pytest.approx((first * 100, start), rel=1e-3)


def matched(name, kinds, *, angle, of_one_paper=False):
    """A pool whose golden passage points one way, all others another."""
    one = pool(name, [1, *[0] * len(kinds)], kinds=["", *kinds], of_one_paper=of_one_paper)
    ways = [np.array([np.cos(angle * label), np.sin(angle * label)]) for label in one.labels]
    matches = [SimpleNamespace(body=way, sentences=way[None]) for way in ways]
    return MatchedPool(one, matches, np.array(one.labels))


@pytest.mark.full
def test_sections_of_articles_teach_results_only_where_nothing_else_does():
    abstracts = [matched(f"roofs {n}", ["methods", OTHER_PAPER], angle=2.0) for n in range(5)]
    articles = [
        matched(f"lamps {n}", ["BODY.METHODS"] * 4, angle=-2.0, of_one_paper=True)
        for n in range(50)
    ]
    alone = fit_results_classifier(abstracts)
    beside = fit_results_classifier([*abstracts, *articles])
    assert beside.passage.tolist() == alone.passage.tolist()
    assert fit_results_classifier(articles) is not None
