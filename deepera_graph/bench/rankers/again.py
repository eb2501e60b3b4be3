"""A ranker asked again: the same judgement, made anew and kept apart."""

from collections.abc import Mapping, Sequence
from typing import Any

from deepera_graph.bench.rankers.ranker import (
    BatchRanker,
    CountedRanker,
    FallibleRanker,
    Job,
    Note,
    NotingRanker,
    Passage,
    Problems,
    Ranker,
    Ranking,
)
from deepera_graph.usage import Usage


class Again:
    """Does what a ranker does, under a fingerprint of its own.

    Args:
        ranker: Whom to ask.
        number: Which run it is, >= 0.
    """

    def __init__(self, ranker: Ranker, number: int) -> None:
        self.ranker, self.number = ranker, number

    @property
    def name(self) -> str:
        """That of the ranker."""
        return self.ranker.name

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """That of the ranker, with the number of the run; None if it has none."""
        inner = self.ranker.fingerprint
        return None if inner is None else {**inner, "run": self.number}

    @property
    def usage(self) -> Usage:
        """That of the ranker."""
        return self.ranker.usage if isinstance(self.ranker, CountedRanker) else Usage()

    @property
    def problems(self) -> Problems:
        """Those of the ranker."""
        return self.ranker.problems if isinstance(self.ranker, FallibleRanker) else Problems()

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Ask the ranker."""
        return self.ranker.rank(question, passages)

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Ask the ranker, many questions at once if it can."""
        if isinstance(self.ranker, BatchRanker):
            return self.ranker.rank_many(jobs)
        return [self.ranker.rank(*job) for job in jobs]


class NotingAgain(Again):
    """The same for a ranker that says why."""

    @property
    def notes(self) -> Sequence[Mapping[str, Note]]:
        """Those of the ranker."""
        return self.ranker.notes if isinstance(self.ranker, NotingRanker) else []


def again(ranker: Ranker, number: int) -> Again:
    """Return a ranker asked for the *number*-th time, counted from 0."""
    return (
        NotingAgain(ranker, number) if isinstance(ranker, NotingRanker) else Again(ranker, number)
    )
