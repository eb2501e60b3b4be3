"""Intervals, permutation tests, means over repeats, folds, calibration errors, logistic fits.

The bootstrap is our own, as its columns share one resample of the questions: scipy's takes no
weights and resamples one statistic at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepera_graph.calibration.instance import MetricError
from deepera_graph.packages import import_extra

Floats = NDArray[np.float64]
N_RESAMPLES = 10_000
LEVEL = 0.95
MAX_FAILED_SHARE = 0.2  # of what is measured, in [0, 1]; our choice, as that of a run's settings
_CELLS_AT_ONCE = 2_000_000
_ROUNDING = 1e-9
N_BINS = 10
_ALONE, _FEW = 3, 30  # questions: fewer say nothing, of more the intervals are good enough


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """A metric over questions."""

    values: Floats  # one number a question, shape (n_questions,)
    weights: Floats  # how much the question counts, >= 0, shape (n_questions,); 1 for most metrics
    added: float = 0.0  # if > 0, the mean is the geometric one, of the values with this added

    @classmethod
    def of(cls, values: ArrayLike, weights: ArrayLike | None = None, *, added: float = 0.0) -> Self:
        """Make arrays of both, weights 1 when None."""
        numbers = np.asarray(values, dtype=np.float64)
        counts = np.ones_like(numbers) if weights is None else np.asarray(weights, np.float64)
        if numbers.shape != counts.shape or numbers.ndim != 1:
            raise MetricError(
                f"values and weights must have one shape, got {numbers.shape} and {counts.shape}"
            )
        if not (np.isfinite(numbers).all() and np.isfinite(counts).all()):
            raise MetricError("values must be finite numbers")
        return cls(numbers, counts, added)

    def mean(self) -> float:
        """Return the weighted mean; not a number when nothing counts."""
        total = float(self.weights.sum())
        if not total:
            return float("nan")
        return float(self.to_means(np.asarray(float(self.terms() @ self.weights) / total)))

    def terms(self) -> Floats:
        """Return what is averaged: the values, or the logarithms of them with `added`."""
        return np.log(self.values + self.added) if self.added else self.values

    def to_means(self, means: Floats) -> Floats:
        """Return the means that means of the terms stand for."""
        return np.exp(means) if self.added else means

    def std(self) -> float:
        """Return the standard deviation (n - 1) over what counts; 0 for fewer than two."""
        counted = self.values[self.weights > 0]
        return float(np.std(counted, ddof=1)) if len(counted) > 1 else 0.0

    def of_places(self, places: Sequence[int]) -> Self:
        """Return the values of some questions."""
        chosen = np.asarray(places, dtype=np.int64)
        return type(self)(self.values[chosen], self.weights[chosen])


class Interval(NamedTuple):
    """A mean and its interval, which is NaN where fewer than two units count: none is known."""

    mean: float
    low: float
    high: float


def bootstrap(values: Values, *, n_resamples: int = N_RESAMPLES, seed: int = 0) -> Interval:
    """Return the mean and its percentile interval over resampled questions; see `bootstraps`."""
    return bootstraps([values], n_resamples=n_resamples, seed=seed)[0]


def bootstraps(
    columns: Sequence[Values], *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> list[Interval]:
    """Return mean and percentile interval of many metrics over the same resampled questions."""
    # Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
    means = _resample_means(columns, n_resamples, seed)
    counted = [int((one.weights > 0).sum()) for one in columns]
    return [
        _interval(one.mean(), means[:, number], counted[number])
        for number, one in enumerate(columns)
    ]


def paired_bootstraps(
    pairs: Sequence[tuple[Values, Values]], *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> list[Interval]:
    """Return the difference of each pair and its interval, over the same resamples of both."""
    if not pairs:
        return []
    means = _resample_means([one for pair in pairs for one in pair], n_resamples, seed)
    return [
        _interval(
            first.mean() - second.mean(),
            means[:, 2 * number] - means[:, 2 * number + 1],
            int((first.weights > 0).sum()),
        )
        for number, (first, second) in enumerate(pairs)
    ]


def bootstrap_ratios(
    above: Floats, below: Floats, *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> list[Interval]:
    """Return sums over questions divided, a column each, with their percentile intervals."""
    # Whole questions are drawn, the same for every column; shape (n_questions, n) each. Resamples
    # that would divide by 0 are left out.
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = above.sum(axis=0) / below.sum(axis=0)
    drawn = _resample_ratios(above, below, n_resamples, seed)
    counted = ((above != 0) | (below != 0)).sum(axis=0)
    return [
        _interval(float(one), column, int(n))
        for one, column, n in zip(ratios, drawn.T, counted, strict=True)
    ]


def bootstrap_sums(
    columns: Sequence[tuple[Floats, Callable[[Floats], Floats]]],
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> list[Interval]:
    """Return statistics that are made of sums over questions, with their percentile intervals."""
    # Each is a table of shape (n_questions, n) and what makes the statistic of its sums, from shape
    # (..., n) to shape (...). All are computed on the same resampled questions; resamples in which
    # one is no number are left out of its interval.
    if not columns:
        return []
    tables = [table for table, _ in columns]
    n_questions = len(tables[0])
    if not n_questions or any(len(one) != n_questions for one in tables):
        raise MetricError(f"all must have the same questions, got {sorted({*map(len, tables)})}")
    rng = np.random.default_rng(seed)
    drawn: list[list[Floats]] = [[] for _ in columns]
    for n in _chunks(n_resamples, n_questions):
        times = _times_drawn(rng, n, n_questions)
        for found, (table, combine) in zip(drawn, columns, strict=True):
            with np.errstate(invalid="ignore"):
                found.append(combine(times @ table))
    return [
        _interval(float(combine(table.sum(axis=0))), np.concatenate(found), n_questions)
        for found, (table, combine) in zip(drawn, columns, strict=True)
    ]


def deal_folds(strata: Sequence[Any], *, n_folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of each item, from 0: shuffled, and dealt out stratum by stratum."""
    shuffled = np.random.default_rng(seed).permutation(len(strata))
    folds = np.empty(len(strata), dtype=np.int64)
    folds[sorted(shuffled, key=lambda i: strata[i])] = np.arange(len(strata)) % n_folds
    return folds


