"""How good scores are: ranks, what a threshold keeps, and how far probabilities hold."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from ir_measures import AP
from numpy.typing import ArrayLike

from deepera_graph.bench.metrics.ir import evaluate_run, to_run
from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.bench.metrics.named import compute
from deepera_graph.bench.metrics.resample import Interval, bootstraps
from deepera_graph.bench.metrics.values import Floats, Values
from deepera_graph.calibration.quality import brier_score, calibration_error
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.judge.train.scored import Scored

RANKS = ("HitRate@1", "HitRate@3", "RP", "nDCG@10")
KEPT = ("kept", "precision", "any golden", "empty")
BEST = ("golden", "any golden")
CUTS = (5, 10, 20, 30)
TAU = 0.8
TAUS = tuple(step / 20 for step in range(1, 20))
N_RESAMPLES = 2000
N_BINS = 10
ColumnT = TypeVar("ColumnT")
_CUT = 10


class Bin(NamedTuple):
    """Passages with probabilities of one tenth of the scale.

    Attributes:
        low: Least probability.
        high: Beyond the largest.
        n: Passages.
        mean: Mean probability; None if there is no passage.
        share: Of them that are evidence; None if there is no passage.
    """

    low: float
    high: float
    n: int
    mean: float | None
    share: float | None


def rank_metrics(
    scored: Sequence[Scored], *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> dict[str, Interval]:
    """Return `RANKS` with intervals of 95 % over groups; over questions that have an answer.

    Raises:
        InputError: No question has one.
    """
    answerable = [one for one in scored if one.pool.n_golden]
    if not answerable:
        raise InputError("no question has a golden passage")
    judged = [one.judged() for one in answerable]
    ones = np.ones(len(judged))
    columns = {name: (compute(name, judged).values, ones) for name in RANKS}
    return _intervals(answerable, columns, n_resamples, seed)


def kept_metrics(
    scored: Sequence[Scored],
    tau: float = TAU,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> dict[str, Interval]:
    """Return what a threshold does, with intervals of 95 % over groups.

    `kept`: passages a question; `precision`: share of the kept that are evidence, not a number if
    nothing is kept; `any golden`: share of the questions of which evidence is kept, out of those
    that have some; `empty`: share of the questions of which nothing is kept.

    Args:
        scored: Not empty.
        tau: Inclusive, in [0, 1].
        n_resamples: >= 1.
        seed: The same seed gives the same intervals.

    Raises:
        SettingsError: *tau* is out of range.
    """
    if not 0 <= tau <= 1:
        raise SettingsError(f"tau must be in [0, 1], got {tau}")
    kept = np.array([(one.scores >= tau).sum() for one in scored], dtype=np.float64)
    found = np.array([_found(one, tau) for one in scored], dtype=np.float64)
    has = np.array([one.pool.n_golden > 0 for one in scored], dtype=np.float64)
    ones = np.ones(len(scored))
    columns = {
        "kept": (kept, ones),
        "precision": (found, kept),
        "any golden": ((found > 0) * has, has),
        "empty": ((kept == 0).astype(np.float64), ones),
    }
    return _intervals(scored, columns, n_resamples, seed)


def operating_curve(
    scored: Sequence[Scored], taus: Sequence[float] = TAUS, *, seed: int = 0
) -> dict[float, dict[str, Interval]]:
    """Return what each threshold does, see `kept_metrics`."""
    return {tau: kept_metrics(scored, tau, n_resamples=500, seed=seed) for tau in taus}


def best_metrics(
    scored: Sequence[Scored], cuts: Sequence[int] = CUTS, *, seed: int = 0
) -> dict[int, dict[str, Interval]]:
    """Return what is left when only the best so many passages of each question go on to a reader.

    `golden`: share of the golden passages among the candidates that are among the best; `any
    golden`: share of the questions, out of those with a golden candidate, that keep one.

    Args:
        scored: Not empty.
        cuts: Passages a question that go on, >= 1; of equal scores the first of the pool.
        seed: Of the intervals.
    """
    ranked = [
        np.asarray(one.pool.labels, np.float64)[np.argsort(-one.scores, kind="stable")]
        for one in scored
    ]
    golden = np.array([labels.sum() for labels in ranked])
    has = (golden > 0).astype(np.float64)
    left = {cut: np.array([labels[:cut].sum() for labels in ranked]) for cut in cuts}
    columns = {(cut, "golden"): (its, golden) for cut, its in left.items()}
    columns |= {(cut, "any golden"): (np.minimum(its, 1.0), has) for cut, its in left.items()}
    found = _intervals(scored, columns, N_RESAMPLES, seed)
    return {cut: {name: found[cut, name] for name in BEST} for cut in cuts}


def reliability(scored: Sequence[Scored]) -> list[Bin]:
    """Return how often passages are evidence whose probability is about the same, in ten bins."""
    values, truth = _flat(scored)
    places = np.minimum((values * N_BINS).astype(int), N_BINS - 1)
    bins = []
    for place in range(N_BINS):
        here = places == place
        n = int(here.sum())
        mean = float(values[here].mean()) if n else None
        share = float(truth[here].mean()) if n else None
        bins.append(Bin(place / N_BINS, (place + 1) / N_BINS, n, mean, share))
    return bins


def calibration_metrics(scored: Sequence[Scored]) -> dict[str, float]:
    """Return the Brier score and the expected calibration error, both in [0, 1]; 0 is best."""
    values, truth = _flat(scored)
    labels = [int(one) for one in truth]
    return {
        "Brier": brier_score(list(values), labels),
        "calibration error": calibration_error(list(values), labels),
    }


def mean_average_precision(scored: Sequence[Scored]) -> float:
    """Return MAP@10, in [0, 1], over questions that have an answer.

    Source:
        BioASQ's measure of document retrieval, which cross-encoders are chosen by; with all golden
        passages in the denominator, as trec_eval has it.

    Raises:
        InputError: No question has a golden passage.
    """
    answerable = [one.judged() for one in scored if one.pool.n_golden]
    if not answerable:
        raise InputError("no question has a golden passage")
    return float(np.mean(list(_average_precision(answerable).values())))


def _average_precision(judged: Sequence[Judged]) -> Mapping[str, float]:
    run = to_run({str(place): one.ranked for place, one in enumerate(judged)})
    golden = {str(place): dict(one.golden) for place, one in enumerate(judged)}
    return evaluate_run(AP @ _CUT, golden, run)


def _found(one: Scored, tau: float) -> int:
    return int(((one.scores >= tau) & (np.asarray(one.pool.labels) == 1)).sum())


def _flat(scored: Sequence[Scored]) -> tuple[Floats, Floats]:
    values = np.concatenate([one.scores for one in scored])
    truth = np.concatenate([np.asarray(one.pool.labels, np.float64) for one in scored])
    return values, truth


def _intervals(
    scored: Sequence[Scored],
    columns: Mapping[ColumnT, tuple[Floats, Floats]],
    n_resamples: int,
    seed: int,
) -> dict[ColumnT, Interval]:
    """Return sums of the first over sums of the second, with intervals over groups."""
    names = {one.pool.group: 0 for one in scored}
    place = {group: number for number, group in enumerate(names)}
    groups = np.array([place[one.pool.group] for one in scored])
    values = [_by_group(groups, above, below) for above, below in columns.values()]
    found = bootstraps(values, n_resamples=n_resamples, seed=seed)
    return dict(zip(columns, found, strict=True))


def _by_group(groups: ArrayLike, above: Floats, below: Floats) -> Values:
    """Return a value a group, weighted so that the mean is the ratio of the sums."""
    over = np.bincount(groups, weights=above)
    under = np.bincount(groups, weights=below)
    return Values.of(np.divide(over, under, out=np.zeros_like(over), where=under > 0), under)
