"""Whether a filter can raise HitRate: checked question by question, and said in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from deepera_graph.bench.experiments.lab import Pass
from deepera_graph.bench.experiments.scored import Scored


@dataclass(frozen=True, slots=True)
class PrefixCheck:
    """What one filter does to rankings.

    Attributes:
        n_questions: How many were checked.
        n_prefixes: How many filtered lists are the beginning of the unfiltered one.
        n_better: On how many the best golden passage stands higher with the filter.
        n_better_by_retrieval: The same with the kept passages in first-stage order.
    """

    n_questions: int
    n_prefixes: int
    n_better: int
    n_better_by_retrieval: int

    def says(self, ranker: str) -> str:
        """Return the finding on a ranker as a sentence or two."""
        retrieval = (
            "With the kept passages in retrieval order the golden one stands higher than in the "
            f"ranking on {self.n_better_by_retrieval} questions."
        )
        if self.n_prefixes == self.n_questions:
            return (
                f"{ranker}: on all {self.n_questions:,} questions the filtered list is the "
                "beginning of the unfiltered one, as both are ordered by score. So no HitRate@K "
                "and no RP can rise with the filter, although DeepEra reports that they do; the "
                f"golden passage stands higher with it on {self.n_better} questions. {retrieval}"
            )
        return (
            f"{ranker}: the filter also holds back passages without a quote, so on "
            f"{self.n_questions - self.n_prefixes:,} of {self.n_questions:,} questions the "
            "filtered list is not the beginning of the unfiltered one; the golden passage stands "
            f"higher with the filter on {self.n_better} questions. {retrieval}"
        )


def check_prefix(questions: Sequence[Scored], *, threshold: float, n: int) -> PrefixCheck:
    """Compare the filtered with the unfiltered list of every question.

    Args:
        questions: Their scores say what to keep.
        threshold: Lowest score kept, in [0, 1].
        n: Most passages kept, >= 1.

    Source:
        A list ordered by score from which low scores are taken is a prefix of the whole list; the
        ablation without filtering and figure 7 of DeepEra report what this rules out.
    """
    found = [_compare(question, threshold, n) for question in questions]
    return PrefixCheck(len(found), *(sum(column) for column in zip(*found, strict=True)))


def prefix_findings(passes: Sequence[Pass], *, threshold: float, n: int) -> tuple[str, ...]:
    """Return one finding a ranker, over all its data sets; see `check_prefix`."""
    questions: dict[str, list[Scored]] = {}
    for one in passes:
        questions.setdefault(one.ranker.name, []).extend(one.questions)
    return tuple(
        check_prefix(of, threshold=threshold, n=n).says(ranker) for ranker, of in questions.items()
    )


def _compare(question: Scored, threshold: float, n: int) -> tuple[bool, bool, bool]:
    whole = question.kept(threshold=None)
    kept = question.kept(threshold=threshold, n=n)
    retrieved = question.kept(threshold=threshold, n=n, order="retrieval")
    rank = whole.golden_rank()
    return (
        whole.ranked[: len(kept.ranked)] == kept.ranked,
        kept.golden_rank() < rank,
        retrieved.golden_rank() < rank,
    )
