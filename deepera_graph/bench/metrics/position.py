"""Linear relative position: the second reading of RP."""

from collections.abc import Sequence
from math import isinf

from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.bench.metrics.values import Values


def linear_position(judged: Sequence[Judged]) -> Values:
    """1 - (rank - 1) / (N - 1) of the best golden passage among N candidates, in [0, 1].

    0 when no golden passage was returned, 1 when the only candidate is golden.
    """
    return Values.of([_position(one) for one in judged])


def _position(one: Judged) -> float:
    rank = one.golden_rank()
    if isinf(rank):
        return 0.0
    return 1.0 - (rank - 1) / max(one.n_candidates - 1, 1)
