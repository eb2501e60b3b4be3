"""A training question with the passages found for it, each labelled."""

from dataclasses import dataclass, replace
from typing import Self

from deepera_graph.errors import InputError

GOLDEN = "golden"
OTHER_PAPER = "other paper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One candidate.

    Attributes:
        text: As the judge sees it, not blank.
        title: As the judge sees it; may be empty.
        label: 1 if it answers the question, else 0.
        kind: What sort of passage it is, for statistics and ablations; the judge never sees it.
    """

    text: str
    label: int
    title: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A question and its candidates, in first-stage order.

    Attributes:
        id: Names the question within its set.
        question: What is asked.
        passages: The candidates, not empty; perhaps none of them is evidence.
        set: Name of the data set.
        group: Folds are split by it: questions that share it are never on both sides.
        weight: How much the pool counts in training, >= 0; 0 is for measuring alone.
        golden_outside: Golden passages that the first stage missed, >= 0.
        of_one_paper: Whether all candidates are parts of one paper.

    Raises:
        InputError: There is no passage, a label is neither 0 nor 1, or a number is out of range.
    """

    id: str
    question: str
    passages: tuple[Passage, ...]
    set: str
    group: str
    weight: float = 1.0
    golden_outside: int = 0
    of_one_paper: bool = False

    def __post_init__(self) -> None:
        if not self.passages:
            raise InputError(f"question {self.id!r} of {self.set} has no passage")
        wrong = [one.label for one in self.passages if one.label not in (0, 1)]
        if wrong:
            raise InputError(f"question {self.id!r}: a label must be 0 or 1, got {wrong[0]!r}")
        if not (self.weight >= 0 and self.golden_outside >= 0):
            raise InputError(
                f"question {self.id!r}: weight and golden_outside must be >= 0, "
                f"got {self.weight} and {self.golden_outside}"
            )

    @property
    def labels(self) -> tuple[int, ...]:
        """Labels of the passages, in their order."""
        return tuple(one.label for one in self.passages)

    @property
    def n_golden(self) -> int:
        """Golden passages, in the pool or not."""
        return sum(self.labels) + self.golden_outside

    def with_passages(self, passages: tuple[Passage, ...]) -> Self:
        """Return the same question over other candidates."""
        return replace(self, passages=passages)
