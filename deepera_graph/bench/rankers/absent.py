"""A ranker that cannot run here, so that the table has a row that says so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deepera_graph.bench.errors import UnavailableError
from deepera_graph.bench.rankers.ranker import Passage, Ranking


@dataclass(frozen=True)
class Absent:
    """Stands in a table for a ranker that could not be made."""

    name: str
    reason: str

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """It has none: it may be there the next time."""
        return None

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Raise `UnavailableError`."""
        raise UnavailableError(self.reason)
