"""Reciprocal rank fusion: one ranking out of several."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

RRF_K = 60


def fuse(rankings: Iterable[Sequence[str]], *, k: int = RRF_K) -> dict[str, float]:
    """Return the fused score of each id: the sum of 1 / (k + rank) over the rankings that have it.

    Args:
        rankings: Ids, best first, without repetition; ranks count from 1.
        k: How little the first ranks stand out, >= 0.

    Returns:
        Scores in (0, n_rankings / (k + 1)]; they rank, and mean nothing by themselves.

    Source:
        Cormack, Clarke and Buettcher (2009), Reciprocal Rank Fusion outperforms Condorcet and
        individual rank learning methods, section 2, k = 60. Qdrant's own ``Rrf(k=...)`` counts
        ranks from 0: its ``k=61`` is this 60.
    """
    scores: dict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, name in enumerate(ranking, start=1):
            scores[name] += 1 / (k + rank)
    return dict(scores)
