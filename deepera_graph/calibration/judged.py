"""A question with the scores of its passages and the truth about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuestion:
    """Scores and labels of one question; passages that could not be judged are only counted.

    Attributes:
        id: Of the question.
        scores: In [0, 1], shape (n_judged,).
        labels: 1 for evidence, 0 for none, shape (n_judged,).
        n_failed: Passages without a score.
        n_failed_relevant: Those among them that are evidence.
    """

    id: str
    scores: tuple[float, ...]
    labels: tuple[int, ...]
    n_failed: int = 0
    n_failed_relevant: int = 0

    @classmethod
    def of(
        cls, id: str, scores: Sequence[tuple[str, float | None]], labels: Mapping[str, int]
    ) -> Self:
        """Join (passage id, score or None) pairs with the labels of the same passages."""
        judged = [(score, labels[name]) for name, score in scores if score is not None]
        failed = [labels[name] for name, score in scores if score is None]
        return cls(
            id=id,
            scores=tuple(score for score, _ in judged),
            labels=tuple(label for _, label in judged),
            n_failed=len(failed),
            n_failed_relevant=sum(failed),
        )

    @property
    def n_relevant(self) -> int:
        """Passages that are evidence, judged or not."""
        return sum(self.labels) + self.n_failed_relevant
