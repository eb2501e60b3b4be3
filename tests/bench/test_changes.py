import math

import pytest

from bench.lakes import make_dataset
from deepera_graph.bench.data.instance import MetricError
from deepera_graph.bench.rankers.base import FirstStage
from deepera_graph.bench.run import Plan, run
from deepera_graph.bench.table import changes


def table():
    data = [make_dataset(name="base", golden=(2,)), make_dataset(name="hard", golden=(4,))]
    return run([FirstStage()], data, Plan(metrics=("HitRate@1", "RP"), n_resamples=10))


def test_a_change_is_relative_to_what_was_before():
    hit, position = changes(table(), "base", "hard")
    assert position == ("first stage", "RP", 0.5, 0.25, -0.5)
    assert (hit.before, hit.after) == (0, 0)
    assert math.isnan(hit.relative)


def test_a_data_set_that_is_not_in_the_table_is_refused():
    with pytest.raises(MetricError, match=r"must be one of \['base', 'hard'\], got 'soft'"):
        changes(table(), "base", "soft")
