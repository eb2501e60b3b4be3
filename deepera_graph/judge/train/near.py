"""A training pool beside what each of its passages gains from the others."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judge.standing import together
from deepera_graph.judge.train.row import Row

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """A pool and its surroundings.

    Attributes:
        row: The pool in numbers.
        around: What `deepera_graph.judge.surroundings.surroundings` says of each passage.
    """

    row: Row
    around: Floats

    @property
    def numbers(self) -> Floats:
        """What its passages are ranked by, see `deepera_graph.judge.standing.together`."""
        return together(self.row.company.measures, self.around)

    @property
    def has_others(self) -> bool:
        """Whether any passage has another beside it."""
        return not bool(np.isnan(self.around).all())
