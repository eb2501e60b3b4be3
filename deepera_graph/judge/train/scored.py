"""Pools with the scores a judge gave, and who gives them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.errors import InputError
from deepera_graph.judge.train.log import SCORE, Log, silent
from deepera_graph.judge.train.pool import Pool

Scorer = Callable[[Pool], Sequence[float]]


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A pool, and the probability that each of its passages is evidence.

    Attributes:
        pool: What was judged.
        scores: In [0, 1], shape (n_passages,).

    Raises:
        InputError: There are not as many scores as passages, or one is out of range.
    """

    pool: Pool
    scores: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.scores.shape != (len(self.pool.passages),):
            raise InputError(
                f"question {self.pool.id!r}: {len(self.pool.passages)} passages need as many "
                f"scores, got the shape {self.scores.shape}"
            )
        outside = self.scores[~((self.scores >= 0) & (self.scores <= 1))]
        if len(outside):
            raise InputError(
                f"question {self.pool.id!r}: scores must be in [0, 1], got {float(outside[0])}"
            )

    def judged(self) -> Judged:
        """Return the ranking that the scores give, ties in first-stage order."""
        ranked = np.argsort(-self.scores, kind="stable")
        golden = {str(place): 1 for place in np.flatnonzero(self.pool.labels)}
        missed = {f"outside {number}": 1 for number in range(self.pool.golden_outside)}
        return Judged(
            id=self.pool.id,
            ranked=tuple(map(str, ranked)),
            n_candidates=len(ranked),
            golden={**golden, **missed},
            parents={},
        )


def score(pools: Sequence[Pool], scorer: Scorer, log: Log = silent) -> Iterator[Scored]:
    """Yield each pool with its scores.

    Args:
        pools: What is scored.
        scorer: Who scores.
        log: Told of every pool that is done.

    Raises:
        InputError: See `Scored`.
    """
    for n_done, pool in enumerate(pools, start=1):
        yield Scored(pool, np.asarray(scorer(pool), dtype=np.float64))
        log({"step": SCORE, "set": pool.set, "done": n_done, "of": len(pools)})
