"""How far grades of a judge agree with labels of people, and the labels with one another.

A confusion matrix has a row for each grade of the judge and a column for each label, both 0, 1, 2.
In an audit the rows are strata: as many pairs are drawn of each grade, whatever its share among all
judged pairs. So precisions, which are of one row, hold for all pairs; figures over the whole matrix
are those of a sample that holds every grade alike, unless they are weighted (`weigh_by_build`).

Source: the audit of ScholarQuest, whose measures these are.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]  # has no stubs
from sklearn.metrics import cohen_kappa_score  # type: ignore[import-untyped]  # as above

from deepera_graph.lab.quest.audit.drawing import GRADES, Audit
from deepera_graph.lab.quest.audit.labels import Label
from deepera_graph.lab.tables import MetricEstimate
from deepera_graph.packages import import_extra

LEVEL = 0.95
NOT_NAMED = "not named"
_WEIGHTS = {"unweighted kappa": None, "linear kappa": "linear", "quadratic kappa": "quadratic"}
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def count_confusion(pairs: Iterable[tuple[int, int]]) -> Counts:
    """Return how often each grade met each label, shape (3, 3), from pairs of both."""
    matrix = np.zeros((len(GRADES), len(GRADES)), dtype=np.int64)
    for grade, label in pairs:
        if grade not in GRADES or label not in GRADES:
            raise ValueError(f"grades and labels must be 0, 1 or 2, got {grade!r} and {label!r}")
        matrix[grade, label] += 1
    return matrix


def find_majority(labels: Sequence[int]) -> int | None:
    """Return the label of more than half of the raters; None if there is none: never an average."""
    if not labels:
        return None
    label, times = Counter(labels).most_common(1)[0]
    return label if 2 * times > len(labels) else None


def measure_agreement(
    matrix: Counts, *, n_resamples: int = 10_000, seed: int = 0
) -> dict[str, MetricEstimate]:
    """Return exact agreement in [0, 1], correlations and kappas in [-1, 1], with intervals."""
    # Intervals are percentiles of a bootstrap that draws each row anew with as many pairs as it
    # has, as the audit was drawn; that of exact agreement is Wilson's, which is rather too wide for
    # strata than too narrow, and never of no width. What is not defined, as all labels are one, is
    # NaN.
    # Source: Cohen (1960, 1968) for the kappas, by scikit-learn; correlations by SciPy; Efron and
    # Tibshirani (1993), 8.3, for resampling by stratum.
    values = _measure(matrix)
    drawn = _measure_many(resample_rows(matrix, n_resamples=n_resamples, seed=seed))
    found = {name: _estimate(values[name], drawn[name]) for name in values}
    return {**found, "exact": estimate_share(int(np.trace(matrix)), int(matrix.sum()))}


def _measure(matrix: Counts) -> dict[str, float]:
    rows, columns = (one.ravel() for one in np.indices(matrix.shape))
    counts = matrix.ravel()
    grades, labels = np.repeat(rows, counts), np.repeat(columns, counts)
    n = int(counts.sum())
    varies = len({*grades}) > 1 and len({*labels}) > 1
    differs = len({*grades} | {*labels}) > 1
    return {
        "exact": float(np.trace(matrix)) / n if n else nan,
        "Pearson": float(stats.pearsonr(grades, labels).statistic) if varies else nan,
        "Spearman": float(stats.spearmanr(grades, labels).statistic) if varies else nan,
        **{
            name: (
                float(cohen_kappa_score(grades, labels, labels=GRADES, weights=weights))
                if differs
                else nan
            )
            for name, weights in _WEIGHTS.items()
        },
    }


def resample_rows(matrix: Counts, *, n_resamples: int, seed: int) -> Counts:
    """Return matrices drawn anew row by row, shape (n_resamples, 3, 3)."""
    rng = np.random.default_rng(seed)
    sizes = matrix.sum(axis=1)
    shares = matrix / np.maximum(sizes, 1)[:, None]
    rows = [
        rng.multinomial(size, share, size=n_resamples)
        if size
        else np.zeros((n_resamples, len(GRADES)), dtype=np.int64)
        for size, share in zip(sizes, shares, strict=True)
    ]
    return np.stack(rows, axis=1).astype(np.int64)


def _measure_many(matrices: Counts) -> dict[str, Floats]:
    """Return what `_measure` does of many matrices; the libraries would take a minute for them."""
    shares = matrices / np.maximum(matrices.sum(axis=(1, 2), keepdims=True), 1)
    rows, columns = shares.sum(axis=2), shares.sum(axis=1)
    by_chance = rows[:, :, None] * columns[:, None, :]
    apart = np.abs(np.subtract.outer(GRADES, GRADES)).astype(float)
    costs = {"unweighted kappa": apart > 0, "linear kappa": apart, "quadratic kappa": apart**2}
    values = np.broadcast_to(np.array(GRADES, dtype=float), rows.shape)
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "exact": np.trace(shares, axis1=1, axis2=2),
            "Pearson": _correlate(shares, values, values),
            "Spearman": _correlate(shares, _mid_ranks(rows), _mid_ranks(columns)),
            **{
                name: 1 - (cost * shares).sum(axis=(1, 2)) / (cost * by_chance).sum(axis=(1, 2))
                for name, cost in costs.items()
            },
        }


def _mid_ranks(shares: Floats) -> Floats:
    """Return the middle rank of each value from the shares of the values, as a share."""
    return np.cumsum(shares, axis=1) - shares / 2


def _correlate(shares: Floats, grades: Floats, labels: Floats) -> Floats:
    rows, columns = shares.sum(axis=2), shares.sum(axis=1)
    grades = grades - (rows * grades).sum(axis=1, keepdims=True)
    labels = labels - (columns * labels).sum(axis=1, keepdims=True)
    both = (shares * grades[:, :, None] * labels[:, None, :]).sum(axis=(1, 2))
    spread = (rows * grades**2).sum(axis=1) * (columns * labels**2).sum(axis=1)
    return np.where(spread > 1e-15, both / np.sqrt(spread), nan)


def _estimate(value: float, drawn: Floats) -> MetricEstimate:
    known = drawn[np.isfinite(drawn)]
    if not known.size:
        return MetricEstimate(value, nan, nan, 0.0)
    edge = (1 - LEVEL) / 2
    low, high = (float(one) for one in np.quantile(known, [edge, 1 - edge]))
    return MetricEstimate(value, low, high, 0.0)


def estimate_share(times: int, n: int) -> MetricEstimate:
    """Return a share with Wilson's interval; NaN of nothing."""
    # Source: Wilson (1927), by SciPy; Brown, Cai and DasGupta (2001) recommend it.
    if not n:
        return MetricEstimate(nan, nan, nan, 0.0)
    found = stats.binomtest(int(times), int(n)).proportion_ci(LEVEL, method="wilson")
    return MetricEstimate(times / n, float(found.low), float(found.high), 0.0)


