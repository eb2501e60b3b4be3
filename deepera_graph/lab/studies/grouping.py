"""Groups of questions that may have thresholds of their own."""

from collections.abc import Callable, Iterator, Sequence
from math import isinf
from statistics import median

import numpy as np

from deepera_graph.lab.bench.rank import RankedQuestion
from deepera_graph.lab.studies.base import RankerRun

GroupOf = Callable[[int], str]
LEADS = ("small lead", "middle lead", "large lead")
_RANKS = ((1, "golden first in retrieval"), (5, "golden second to fifth"))


def find_groupings(run: RankerRun, tuned: Sequence[int]) -> Iterator[tuple[str, GroupOf]]:
    """Yield ways to group questions, by name, that have more than one group.

    *tuned* are the places of the questions that thresholds are chosen on: only these say where one
    difficulty ends and the next begins.
    """
    questions = run.questions
    leads = [lead_of(one) for one in questions]
    bounds = np.quantile([leads[at] for at in tuned], [1 / 3, 2 / 3]) if tuned else np.array([])
    ways: tuple[tuple[str, GroupOf], ...] = (
        ("by intent", lambda at: questions[at].intent),
        ("by subject", lambda at: questions[at].labels.subject),
        ("by difficulty", lambda at: LEADS[int(np.searchsorted(bounds, leads[at]))]),
        ("by difficulty, oracle", lambda at: _golden_rank(questions[at])),
    )
    for name, group_of in ways:
        if len({group_of(at) for at in range(len(questions))}) > 1:
            yield name, group_of


def lead_of(question: RankedQuestion) -> float:
    """Return how far the best score is above the middle one, in [0, 1]; it needs no labels.

    A question that one passage stands out for is an easy one.
    """
    scores = [score for score in question.ranked.scores if score >= 0]
    return max(scores) - median(scores) if scores else 0.0


def _golden_rank(question: RankedQuestion) -> str:
    ranks = (place for place, id in enumerate(question.first, 1) if id in question.judged.golden)
    rank = next(ranks, float("inf"))
    if isinf(rank):
        return "golden not retrieved"
    return next((name for most, name in _RANKS if rank <= most), "golden sixth or later")
