"""How good scores are: ranks, what a threshold keeps, and how far probabilities hold."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from ir_measures import AP
from numpy.typing import ArrayLike, NDArray

from deepera_graph.bench.metrics.ranking import JudgedRanking, compute, evaluate_run, to_run
from deepera_graph.bench.metrics.statistics import (
    Floats,
    Interval,
    Values,
    bootstraps,
    brier_score,
    calibration_error,
)
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.training.augment import add_variants
from deepera_graph.training.data import Pool
from deepera_graph.training.log import SCORE, Log, log_nothing

N_FOLDS = 5
Split = tuple[list[Pool], list[Pool]]


def assign_folds(pools: Sequence[Pool], *, n_folds: int = N_FOLDS, seed: int = 0) -> list[int]:
    """Return the fold, from 0, of each pool; all pools of a group have the same one.

    Groups are shuffled and dealt out set by set, so that every fold has its share of each set.

    Args:
        pools: At least as many groups as folds.
        n_folds: >= 2.
        seed: The same seed and groups give the same folds, whatever the order of the pools.

    Raises:
        SettingsError: There are too few groups, or fewer than two folds.
    """
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
    shuffled = [names[place] for place in np.random.default_rng(seed).permutation(len(names))]
    dealt = sorted(shuffled, key=lambda group: first_set[group])  # stable: shuffled within a set
    fold_of = {group: place % n_folds for place, group in enumerate(dealt)}
    return [fold_of[pool.group] for pool in pools]


def split_held_out(pools: Sequence[Pool], share: float, *, seed: int = 0) -> Split:
    """Return the pools to train on, and those to choose by; no group is in both.

    Args:
        pools: What is split.
        share: Of the groups that are held out, in (0, 1); at least one is, and one is not.
        seed: The same seed gives the same split.

    Raises:
        SettingsError: The share is out of range, or there are fewer than two groups.
    """
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


PoolScorer = Callable[[Pool], Sequence[float]]


@dataclass(frozen=True, slots=True, eq=False)
class ScoredPool:
    """A pool, and the probability that each of its passages is evidence.

    Attributes:
        pool: What was judged.
        scores: In [0, 1], shape (n_passages,).

    Raises:
        InputError: There are not as many scores as passages, or one is out of range.
    """

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

    def judged(self) -> JudgedRanking:
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
    """Yield each pool with its scores.

    Args:
        pools: What is scored.
        scorer: Who scores.
        log: Told of every pool that is done.

    Raises:
        InputError: See `ScoredPool`.
    """
    for n_done, pool in enumerate(pools, start=1):
        yield ScoredPool(pool, np.asarray(scorer(pool), dtype=np.float64))
        log({"step": SCORE, "set": pool.set, "done": n_done, "of": len(pools)})


class FitJudge(Protocol):
    """Fits a judge to pools and gives what scores others."""

    def __call__(
        self, pools: Sequence[Pool], *, seed: int, log: Log, without: Collection[str] = ()
    ) -> PoolScorer:
        """Fit; *without* names signals that the judge has to do without."""


def cross_validate(
    pools: Sequence[Pool],
    learn: FitJudge,
    *,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    variants: Collection[str] = (),
    without: Collection[str] = (),
    train_on: Collection[Pool] | None = None,
    log: Log = log_nothing,
) -> list[ScoredPool]:
    """Return each pool with the scores of a judge fitted on the other folds.

    Pools of weight 0 are measured and never trained on.

    Args:
        pools: What is measured, and trained on.
        learn: Fits a judge.
        n_folds: >= 2.
        seed: Of the folds and the fits.
        variants: Kinds of variants that training pools get, see `look_alikes`.
        without: Signals that the judges do without.
        train_on: What is trained on instead, of the same groups; for ablations.
        log: Told of each fold.

    Raises:
        SettingsError: There are too few groups for the folds.
    """
    fold_of = dict(
        zip(
            (pool.group for pool in pools),
            assign_folds(pools, n_folds=n_folds, seed=seed),
            strict=True,
        )
    )
    material = [one for one in (pools if train_on is None else train_on) if one.weight]
    scored: dict[tuple[str, str], ScoredPool] = {}
    for fold in range(n_folds):
        train = [one for one in material if fold_of[one.group] != fold]
        test = [one for one in pools if fold_of[one.group] == fold]
        log({"step": "fold", "fold": fold, "train": len(train), "test": len(test)})
        scorer = learn(
            add_variants(train, kinds=variants, seed=seed), seed=seed, log=log, without=without
        )
        scored.update({(one.pool.set, one.pool.id): one for one in score_pools(test, scorer, log)})
    return [scored[pool.set, pool.id] for pool in pools]


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


class ReliabilityBin(NamedTuple):
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


def compute_rank_metrics(
    scored: Sequence[ScoredPool], *, n_resamples: int = N_RESAMPLES, seed: int = 0
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
    return _compute_intervals(answerable, columns, n_resamples, seed)


def compute_threshold_metrics(
    scored: Sequence[ScoredPool],
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
    found = np.array([_count_found(one, tau) for one in scored], dtype=np.float64)
    has = np.array([one.pool.n_golden > 0 for one in scored], dtype=np.float64)
    ones = np.ones(len(scored))
    columns = {
        "kept": (kept, ones),
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


def _average_precision(judged: Sequence[JudgedRanking]) -> Mapping[str, float]:
    run = to_run({str(place): one.ranked for place, one in enumerate(judged)})
    golden = {str(place): dict(one.golden) for place, one in enumerate(judged)}
    return evaluate_run(AP @ _CUT, golden, run)


def _count_found(one: ScoredPool, tau: float) -> int:
    return int(((one.scores >= tau) & (np.asarray(one.pool.labels) == 1)).sum())


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
    names = {one.pool.group: 0 for one in scored}
    place = {group: number for number, group in enumerate(names)}
    groups = np.array([place[one.pool.group] for one in scored])
    values = [_group_values(groups, above, below) for above, below in columns.values()]
    found = bootstraps(values, n_resamples=n_resamples, seed=seed)
    return dict(zip(columns, found, strict=True))


def _group_values(groups: ArrayLike, above: Floats, below: Floats) -> Values:
    """Return a value a group, weighted so that the mean is the ratio of the sums."""
    over = np.bincount(groups, weights=above)
    under = np.bincount(groups, weights=below)
    return Values.of(np.divide(over, under, out=np.zeros_like(over), where=under > 0), under)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetResult:
    """What was measured on one set.

    Attributes:
        n_questions: How many there are.
        n_groups: Groups that intervals are over.
        n_trained_on: Questions among them that the judge was trained on; its figures are no
            promise then.
        metrics: Rank metrics and what the threshold keeps, by name, with intervals of 95 %.
        curve: What other thresholds keep.
        best: What is left of the evidence when only the best so many passages go on to a reader.
        bins: Probabilities against shares of evidence.
        calibration: Brier score and calibration error.
    """

    n_questions: int
    n_groups: int
    n_trained_on: int
    metrics: Mapping[str, Interval]
    curve: Mapping[float, Mapping[str, Interval]]
    best: Mapping[int, Mapping[str, Interval]]
    bins: Sequence[ReliabilityBin]
    calibration: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What was measured, by set.

    Attributes:
        how: One sentence on what was measured.
        tau: Threshold of the `kept` columns.
        sets: By name, in the order of the data.
    """

    how: str
    tau: float
    sets: Mapping[str, SetResult]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values; null for what is not a number."""
        return {
            "how": self.how,
            "tau": self.tau,
            "sets": {name: _plain_set(one) for name, one in self.sets.items()},
        }


def evaluate(
    scored: Sequence[ScoredPool],
    *,
    how: str,
    tau: float = TAU,
    trained_on: Mapping[str, int] | None = None,
    seed: int = 0,
) -> Evaluation:
    """Measure scores, each set for itself.

    Args:
        scored: Not empty.
        how: One sentence on what is measured, for the report.
        tau: Threshold, inclusive, in [0, 1].
        trained_on: By set, how many of its questions the judge was trained on.
        seed: Of the intervals.

    Raises:
        SettingsError: *tau* is out of range.
        InputError: No question of a set has a golden passage.
    """
    by_set: dict[str, list[ScoredPool]] = {}
    for one in scored:
        by_set.setdefault(one.pool.set, []).append(one)
    seen = trained_on or {}
    return Evaluation(
        how=how,
        tau=tau,
        sets={name: _measure(its, tau, seen.get(name, 0), seed) for name, its in by_set.items()},
    )


def _measure(scored: Sequence[ScoredPool], tau: float, n_trained_on: int, seed: int) -> SetResult:
    return SetResult(
        n_questions=len(scored),
        n_groups=len({one.pool.group for one in scored}),
        n_trained_on=n_trained_on,
        metrics={
            **compute_rank_metrics(scored, seed=seed),
            **compute_threshold_metrics(scored, tau, seed=seed),
        },
        curve=compute_operating_curve(scored, seed=seed),
        best=compute_prefilter_metrics(scored, seed=seed),
        bins=compute_reliability(scored),
        calibration=compute_calibration(scored),
    )


def _plain_set(one: SetResult) -> dict[str, Any]:
    return {
        "questions": one.n_questions,
        "groups": one.n_groups,
        "trained_on": one.n_trained_on,
        "metrics": _plain_metrics(one.metrics),
        "curve": [{"tau": tau, **_plain_metrics(its)} for tau, its in one.curve.items()],
        "best": [{"keep": cut, **_plain_metrics(its)} for cut, its in one.best.items()],
        "reliability": [part._asdict() for part in one.bins],
        "calibration": dict(one.calibration),
    }


def _plain_metrics(metrics: Mapping[str, Interval]) -> dict[str, Any]:
    return {
        name: {key: value if isfinite(value) else None for key, value in one._asdict().items()}
        for name, one in metrics.items()
    }


COLUMNS = (*RANKS, *KEPT)

_COUNTS = frozenset({"kept"})
_CURVE = ("kept", "precision", "any golden", "empty")


def format_evaluation(evaluation: Evaluation) -> str:
    """Return the tables: all sets, then of each its operating curve and its reliability.

    Between them, what share of the golden passages is among the best so many of their question, as
    a pre-filter would keep them.

    Shares are times 100; a kept count is passages a question. Intervals are of 95 %, by bootstrap
    over groups of questions.
    """
    parts = [evaluation.how, "", *_overview(evaluation)]
    parts += ["", "## What a pre-filter keeps", "", *_best(evaluation)]
    for name, one in evaluation.sets.items():
        parts += ["", f"## {name}", "", *_curve(one), "", *_reliability(one.bins), ""]
        parts.append(", ".join(f"{key} {value:.3f}" for key, value in one.calibration.items()))
    return "\n".join(parts) + "\n"


def _best(evaluation: Evaluation) -> list[str]:
    """Return a table of the golden passages that are among the best of their question."""
    cuts = list(dict.fromkeys(cut for one in evaluation.sets.values() for cut in one.best))
    rows = [
        [name, *(format_interval("golden", one.best[cut]["golden"]) for cut in cuts)]
        for name, one in evaluation.sets.items()
    ]
    return format_table(["golden passages among the best", *map(str, cuts)], rows)


def format_overview(evaluation: Evaluation) -> str:
    """Return the table of all sets alone, after the sentence on how it was measured."""
    return "\n".join([evaluation.how, "", *_overview(evaluation)]) + "\n"


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table; all columns but the first are aligned right."""
    marks = ["---", *["---:"] * (len(head) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (head, marks, *rows)]


def format_interval(name: str, one: Interval) -> str:
    """Return a mean with its interval; a dash if it is not a number."""
    if not isfinite(one.mean):
        return "-"
    if name in _COUNTS:
        return f"{one.mean:.2f} ({one.low:.2f} to {one.high:.2f})"
    return f"{100 * one.mean:.1f} ({100 * one.low:.1f} to {100 * one.high:.1f})"


def _overview(evaluation: Evaluation) -> list[str]:
    at = f"at {evaluation.tau:g}"
    head = ["set", "questions", *(f"{name} {at}" if name == "kept" else name for name in COLUMNS)]
    rows = [
        [
            name,
            _questions(one),
            *(format_interval(column, one.metrics[column]) for column in COLUMNS),
        ]
        for name, one in evaluation.sets.items()
    ]
    return format_table(head, rows)


def _questions(one: SetResult) -> str:
    if not one.n_trained_on:
        return str(one.n_questions)
    return f"{one.n_questions} ({one.n_trained_on} trained on)"


def _curve(one: SetResult) -> list[str]:
    rows = [
        [f"{tau:.2f}", *(format_interval(name, its[name]) for name in _CURVE)]
        for tau, its in one.curve.items()
    ]
    return format_table(["threshold", *_CURVE], rows)


def _reliability(bins: Sequence[ReliabilityBin]) -> list[str]:
    rows = [
        [f"{one.low:.1f} to {one.high:.1f}", str(one.n), f"{one.mean:.3f}", f"{one.share:.3f}"]
        for one in bins
        if one.mean is not None and one.share is not None
    ]
    return format_table(["probability", "passages", "mean probability", "share of evidence"], rows)
