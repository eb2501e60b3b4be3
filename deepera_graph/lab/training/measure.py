"""Folds, and how good scores are: ranks, what a threshold keeps, how far probabilities hold."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from ir_measures import AP
from numpy.typing import NDArray

from deepera_graph.calibration.statistics import (
    Floats,
    Interval,
    bootstrap_ratios,
    brier_score,
    calibration_error,
    deal_folds,
)
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.lab.metrics.ranking import JudgedRanking, compute, evaluate_run, to_run
from deepera_graph.lab.training.lessons.pools import Pool
from deepera_graph.lab.training.weights import SCORE, Log, log_nothing

N_FOLDS = 5
RANKS = ("HitRate@1", "HitRate@3", "MRR", "nDCG@10")
KEPT = ("kept", "recall", "precision", "any golden", "empty")
BEST = ("golden", "any golden")
CUTS = (5, 10, 20, 30)
TAU = 0.8
TAUS = tuple(step / 20 for step in range(1, 20))
N_RESAMPLES = 2000
N_BINS = 10
_CUT = 10
ColumnT = TypeVar("ColumnT")
PoolScorer = Callable[[Pool], Sequence[float]]


def assign_folds(pools: Sequence[Pool], *, n_folds: int = N_FOLDS, seed: int = 0) -> list[int]:
    """Return the fold, from 0, of each pool; groups are dealt out set by set, in any order."""
    if n_folds < 2:
        raise SettingsError(f"folds must be >= 2, got {n_folds}")
    first_set: dict[str, str] = {}
    for pool in pools:
        name = first_set.get(pool.group)
        first_set[pool.group] = pool.set if name is None else min(name, pool.set)
    if len(first_set) < n_folds:
        raise SettingsError(
            f"{n_folds} folds need as many groups of questions, got {len(first_set)}"
        )
    names = sorted(first_set)
    folds = deal_folds([first_set[group] for group in names], n_folds=n_folds, seed=seed)
    fold_of = dict(zip(names, folds.tolist(), strict=True))
    return [fold_of[pool.group] for pool in pools]


def split_held_out(
    pools: Sequence[Pool], share: float, *, seed: int = 0
) -> tuple[list[Pool], list[Pool]]:
    """Return pools to train on, and to choose by; *share* is of the groups, in (0, 1)."""
    if not 0 < share < 1:
        raise SettingsError(f"the share held out must be in (0, 1), got {share}")
    names = sorted({pool.group for pool in pools})
    if len(names) < 2:
        raise SettingsError(f"two groups of questions are needed to hold one out, got {len(names)}")
    n_out = min(max(round(share * len(names)), 1), len(names) - 1)
    drawn = np.random.default_rng(seed).permutation(len(names))[:n_out]
    out = {names[place] for place in drawn}
    return (
        [pool for pool in pools if pool.group not in out],
        [pool for pool in pools if pool.group in out],
    )


@dataclass(frozen=True, slots=True, eq=False)
class ScoredPool:
    """A pool, and the probability that each passage is evidence, in [0, 1], shape (n_passages,)."""

    pool: Pool
    scores: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.scores.shape != (len(self.pool.passages),):
            raise InputError(
                f"question {self.pool.id!r}: {len(self.pool.passages)} passages need as many "
                f"scores, got the shape {self.scores.shape}"
            )
        outside = self.scores[~((self.scores >= 0) & (self.scores <= 1))]
        if len(outside):
            raise InputError(
                f"question {self.pool.id!r}: scores must be in [0, 1], got {float(outside[0])}"
            )

    def to_ranking(self) -> JudgedRanking:
        """Return the ranking that the scores give, ties in first-stage order."""
        ranked = np.argsort(-self.scores, kind="stable")
        golden = {str(place): 1 for place in np.flatnonzero(self.pool.labels)}
        missed = {f"outside {number}": 1 for number in range(self.pool.golden_outside)}
        return JudgedRanking(
            id=self.pool.id,
            ranked=tuple(map(str, ranked)),
            n_candidates=len(ranked),
            golden={**golden, **missed},
            parents={},
        )


def score_pools(
    pools: Sequence[Pool], scorer: PoolScorer, log: Log = log_nothing
) -> Iterator[ScoredPool]:
    """Yield each pool with its scores."""
    for n_done, pool in enumerate(pools, start=1):
        yield ScoredPool(pool, np.asarray(scorer(pool), dtype=np.float64))
        log({"step": SCORE, "set": pool.set, "done": n_done, "of": len(pools)})


class FitJudge(Protocol):
    """Fits a judge to pools and gives what scores others."""

    def __call__(
        self, pools: Sequence[Pool], *, seed: int, log: Log, without: Collection[str] = ()
    ) -> PoolScorer:
        """Fit; *without* names features that the judge has to do without."""


def cross_validate(
    pools: Sequence[Pool],
    learn: FitJudge,
    *,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    without: Collection[str] = (),
    train_on: Collection[Pool] | None = None,
    log: Log = log_nothing,
) -> list[ScoredPool]:
    """Return each pool with the scores of a judge fitted on the other folds."""
    # Pools of weight 0 are measured and never trained on. An ablation trains *without* some
    # features, or on other pools of the same groups.
    fold_of = dict(
        zip(
            (pool.group for pool in pools),
            assign_folds(pools, n_folds=n_folds, seed=seed),
            strict=True,
        )
    )
    teaching = [one for one in (pools if train_on is None else train_on) if one.weight]
    scored: dict[tuple[str, str], ScoredPool] = {}
    for fold in range(n_folds):
        train = [one for one in teaching if fold_of[one.group] != fold]
        test = [one for one in pools if fold_of[one.group] == fold]
        log({"step": "fold", "fold": fold, "train": len(train), "test": len(test)})
        scorer = learn(train, seed=seed, log=log, without=without)
        scored.update({(one.pool.set, one.pool.id): one for one in score_pools(test, scorer, log)})
    return [scored[pool.set, pool.id] for pool in pools]


class ReliabilityBin(NamedTuple):
    """Passages of nearly one probability, from *low* on; mean and share are None without any."""

    low: float
    high: float
    n: int
    mean: float | None
    share: float | None


def compute_rank_metrics(
    scored: Sequence[ScoredPool], *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> dict[str, Interval]:
    """Return `RANKS` with intervals of 95 % over groups; over questions that have an answer."""
    # They are no numbers if no question has an answer.
    answerable = [one for one in scored if one.pool.n_golden]
    if not answerable:
        return dict.fromkeys(RANKS, Interval(nan, nan, nan))
    judged = [one.to_ranking() for one in answerable]
    ones = np.ones(len(judged))
    columns = {name: (compute(name, judged).values, ones) for name in RANKS}
    return _compute_intervals(answerable, columns, n_resamples, seed)


def compute_threshold_metrics(
    scored: Sequence[ScoredPool], tau: float = TAU, *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> dict[str, Interval]:
    """Return what a threshold *tau*, inclusive, does, with intervals of 95 % over groups."""
    # `recall` is out of all golden passages, `any golden` of the questions that have some;
    # `precision` is not a number if nothing is kept
    if not 0 <= tau <= 1:
        raise SettingsError(f"tau must be in [0, 1], got {tau}")
    kept = np.array([(one.scores >= tau).sum() for one in scored], dtype=np.float64)
    found = np.array(
        [((one.scores >= tau) & (np.asarray(one.pool.labels) == 1)).sum() for one in scored],
        dtype=np.float64,
    )
    golden = np.array([one.pool.n_golden for one in scored], dtype=np.float64)
    has = np.array([one.pool.n_golden > 0 for one in scored], dtype=np.float64)
    ones = np.ones(len(scored))
    columns = {
        "kept": (kept, ones),
        "recall": (found, golden),
        "precision": (found, kept),
        "any golden": ((found > 0) * has, has),
        "empty": ((kept == 0).astype(np.float64), ones),
    }
    return _compute_intervals(scored, columns, n_resamples, seed)


def compute_operating_curve(
    scored: Sequence[ScoredPool], taus: Sequence[float] = TAUS, *, seed: int = 0
) -> dict[float, dict[str, Interval]]:
    """Return what each threshold does, see `compute_threshold_metrics`."""
    return {tau: compute_threshold_metrics(scored, tau, n_resamples=500, seed=seed) for tau in taus}


def compute_prefilter_metrics(
    scored: Sequence[ScoredPool], cuts: Sequence[int] = CUTS, *, seed: int = 0
) -> dict[int, dict[str, Interval]]:
    """Return what is left when only the best so many passages of each question go to a reader."""
    # `golden` is out of the golden candidates; `any golden` out of the questions with one.
    ranked = [
        np.asarray(one.pool.labels, np.float64)[np.argsort(-one.scores, kind="stable")]
        for one in scored
    ]
    golden = np.array([labels.sum() for labels in ranked])
    has = (golden > 0).astype(np.float64)
    left = {cut: np.array([labels[:cut].sum() for labels in ranked]) for cut in cuts}
    columns = {(cut, "golden"): (its, golden) for cut, its in left.items()}
    columns |= {(cut, "any golden"): (np.minimum(its, 1.0), has) for cut, its in left.items()}
    found = _compute_intervals(scored, columns, N_RESAMPLES, seed)
    return {cut: {name: found[cut, name] for name in BEST} for cut in cuts}


def compute_reliability(scored: Sequence[ScoredPool]) -> list[ReliabilityBin]:
    """Return how often passages are evidence whose probability is about the same, in ten bins."""
    values, truth = _flatten(scored)
    places = np.minimum((values * N_BINS).astype(int), N_BINS - 1)
    bins = []
    for place in range(N_BINS):
        here = places == place
        n = int(here.sum())
        mean = float(values[here].mean()) if n else None
        share = float(truth[here].mean()) if n else None
        bins.append(ReliabilityBin(place / N_BINS, (place + 1) / N_BINS, n, mean, share))
    return bins


def compute_calibration(scored: Sequence[ScoredPool]) -> dict[str, float]:
    """Return the Brier score and the expected calibration error, both in [0, 1]; 0 is best."""
    values, truth = _flatten(scored)
    labels = [int(one) for one in truth]
    return {
        "Brier": brier_score(list(values), labels),
        "calibration error": calibration_error(list(values), labels),
    }


def mean_average_precision(scored: Sequence[ScoredPool]) -> float:
    """Return MAP@10, in [0, 1], over questions that have an answer."""
    # Source: BioASQ's measure of document retrieval, which cross-encoders are chosen by; with all
    # golden passages in the denominator, as trec_eval has it.
    judged = [one.to_ranking() for one in scored if one.pool.n_golden]
    if not judged:
        raise InputError("no question has a golden passage")
    run = to_run({str(place): one.ranked for place, one in enumerate(judged)})
    golden = {str(place): dict(one.golden) for place, one in enumerate(judged)}
    return float(np.mean(list(evaluate_run(AP @ _CUT, golden, run).values())))


def _flatten(scored: Sequence[ScoredPool]) -> tuple[Floats, Floats]:
    values = np.concatenate([one.scores for one in scored])
    truth = np.concatenate([np.asarray(one.pool.labels, np.float64) for one in scored])
    return values, truth


def _compute_intervals(
    scored: Sequence[ScoredPool],
    columns: Mapping[ColumnT, tuple[Floats, Floats]],
    n_resamples: int,
    seed: int,
) -> dict[ColumnT, Interval]:
    """Return sums of the first over sums of the second, with intervals over groups."""
    place: dict[str, int] = {}
    groups = [place.setdefault(one.pool.group, len(place)) for one in scored]
    above, below = (
        np.column_stack([np.bincount(groups, weights=column) for column in side]).astype(np.float64)
        for side in zip(*columns.values(), strict=True)
    )
    found = bootstrap_ratios(above, below, n_resamples=n_resamples, seed=seed)
    return dict(zip(columns, found, strict=True))
