"""From pools to something that scores pools: what cross-validation and ablations repeat."""

from collections.abc import Collection, Sequence
from typing import Protocol

from deepera_graph.judge.train.log import Log
from deepera_graph.judge.train.pool import Pool
from deepera_graph.judge.train.scored import Scorer


class Learn(Protocol):
    """Fits a judge to pools and gives what scores others."""

    def __call__(
        self, pools: Sequence[Pool], *, seed: int, log: Log, without: Collection[str] = ()
    ) -> Scorer:
        """Fit; *without* names signals that the judge has to do without."""