def permutation_tests(
    pairs: Sequence[tuple[Values, Values]], *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> list[float]:
    """Return the two-sided p-value, in (0, 1], that the two of a pair are alike, by swaps."""
    # Not a number where nothing counts in one of them.
    # Source: Smucker, Allan and Carterette (2007), CIKM; one is added to both counts as in Phipson
    # and Smyth (2010).
    if not pairs:
        return []
    n_questions = _check_questions([one for pair in pairs for one in pair])
    differences = np.column_stack([_weighted_difference(*pair) for pair in pairs])
    observed = np.abs(differences.sum(axis=0))
    rng = np.random.default_rng(seed)
    as_large = np.zeros(len(pairs))
    for n in _chunks(n_resamples, n_questions):
        signs = rng.integers(0, 2, size=(n, n_questions), dtype=np.int8) * 2.0 - 1.0
        as_large += (np.abs(signs @ differences) >= observed - _ROUNDING).sum(axis=0)
    found = ((as_large + 1) / (n_resamples + 1)).tolist()
    counts = [first.weights.any() and second.weights.any() for first, second in pairs]
    return [p if is_known else float("nan") for p, is_known in zip(found, counts, strict=True)]


def _resample_means(columns: Sequence[Values], n_resamples: int, seed: int) -> Floats:
    """Return the weighted means of resampled questions, shape (n_resamples, n_columns)."""
    _check_questions(columns)
    products = np.column_stack([one.terms() * one.weights for one in columns])
    weights = np.column_stack([one.weights for one in columns])
    means = _resample_ratios(products, weights, n_resamples, seed)
    return np.column_stack([one.to_means(means[:, place]) for place, one in enumerate(columns)])


def _resample_ratios(above: Floats, below: Floats, n_resamples: int, seed: int) -> Floats:
    """Return sums over resampled questions divided, shape (n_resamples, n_columns)."""
    rng = np.random.default_rng(seed)
    found = []
    for n in _chunks(n_resamples, len(above)):
        times = _times_drawn(rng, n, len(above))
        with np.errstate(invalid="ignore", divide="ignore"):
            found.append((times @ above) / (times @ below))
    return np.concatenate(found)


def _times_drawn(rng: np.random.Generator, n: int, n_questions: int) -> Floats:
    """Return how often each resample has each question, shape (n, n_questions)."""
    drawn = rng.integers(0, n_questions, size=(n, n_questions))
    drawn += np.arange(n)[:, None] * n_questions
    counts = np.bincount(drawn.ravel(), minlength=n * n_questions)
    return counts.reshape(n, n_questions).astype(np.float64)


def _interval(mean: float, means: Floats, n_units: int) -> Interval:
    """Return the interval of resampled means; those of a single unit are alike, and tell none."""
    counted = means[np.isfinite(means)]
    if not len(counted) or n_units < 2:
        return Interval(mean, float("nan"), float("nan"))
    low, high = np.quantile(counted, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(mean, float(low), float(high))


def tell_few(n: int) -> str:
    """Return what *n* questions leave open, as a sentence; blank where they are not few."""
    # Source: the rule of three: Hanley and Lippman-Hand (1983), JAMA 249.
    if n <= _ALONE:
        return "So few questions say nothing of others."
    few = f"Where all {n} come out alike, up to {300 / n:.0f} % of other questions may still not."
    return few if n < _FEW else ""


def _weighted_difference(first: Values, second: Values) -> Floats:
    if not np.array_equal(first.weights, second.weights):
        raise MetricError("both rankers must have the same weights")
    return (first.terms() - second.terms()) * first.weights


def _chunks(n_resamples: int, n_questions: int) -> Iterator[int]:
    size = max(1, _CELLS_AT_ONCE // max(n_questions, 1))
    for start in range(0, n_resamples, size):
        yield min(size, n_resamples - start)


def _check_questions(columns: Sequence[Values]) -> int:
    sizes = {len(one.values) for one in columns}
    if len(sizes) != 1:
        raise MetricError(f"all columns must have the same questions, got {sorted(sizes)}")
    (size,) = sizes
    if not size:
        raise MetricError("resampling needs at least one question")
    return size


class MeanStd(NamedTuple):
    """Mean and standard deviation (n - 1) over repeats; 0 for a single one."""

    mean: float
    std: float


def mean_std(means: Sequence[float]) -> MeanStd:
    """Return mean and standard deviation of one number a repeat."""
    if not means:
        raise MetricError("a spread needs at least one repeat")
    numbers = np.asarray(means, dtype=np.float64)
    return MeanStd(float(numbers.mean()), float(numbers.std(ddof=1)) if len(means) > 1 else 0.0)


def pool_runs(repeats: Sequence[Values]) -> Values:
    """Return the mean over repeats of each question, where weights may differ from run to run."""
    if len({len(one.values) for one in repeats}) != 1:
        raise MetricError("runs are pooled over the same questions, and at least one run")
    weights = np.mean([one.weights for one in repeats], axis=0)
    products = np.mean([one.values * one.weights for one in repeats], axis=0)
    means = products / np.where(weights > 0, weights, 1.0)
    return Values.of(means, weights, added=repeats[0].added)


class LogisticModel(NamedTuple):
    """Weights of shape (n_columns,), and the intercept, of a logistic regression."""

    weights: Floats
    intercept: float


def fit_logistic(
    rows: Any, labels: ArrayLike, weights: ArrayLike | None = None, **options: Any
) -> LogisticModel:
    """Fit a logistic regression of scikit-learn, with an L2 penalty of 1 / `C`."""
    linear = import_extra("sklearn.linear_model", extra="calibrate", what="a logistic fit")
    model = linear.LogisticRegression(**{"max_iter": 2000, **options})
    model.fit(rows, labels, sample_weight=weights)
    return LogisticModel(model.coef_[0], float(model.intercept_[0]))


def brier_score(probabilities: Sequence[float], labels: Sequence[int]) -> float:
    """Return the mean squared error of probabilities, in [0, 1]; 0 is best."""
    # Source: Brier (1950), Monthly Weather Review 78(1), for two classes.
    errors = np.asarray(probabilities, dtype=float) - np.asarray(labels, dtype=float)
    return float(np.mean(errors**2))


def calibration_error(
    probabilities: Sequence[float], labels: Sequence[int], *, n_bins: int = N_BINS
) -> float:
    """Return the expected calibration error, in [0, 1], over bins of equal width; 0 is best."""
    # Source: Naeini, Cooper and Hauskrecht (2015), AAAI, with ten bins; bins of equal width as in
    # Guo, Pleiss, Sun and Weinberger (2017), ICML, section 2.
    values, truth = np.asarray(probabilities, dtype=float), np.asarray(labels, dtype=float)
    bins = np.minimum((values * n_bins).astype(int), n_bins - 1)
    apart = np.bincount(bins, weights=values - truth, minlength=n_bins)
    return float(np.abs(apart).sum() / len(values))


def find_groups(keys: Sequence[Sequence[str]]) -> list[str]:
    """Return the group of each item: those that share a key, or are joined by others, share it."""
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        parent.setdefault(key, key)
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for its in keys:
        for key in its:
            one, two = sorted((root(its[0]), root(key)))
            parent[two] = one
    return [root(its[0]) for its in keys]