class Precisions(NamedTuple):
    """Of the pairs that the judge graded 2, how many people label 2, and how many 1 or 2."""

    strict: MetricEstimate
    relaxed: MetricEstimate


def measure_precision(matrix: Counts) -> Precisions:
    """Return strict and relaxed precision with Wilson's intervals, in [0, 1]."""
    # Both are of one stratum, so that they hold for all pairs of grade 2, not for the sample alone.
    row = matrix[GRADES[-1]]
    n = int(row.sum())
    return Precisions(estimate_share(int(row[-1]), n), estimate_share(int(row[1:].sum()), n))


def weigh_by_build(
    matrix: Counts, judged: Sequence[int], *, n_resamples: int = 10_000, seed: int = 0
) -> dict[str, MetricEstimate]:
    """Return what labels say of all *judged* pairs: each row weighs what its grade has there."""
    # ``exact`` is the share of pairs that people would grade alike, ``recall`` the share of the
    # pairs people would label 2 that the judge graded 2, and ``share of 2`` how many those are of
    # all; all in [0, 1], NaN if a grade that was judged has no label.
    # Source: Cochran (1977), Sampling Techniques, 5.3: the mean of a stratified sample.
    drawn = resample_rows(matrix, n_resamples=n_resamples, seed=seed)
    weights = np.array(judged, dtype=float)
    values, many = _weigh(matrix[None], weights), _weigh(drawn, weights)
    return {name: _estimate(float(values[name][0]), many[name]) for name in values}


