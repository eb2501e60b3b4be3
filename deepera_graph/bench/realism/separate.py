"""How well a classifier tells distractors from the other passages of a pool it has not seen."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata  # type: ignore[import-untyped]  # has no stubs
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]  # has no stubs
from sklearn.model_selection import GroupKFold  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.bench.metrics.resample import Interval, bootstrap
from deepera_graph.bench.metrics.values import Values
from deepera_graph.bench.realism.features import Features
from deepera_graph.bench.realism.sample import Bools, Ints, Sample

N_FOLDS = 5
_N_RESAMPLES = 2_000
Floats = NDArray[np.float64]


class Telling(NamedTuple):
    """One feature and its weight; above 0 it marks a distractor, below 0 another passage."""

    name: str
    weight: float


def separability(sample: Sample, family: Features, *, kept: Bools | None = None) -> Interval:
    """Return the mean AUC within pools, and its 95 % interval over questions.

    The classifier scores every pool without having seen it, nor any of its texts in another pool:
    sections of one abstract are candidates of many questions, and who knows them by heart need not
    know their style. AUC is the chance that a distractor scores above another passage of its own
    pool; 0.5 if the two cannot be told apart, 1 if always.

    Args:
        sample: What to tell apart.
        family: Features of its texts.
        kept: Which passages count, shape (n_passages,); None takes all.

    Source:
        Fawcett (2006), An introduction to ROC analysis, section 7.
    """
    rows = np.flatnonzero(np.ones(len(sample.pool), bool) if kept is None else kept)
    pool, text, labels = sample.pool[rows], sample.text[rows], sample.is_distractor[rows]
    scores = np.zeros(len(rows))
    folds = GroupKFold(min(N_FOLDS, len(np.unique(pool))))
    for train, test in folds.split(rows, groups=pool):
        unseen = train[~np.isin(text[train], text[test])]
        scores[test] = _scores(family, text[unseen], labels[unseen], text[test])
    return within_pools(pool, labels, scores)


def within_pools(pool: Ints, labels: Bools, scores: Floats) -> Interval:
    """Return the mean AUC of scores within pools that have both kinds, and its 95 % interval.

    Args:
        pool: Shape (n_passages,).
        labels: Whether it is a distractor, shape (n_passages,).
        scores: Higher for what looks like one, shape (n_passages,).
    """
    by_pool = np.argsort(pool, kind="stable")
    starts = np.flatnonzero(np.diff(pool[by_pool])) + 1
    pairs = [(labels[one], scores[one]) for one in np.split(by_pool, starts)]
    values = [_auc(*pair) for pair in pairs if 0 < pair[0].sum() < len(pair[0])]
    return bootstrap(Values.of(values), n_resamples=_N_RESAMPLES)


def _auc(labels: Bools, scores: Floats) -> float:
    """The chance that a labelled one has the higher score; half for a tie (Mann and Whitney)."""
    n_labelled = int(labels.sum())
    ranks = float(rankdata(scores)[labels].sum())
    return (ranks - n_labelled * (n_labelled + 1) / 2) / (n_labelled * (len(labels) - n_labelled))


def telling(sample: Sample, family: Features, *, n: int = 10) -> list[Telling]:
    """Return the features that tell most, the strongest first.

    Their weight is in log odds for one standard deviation of the feature.
    """
    rows, labels, weights = _distinct(sample.text, sample.is_distractor)
    matrix = family.matrix[rows]
    slope = _fitted(matrix, labels, weights).coef_[0]
    mean = np.asarray(matrix.mean(axis=0)).ravel()
    spread = np.sqrt(
        np.maximum(np.asarray(matrix.multiply(matrix).mean(axis=0)).ravel() - mean**2, 0)
    )
    strength = slope * spread
    strongest = np.argsort(-np.abs(strength), kind="stable")[:n]
    return [Telling(family.names[one], float(strength[one])) for one in strongest if strength[one]]


def _scores(family: Features, texts: Ints, labels: Bools, wanted: Ints) -> Floats:
    if labels.all() or not labels.any():
        return np.zeros(len(wanted))
    rows, distinct, weights = _distinct(texts, labels)
    model = _fitted(family.matrix[rows], distinct, weights)
    return np.asarray(model.decision_function(family.matrix[wanted]), dtype=np.float64)


def _distinct(texts: Ints, labels: Bools) -> tuple[Ints, Bools, Floats]:
    """Return each (text, label) once, weighted by how often it comes; both labels weigh alike."""
    pairs, counts = np.unique(np.stack([texts, labels]), axis=1, return_counts=True)
    found = pairs[1].astype(bool)
    share = np.where(found, counts[found].sum(), counts[~found].sum())
    return pairs[0], found, len(counts) * counts / (2 * share)


def _fitted(matrix: Any, labels: Bools, weights: Floats) -> Any:
    model = LogisticRegression(max_iter=1000)
    return model.fit(matrix, labels, sample_weight=weights)
