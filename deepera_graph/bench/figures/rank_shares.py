"""What stands at each rank: evidence, a look-alike, or something else."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepera_graph.bench.errors import MetricError
from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.bench.metrics.values import Floats


@dataclass(frozen=True, slots=True, eq=False)
class RankShares:
    """Shares of the questions, each in [0, 1], shape (n_ranks,), rank 1 first.

    They add up to less than 1 where some questions have fewer passages, or dropped them.
    """

    golden: Floats
    distractor: Floats
    other: Floats


def rank_shares(judged: Sequence[Judged], n_ranks: int = 30) -> RankShares:
    """Count what the rankings hold at the ranks 1 to *n_ranks*.

    Raises:
        MetricError: There is no ranking, or n_ranks < 1.
    """
    if not judged or n_ranks < 1:
        raise MetricError(f"shares need a ranking and a rank, got {len(judged)} and {n_ranks}")
    counts = np.zeros((n_ranks, 3))
    for one in judged:
        for rank, passage in enumerate(one.ranked[:n_ranks]):
            counts[rank, _kind(one, passage)] += 1
    golden, distractor, other = (counts / len(judged)).T
    return RankShares(golden, distractor, other)


def _kind(one: Judged, passage: str) -> int:
    if passage in one.golden:
        return 0
    return 1 if passage in one.parents else 2
