"""Measures of a search for papers: what of the answers was found, how high up, at which cost.

Relevance is binary, and every query counts alike: one that failed counts 0. Ids are compared in the
form of `deepera_graph.papers.paper.normalize_id`, e.g. those of arXiv without version.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import log2

from deepera_graph.calibration.instance import MetricError
from deepera_graph.calibration.statistics import Values

Ids = frozenset[str] | set[str]
TOP = 50
CUTOFFS = (25, 100)
CANDIDATES = 100  # observed candidates that R@100 is counted by
BUCKETS = (1, 5, 26, 51, 101, 151, 201)


def recall_of(found: Collection[str], gold: Ids) -> float:
    """Return the share of *gold* that was found, in [0, 1].

    Raises:
        MetricError: There is no gold.
    """
    if not gold:
        raise MetricError("recall needs at least one answer")
    return len(gold.intersection(found)) / len(gold)


def ndcg(ranked: Sequence[str], gold: Ids, k: int = TOP) -> float:
    """Return binary nDCG of the first *k*, in [0, 1]; the ideal is all the gold, up to *k*.

    Source:
        https://github.com/pty12345/ScholarQuest-LeaderBoard, README: gains of 1 discounted by
        1 / log2(rank + 1), the ideal from the whole gold set, found or not, up to 50.
    """
    if not gold:
        raise MetricError("nDCG needs at least one answer")
    gain = sum(1 / log2(rank + 1) for rank, one in enumerate(ranked[:k], start=1) if one in gold)
    return gain / sum(1 / log2(rank + 1) for rank in range(1, min(len(gold), k) + 1))


def precision(ranked: Sequence[str], gold: Ids, k: int = TOP) -> float:
    """Return the share of gold among what was returned of the first *k*, in [0, 1]; 0 for nothing.

    Source:
        https://github.com/pty12345/ScholarQuest-LeaderBoard, README: a shorter list is divided by
        its own length, not by 50.
    """
    first = ranked[:k]
    return len(gold.intersection(first)) / len(first) if first else 0.0


def recall_per_candidates(recall: float, n_observed: float) -> float:
    """Return the recall that 100 observed candidates are worth, >= 0; 0 if none was observed.

    The figure of a system is the mean of these ratios over queries, not the ratio of the means:
    ScholarQuest prints .120 where the ratio of its means is .077.
    """
    return recall * CANDIDATES / n_observed if n_observed else 0.0


@dataclass(frozen=True, slots=True)
class LimitScores:
    """How a search kept to the limits of a query, by papers that are known to break them.

    Attributes:
        first: Share of the first #gold papers returned that break a limit, in [0, 1]; 0 for none.
        auc: How probably an answer stands above a paper that breaks a limit, in [0, 1]; what was
            not returned is below all that was, and two of one place count half.
        precision: Of what was kept, among the papers known either way.
        recall: The same.
        f1: Their harmonic mean.
    """

    first: float
    auc: float
    precision: float
    recall: float
    f1: float


def score_limits(
    ranked: Sequence[str], kept: Collection[str], gold: Ids, violating: Ids
) -> LimitScores:
    """Measure how well limits were kept; papers in neither set are not judged.

    Raises:
        MetricError: One of the sets is empty, or they share a paper.
    """
    if not gold or not violating or gold & violating:
        raise MetricError(
            f"limits need answers and papers that break them, apart from each other, got "
            f"{len(gold)}, {len(violating)}, {len(gold & violating)} in both"
        )
    first = ranked[: len(gold)]
    right, wrong = len(gold.intersection(kept)), len(violating.intersection(kept))
    share, recall = right / (right + wrong) if right else 0.0, right / len(gold)
    return LimitScores(
        first=len(violating.intersection(first)) / len(first) if first else 0.0,
        auc=_auc(ranked, gold, violating),
        precision=share,
        recall=recall,
        f1=2 * share * recall / (share + recall) if right else 0.0,
    )


def _auc(ranked: Sequence[str], gold: Ids, violating: Ids) -> float:
    # Mann and Whitney (1947): the share of pairs in the right order, ties half.
    below, above, wins = len(violating), 0, 0.0
    n_gold = 0
    for one in ranked:
        if one in violating:
            below -= 1
            above += 1
        elif one in gold:
            wins += below
            n_gold += 1
    wins += (len(gold) - n_gold) * below / 2
    return wins / (len(gold) * len(violating))


def by_intents(values: Sequence[float], intents: Sequence[str]) -> Values:
    """Return values weighted so that their mean is that of the means of the intents."""
    sizes = {one: intents.count(one) for one in dict.fromkeys(intents)}
    return Values.of(values, [1 / (sizes[one] * len(sizes)) for one in intents])


def bucket_of(n: int, starts: Sequence[int] = BUCKETS) -> str:
    """Name the bucket of a number of answers, ``26-50``; the last has no end, ``201+``.

    Source of the default: the answer sizes of ScholarQuest, 5-25 to 151-200; what lies outside of
    them has buckets of its own.
    """
    place = sum(n >= one for one in starts) - 1
    if place < 0:
        return f"0-{starts[0] - 1}"
    if place == len(starts) - 1:
        return f"{starts[-1]}+"
    end = starts[place + 1] - 1
    return f"{starts[place]}-{end}" if end > starts[place] else str(end)
