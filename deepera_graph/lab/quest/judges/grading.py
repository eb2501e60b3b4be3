"""From what judges say of a pair to its grade: quorum, aggregation, what has to be settled."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median_low
from typing import Any

from deepera_graph.lab.quest.asking import PairGrade
from deepera_graph.lab.quest.plan import MAX_GRADE
from deepera_graph.papers.paper import Paper

BORDERLINE = 0.5  # of the mean from the threshold
WIDE = 2  # spread of grades


# Source: ScholarQuest, section 3: scores are aggregated to Rel(q, p), pairs with Rel >= tau = 2 are
# kept, those at the border or with high disagreement are adjudicated. What aggregates is not said:
# it is the median here, the lower one of two, so that no single judge makes an answer.
@dataclass(slots=True)
class Pair:
    """A question and a paper, and what was said of them.

    Attributes:
        paper: The paper.
        said: By name of the judge.
        ruling: Of the adjudicator, if it was asked.
        dropped: Constraints for which the last filter took it out, or empty.
    """

    paper: Paper
    said: Mapping[str, PairGrade]
    ruling: PairGrade | None = None
    dropped: str = ""
    _grades: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._grades = [one.grade for one in self.said.values() if one.grade is not None]

    @property
    def n_grades(self) -> int:
        """How many judges have graded it."""
        return len(self._grades)

    @property
    def is_unanimous(self) -> bool:
        """Whether all that graded it agree."""
        return len(set(self._grades)) == 1

    @property
    def is_settled(self) -> bool:
        """Whether an adjudicator has settled it."""
        return self.ruling is not None and self.ruling.grade is not None

    @property
    def agreed(self) -> int:
        """The grade before the last filter; of a pair that has one."""
        if self.ruling is not None and self.ruling.grade is not None:
            return self.ruling.grade
        return median_low(self._grades)

    @property
    def grade(self) -> int:
        """The grade, 0 to 2; what the last filter took out is a partial match."""
        return min(self.agreed, 1) if self.dropped else self.agreed

    @property
    def is_certain_answer(self) -> bool:
        """Whether all judges took it for a strict match."""
        return self.is_unanimous and self._grades[0] == MAX_GRADE

    def needs_ruling(self, tau: int) -> bool:
        """Whether its grades have to be settled."""
        return needs_ruling(self._grades, tau)

    def to_dict(self, query_id: str) -> dict[str, Any]:
        """Return it as a line of ``judgements.jsonl`` has it."""
        heard = [*self.said.values(), *([self.ruling] if self.ruling else [])]
        quotes = [one.quote for one in reversed(heard) if one.quote and one.grade is not None]
        plain: dict[str, Any] = {
            "query_id": query_id,
            "paper_id": self.paper.id,
            "grade": self.grade,
            "grades": {name: one.grade for name, one in self.said.items() if one.grade is not None},
            "evidence": list(dict.fromkeys(quotes)),
            "adjudicated": self.is_settled,
            "reasons": {name: one.reason for name, one in self.said.items() if one.reason},
        }
        if failures := self.failures():
            plain["failures"] = failures
        if self.ruling is not None:
            plain["ruling"] = self.ruling.reason or self.ruling.failure
        if self.dropped:
            plain["filtered"] = self.dropped
        return plain

    def failures(self) -> dict[str, str]:
        """Return why grades of judges do not count."""
        return {name: one.failure for name, one in self.said.items() if one.failure}


def needs_ruling(grades: Sequence[int], tau: int) -> bool:
    """Tell whether grades disagree by 2, or disagree with a mean within .5 of the threshold."""
    if len(set(grades)) < 2:
        return False
    return max(grades) - min(grades) >= WIDE or abs(fmean(grades) - tau) <= BORDERLINE


def count_grades(pairs: Sequence[Pair]) -> dict[str, int]:
    """Return how many pairs have each grade."""
    found = Counter(str(one.grade) for one in pairs)
    return {str(grade): found[str(grade)] for grade in range(MAX_GRADE + 1)}
