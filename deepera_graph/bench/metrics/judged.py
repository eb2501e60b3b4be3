"""A ranking joined with the labels of what was ranked: all that a metric over ranks needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Self

from deepera_graph.bench.instance import Instance


@dataclass(frozen=True, slots=True)
class Judged:
    """One question's ranking and labels.

    Attributes:
        id: The question's id.
        ranked: Passage ids, best first, each once; passages that were not returned are missing.
        n_candidates: How many passages were to be ranked, >= 1.
        golden: Golden passage to grade >= 1, with those outside the candidates; not empty.
        parents: Distractor to the golden passage it looks like, or None if that is not known.
    """

    id: str
    ranked: tuple[str, ...]
    n_candidates: int
    golden: Mapping[str, int]
    parents: Mapping[str, str | None]

    @classmethod
    def of(cls, instance: Instance, ranked: Sequence[str]) -> Self:
        """Join an instance with a ranking of its passages, or of some of them."""
        golden = {one.id: one.grade for one in instance.contexts if one.is_golden}
        return cls(
            id=instance.id,
            ranked=tuple(ranked),
            n_candidates=len(instance.contexts),
            golden={**golden, **instance.golden_outside},
            parents={one.id: one.parent_id for one in instance.contexts if one.is_distractor},
        )

    def reordered(self, places: Sequence[int]) -> Self:
        """Return the same labels with another ranking, given as places from 1 in this one."""
        return replace(self, ranked=tuple(self.ranked[place - 1] for place in places))

    def ideal(self) -> Self:
        """Return the same labels with these passages in the best order: by falling grade."""
        best = sorted(self.ranked, key=lambda id: -self.golden.get(id, 0))
        return replace(self, ranked=tuple(best))

    def rank(self, passage: str) -> float:
        """Return the rank of a passage, >= 1; infinity if it was not returned."""
        try:
            return self.ranked.index(passage) + 1
        except ValueError:
            return inf

    def golden_rank(self) -> float:
        """Return the rank of the best golden passage, >= 1; infinity if none was returned."""
        return next((rank for rank, id in enumerate(self.ranked, 1) if id in self.golden), inf)
