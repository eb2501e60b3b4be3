"""What the printed RP of DeepEra can be, by the hit rates printed beside it."""

from random import Random

import pytest

from bench.lakes import make_judged
from deepera_graph.calibration.instance import DatasetError, MetricError
from deepera_graph.lab.metrics.published import (
    PrintedRow,
    check_positions,
    linear_bounds,
    read_printed_rows,
    reciprocal_bounds,
)
from deepera_graph.lab.metrics.ranking import hit_rate, linear_position, reciprocal_rank

# DeepEra, tables 1 and 2, the rows of DeepEra itself: HitRate@1, HitRate@3, RP.
PRINTED = (
    PrintedRow("SSLI, LMQG", 56.20, 66.60, 63.65),
    PrintedRow("SSLI, Ours", 66.60, 76.40, 71.96),
    PrintedRow("Base, LMQG", 50.00, 71.40, 66.34),
    PrintedRow("Base, Ours", 58.66, 88.63, 63.36),
)


def test_printed_positions_are_reciprocal_ranks_but_for_rows_that_are_nothing():
    found = check_positions(PRINTED)
    assert (found.n_rows, found.n_reciprocal, found.n_linear) == (4, 3, 0)
    assert found.neither == ("Base, Ours",)  # below what its own hit rates allow


@pytest.mark.parametrize("seed", range(20))
def test_what_a_ranking_gives_lies_within_the_bounds(seed):
    dice = Random(seed)
    ids = [str(place) for place in range(30)]
    judged = [make_judged(ids, {str(int(30 * dice.random() ** 2))}) for _ in range(40)]
    hits = [100 * hit_rate(judged, k).mean() for k in (1, 3)]
    for metric, bounds in ((reciprocal_rank, reciprocal_bounds), (linear_position, linear_bounds)):
        assert bounds(*hits).hold(100 * metric(judged).mean(), tolerance=1e-9)


def test_the_two_readings_are_told_apart():
    row = PrintedRow("linear", 40.0, 60.0, 85.0)
    found = check_positions([row])
    assert (found.n_reciprocal, found.n_linear, found.neither) == (0, 1, ())


def test_rows_are_read_from_a_file(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [",".join(map(str, ('"' + row.name + '"', *row[1:]))) for row in PRINTED]
    path.write_text("\n".join(["name,HitRate@1,HitRate@3,RP", *lines]))
    assert tuple(read_printed_rows(path)) == PRINTED
    path.write_text("name,HitRate@1,HitRate@3,RP\na,1,x,2\n")
    with pytest.raises(DatasetError, match="row 1: needs numbers"):
        read_printed_rows(path)


def test_hit_rates_that_are_none_are_refused():
    with pytest.raises(MetricError, match=r"got 60.0 and 40.0"):
        check_positions([PrintedRow("odd", 60.0, 40.0, 50.0)])
