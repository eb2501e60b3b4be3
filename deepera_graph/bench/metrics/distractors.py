"""How well look-alikes are told from evidence: NRS and CDR."""

from collections.abc import Sequence

from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.bench.metrics.values import Values


def non_distractor_share(judged: Sequence[Judged], k: int) -> Values:
    """Share of the first *k* places that hold a passage which is no distractor, in [0, 1] (NRS@k).

    A pool smaller than *k* has as many places as candidates; a place left empty by a filter holds
    no such passage.

    Source:
        DeepEra, section on embedding models: the proportion of non-distractor passages retrieved.
    """
    return Values.of([_share(one, k) for one in judged])


def distractor_discrimination(judged: Sequence[Judged]) -> Values:
    """Share of the pairs of a golden passage and its own distractor in the right order (CDR).

    A pair in which neither was returned counts one half; a passage that was returned comes before
    one that was not. Every pair has the same weight, so a question weighs as many pairs as it has.

    Source:
        DeepEra, section on embedding models: telling original passages from their distractors.
    """
    pairs = [_pairs(one) for one in judged]
    values = [sum(right) / len(right) if right else 0.0 for right in pairs]
    return Values.of(values, [len(right) for right in pairs])


def _share(one: Judged, k: int) -> float:
    good = sum(passage not in one.parents for passage in one.ranked[:k])
    return good / min(k, one.n_candidates)


def _pairs(one: Judged) -> list[float]:
    return [
        _in_order(one.rank(parent), one.rank(distractor))
        for distractor, parent in one.parents.items()
        if parent is not None
    ]


def _in_order(golden: float, distractor: float) -> float:
    if golden == distractor:
        return 0.5
    return 1.0 if golden < distractor else 0.0
