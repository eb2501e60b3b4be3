"""Where a passage stands among the others: laws, and what one may count by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deepera_graph.judges.trained.features import Measures
from deepera_graph.judges.trained.pool_features import (
    COMPARED,
    SEEN,
    SURROUNDINGS,
    standing,
    together,
)

tables = st.integers(1, 12).flatmap(
    lambda n: arrays(np.float64, (n, 3), elements=st.integers(-50, 50).map(float))
)


def test_a_number_is_told_as_distance_from_the_mean_and_as_how_many_are_above():
    found = standing(np.array([[1.0], [3.0], [3.0], [5.0]]))
    assert found[:, 0] == pytest.approx(np.array([-np.sqrt(2), 0, 0, np.sqrt(2)]) * 4 / 9)
    assert found[:, 1].tolist() == [3, 1, 1, 0]


def test_what_is_missing_counts_as_zero_and_equal_numbers_have_no_distance():
    assert standing(np.array([[np.nan], [2.0]]))[:, 1].tolist() == [1, 0]
    assert standing(np.full((3, 2), 0.7)) == pytest.approx(0, abs=1e-6)


@given(tables, st.randoms())
def test_the_order_of_passages_moves_rows_and_changes_nothing(table, random):
    order = list(range(len(table)))
    random.shuffle(order)
    assert standing(table[order]) == pytest.approx(standing(table)[order])


@given(tables, st.integers(1, 9), st.integers(-9, 9))
def test_neither_scale_nor_start_of_a_measure_matters(table, factor, start):
    assert standing(table * factor + start) == pytest.approx(standing(table), abs=1e-9)


def test_every_number_has_a_name():
    n = 4
    numbers = together(np.ones((n, len(Measures._fields))), np.ones((n, len(SURROUNDINGS))))
    assert numbers.shape == (n, len(SEEN))
    assert len(set(SEEN)) == len(SEEN)
    assert {"cosine", "support"} <= set(COMPARED)
    assert not {"is_question", "pool_cosine", "lead"} & set(COMPARED)
