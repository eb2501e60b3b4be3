"""Adaptive retrieval on invented passages, small."""

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

FOLDER = Path(__file__).parents[2] / "benchmarks" / "multihop"


def test_following_neighbours_finds_what_the_first_stage_missed(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "synthetic", raising=False)
    from synthetic import measure_recall

    found = measure_recall(1000, 20)
    assert found.reranked == 0.5
    assert found.adaptive >= found.reranked + 0.2


def test_what_a_graph_costs_is_measured(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(FOLDER))
    from synthetic import measure_scale

    measure_scale(1200, "meaning", n_queries=2)
    said = capsys.readouterr().out
    assert [line.partition(":")[0] for line in said.splitlines()] == [
        "before", "built", "1 000 added", "saved", "on disk", "opened",
        "a query without its scorer",
    ]  # fmt: skip