def _weigh(matrices: Counts, judged: Floats) -> dict[str, Floats]:
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = matrices / matrices.sum(axis=2, keepdims=True)
        cells = np.where(judged[None, :, None] > 0, shares * judged[None, :, None], 0.0)
        total, strict = judged.sum(), cells[:, :, -1].sum(axis=1)
        return {
            "exact": np.trace(cells, axis1=1, axis2=2) / total,
            "recall": cells[:, -1, -1] / strict,
            "share of 2": strict / total,
        }


class RaterAgreement(NamedTuple):
    """How far several raters agree: 1 is fully, 0 is as by chance; NaN if it is not defined."""

    alpha_ordinal: float
    alpha_nominal: float
    fleiss: float  # of the pairs that all have labelled
    n_by_all: int


def compare_raters(labels: Mapping[str, Mapping[str, int]]) -> RaterAgreement:
    """Return Krippendorff's alpha, for which labels may be missing, and Fleiss' kappa."""
    # Source: Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, by the package
    # `krippendorff`; Fleiss (1971), Measuring nominal scale agreement among many raters.
    pairs = sorted({pair for one in labels.values() for pair in one})
    table = np.array([[one.get(pair, nan) for pair in pairs] for one in labels.values()])
    whole = table[:, ~np.isnan(table).any(axis=0)]
    return RaterAgreement(
        _alpha(table, "ordinal"), _alpha(table, "nominal"), fleiss_kappa(whole), whole.shape[1]
    )


def _alpha(table: Floats, level: str) -> float:
    met = table[:, (~np.isnan(table)).sum(axis=0) > 1]
    values = np.unique(met[~np.isnan(met)])
    if len(values) < 2:  # nothing is compared, or all is one label
        return nan
    library: Any = import_extra("krippendorff", extra="bench")
    return float(library.alpha(met, value_domain=values, level_of_measurement=level))


def fleiss_kappa(table: Floats) -> float:
    """Return Fleiss' kappa of labels, shape (n_raters, n_pairs); NaN if it is not defined."""
    # Source: Fleiss (1971), Measuring nominal scale agreement among many raters, equations 3 to 7.
    n_raters, n_pairs = table.shape
    if n_raters < 2 or not n_pairs:
        return nan
    counts = np.stack([(table == grade).sum(axis=0) for grade in GRADES], axis=1)
    observed = ((counts**2).sum(axis=1) - n_raters).mean() / (n_raters * (n_raters - 1))
    by_chance = float(((counts.sum(axis=0) / (n_raters * n_pairs)) ** 2).sum())
    return float((observed - by_chance) / (1 - by_chance)) if by_chance < 1 else nan


def compare_two(
    first: Mapping[str, int], second: Mapping[str, int]
) -> tuple[int, dict[str, float]]:
    """Return how many pairs both have labelled, and exact agreement, correlations and kappas."""
    both = [(first[pair], second[pair]) for pair in first if pair in second]
    return len(both), _measure(count_confusion(both))


@dataclass(frozen=True, slots=True)
class PairVotes:
    """A pair, and what raters say of it."""

    id: str
    grade: int
    votes: Mapping[str, Label]  # of those who gave a label

    @property
    def majority(self) -> int | None:
        """The label of more than half; None if there is none."""
        return find_majority([one.label for one in self.votes.values() if one.label is not None])

    @property
    def is_unresolved(self) -> bool:
        """Whether it has labels, and no majority."""
        return bool(self.votes) and self.majority is None

    @property
    def differs(self) -> bool:
        """Whether the majority is not the judge's grade."""
        return self.majority is not None and self.majority != self.grade

    @property
    def failure(self) -> str:
        """Why the judge was wrong: what most raters named who named anything; all of a tie."""
        named = Counter(one.failure for one in self.votes.values() if one.failure)
        most = max(named.values(), default=0)
        return " or ".join(sorted(one for one, n in named.items() if n == most)) or NOT_NAMED

    @property
    def shown(self) -> str:
        """The labels by rater, as text."""
        return ", ".join(f"{rater} {one.label}" for rater, one in self.votes.items())


def collect_votes(audit: Audit, labels: Mapping[str, Mapping[str, Label]]) -> tuple[PairVotes, ...]:
    """Return what raters say of each pair of the audit."""
    return tuple(
        PairVotes(
            pair,
            audit.key[pair].grade,
            {
                rater: one
                for rater, given in labels.items()
                if (one := given.get(pair)) is not None and one.label is not None
            },
        )
        for pair in audit.pairs
    )
