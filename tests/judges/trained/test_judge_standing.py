"""Where a passage stands among the others: laws, and what one may count by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deepera_graph.judges.trained.features import PassageFeatures
from deepera_graph.judges.trained.pool_features import (
    COMPARED_FEATURES,
    CONTEXT_FEATURES,
    RANKING_FEATURES,
    compute_ranking_features,
    compute_relative_features,
)

pytestmark = pytest.mark.full

tables = st.integers(1, 12).flatmap(
    lambda n: arrays(np.float64, (n, 3), elements=st.integers(-50, 50).map(float))
)


def test_a_number_is_told_as_distance_from_the_mean_and_as_how_many_are_above():
    found = compute_relative_features(np.array([[1.0], [3.0], [3.0], [5.0]]))
    assert found[:, 0] == pytest.approx(np.array([-np.sqrt(2), 0, 0, np.sqrt(2)]) * 4 / 9)
    assert found[:, 1].tolist() == [3, 1, 1, 0]


def test_what_is_missing_counts_as_zero_and_equal_numbers_have_no_distance():
    assert compute_relative_features(np.array([[np.nan], [2.0]]))[:, 1].tolist() == [1, 0]
    assert compute_relative_features(np.full((3, 2), 0.7)) == pytest.approx(0, abs=1e-6)


@given(tables, st.randoms())
def test_the_order_of_passages_moves_rows_and_changes_nothing(table, random):
    order = list(range(len(table)))
    random.shuffle(order)
    assert compute_relative_features(table[order]) == pytest.approx(
        compute_relative_features(table)[order]
    )


@given(tables, st.integers(1, 9), st.integers(-9, 9))
def test_neither_scale_nor_start_of_a_measure_matters(table, factor, start):
    assert compute_relative_features(table * factor + start) == pytest.approx(
        compute_relative_features(table), abs=1e-9
    )


def test_every_number_has_a_name():
    n = 4
    numbers = compute_ranking_features(
        np.ones((n, len(PassageFeatures._fields))), np.ones((n, len(CONTEXT_FEATURES)))
    )
    assert numbers.shape == (n, len(RANKING_FEATURES))
    assert len(set(RANKING_FEATURES)) == len(RANKING_FEATURES)
    assert {"cosine", "support"} <= set(COMPARED_FEATURES)
    assert not {"is_question", "pool_cosine", "lead"} & set(COMPARED_FEATURES)
