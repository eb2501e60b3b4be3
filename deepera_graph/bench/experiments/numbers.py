"""Means with intervals, for the cells of a grid."""

from collections.abc import Sequence

import numpy as np

from deepera_graph.bench.experiments.setup import Setup
from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.bench.metrics.resample import bootstraps
from deepera_graph.bench.metrics.values import Values
from deepera_graph.bench.table import Estimate


def estimates(columns: Sequence[Values], setup: Setup) -> list[Estimate]:
    """Return mean and 95 % interval of each column, all over the same questions."""
    if not columns:
        return []
    found = bootstraps(columns, n_resamples=setup.n_resamples, seed=setup.seed)
    return [Estimate(*one, 0.0) for one in found]


def n_kept(kept: Sequence[Judged]) -> Values:
    """Passages kept a question."""
    return Values.of([len(one.ranked) for one in kept])


def empty(kept: Sequence[Judged]) -> Values:
    """1 where nothing was kept, else 0."""
    return Values.of([not one.ranked for one in kept])


def precision(kept: Sequence[Judged]) -> Values:
    """Share of the kept passages that are golden, each passage with the same weight, in [0, 1]."""
    counts = np.array([len(one.ranked) for one in kept], dtype=np.float64)
    golden = [sum(id in one.golden for id in one.ranked) for one in kept]
    return Values.of(golden / np.maximum(counts, 1), counts)


def found_golden(kept: Sequence[Judged]) -> Values:
    """1 where a golden passage is among the kept, else 0; HitRate of the whole list."""
    return Values.of([not one.golden.keys().isdisjoint(one.ranked) for one in kept])
