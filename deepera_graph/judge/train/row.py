"""A training pool in numbers, compared within itself."""

from dataclasses import dataclass

from deepera_graph.judge.surroundings import Company
from deepera_graph.judge.train.material import Looked
from deepera_graph.judge.train.pool import Pool


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A pool in numbers.

    Attributes:
        looked: Its passages as looked at.
        company: Its passages compared with each other.
        part: See `deepera_graph.judge.train.parts`.
    """

    looked: Looked
    company: Company
    part: int

    @property
    def half(self) -> int:
        """0 or 1: what is fitted on one half of the groups reads the other."""
        return self.part % 2

    @property
    def pool(self) -> Pool:
        """The pool itself."""
        return self.looked.pool
