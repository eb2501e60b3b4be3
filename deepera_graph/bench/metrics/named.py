"""Metrics by name, e.g. ``HitRate@1``."""

import re
from collections.abc import Callable, Mapping, Sequence

from deepera_graph.bench.errors import MetricError
from deepera_graph.bench.metrics.distractors import distractor_discrimination, non_distractor_share
from deepera_graph.bench.metrics.ir import hit_rate, ndcg, recall, relative_position
from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.bench.metrics.position import linear_position
from deepera_graph.bench.metrics.values import Values

_WITH_CUT: Mapping[str, Callable[[Sequence[Judged], int], Values]] = {
    "HitRate": hit_rate,
    "NRS": non_distractor_share,
    "nDCG": ndcg,
    "Recall": recall,
}
_WHOLE: Mapping[str, Callable[[Sequence[Judged]], Values]] = {
    "RP": relative_position,
    "RP-linear": linear_position,
    "CDR": distractor_discrimination,
}
_CUT = re.compile(r"(?P<name>\w+)@(?P<k>[1-9]\d*)")


def compute(metric: str, judged: Sequence[Judged]) -> Values:
    """Return the values of a metric, each in [0, 1].

    Args:
        metric: ``HitRate@K``, ``RP``, ``RP-linear``, ``NRS@K``, ``CDR``, ``nDCG@K`` or
            ``Recall@K``.
        judged: One a question.

    Raises:
        MetricError: No metric has this name.
    """
    check_metric(metric)
    if metric in _WHOLE:
        return _WHOLE[metric](judged)
    name, _, k = metric.partition("@")
    return _WITH_CUT[name](judged, int(k))


def check_metric(metric: str) -> None:
    """Raise `MetricError` unless a metric has this name."""
    found = _CUT.fullmatch(metric)
    if metric not in _WHOLE and (found is None or found["name"] not in _WITH_CUT):
        known = [*_WHOLE, *(f"{name}@K" for name in _WITH_CUT)]
        raise MetricError(f"metric must be one of {', '.join(known)}, got {metric!r}")
