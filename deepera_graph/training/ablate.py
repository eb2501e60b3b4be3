"""What each part is worth: every signal, data set and type of negative removed once."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np

from deepera_graph.bench.figures import CurveFigure, CurvePoints, save_figure
from deepera_graph.bench.metrics.ranking import compute
from deepera_graph.bench.metrics.statistics import Interval, Values, paired_bootstraps
from deepera_graph.errors import InputError
from deepera_graph.judges.trained.scorer import EvidenceScorer, PassageRanker, SinglePassageScorer
from deepera_graph.training.augment import NEGATIVE_TYPES, classify_negative, remove_negatives
from deepera_graph.training.curves import BY_TREES, LEARNING_CURVE, SIZES, Point, between, point
from deepera_graph.training.data import Pool
from deepera_graph.training.evaluate import (
    N_FOLDS,
    Evaluation,
    FitJudge,
    ScoredPool,
    SetResult,
    assign_folds,
    cross_validate,
    format_interval,
    format_table,
    score_pools,
)
from deepera_graph.training.features import FeatureExtractor
from deepera_graph.training.fit import build_scorer, fit_scorer
from deepera_graph.training.fit_ranking import RANK_ROUNDS
from deepera_graph.training.log import DONE, Event, Log, log_nothing, read_events

Kind = Literal["signals", "data", "negatives"]
KINDS: tuple[Kind, ...] = get_args(Kind)
METRIC = "HitRate@1"


class Removal(NamedTuple):
    """One part that is removed: what sort, and its name."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """What is lost without each part.

    Attributes:
        metric: What is measured.
        whole: Its mean with all parts, by set.
        changes: By part and set, its mean without the part minus `whole`, with its interval of
            95 % over groups.
        impossible: Parts without which nothing can be fitted, and why.
    """

    metric: str
    whole: Mapping[str, float]
    changes: Mapping[Removal, Mapping[str, Interval]]
    impossible: Mapping[Removal, str]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "metric": self.metric,
            "whole": dict(self.whole),
            "changes": [
                {**removal._asdict(), "sets": {name: one._asdict() for name, one in its.items()}}
                for removal, its in self.changes.items()
            ],
            "impossible": [
                {**removal._asdict(), "reason": reason}
                for removal, reason in self.impossible.items()
            ],
        }


def ablate(
    pools: Sequence[Pool],
    learn: FitJudge,
    *,
    signals: Mapping[str, Collection[str]],
    kinds: Collection[Kind] = KINDS,
    metric: str = METRIC,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    log: Log = log_nothing,
) -> Ablation:
    """Cross-validate with all parts, and without each.

    Args:
        pools: What is measured, and trained on.
        learn: Fits a judge.
        signals: Groups of signals, by name.
        kinds: What sorts of parts are removed.
        metric: See `deepera_graph.bench.metrics.ranking.compute`.
        n_folds: >= 2.
        seed: Of the folds and the fits.
        log: Told of each fit.

    Raises:
        SettingsError: There are too few groups for the folds.
        InputError: Nothing can be fitted even with all parts.
        MetricError: The metric is unknown.
    """
    whole = cross_validate(pools, learn, n_folds=n_folds, seed=seed, log=log)
    changes: dict[Removal, Mapping[str, Interval]] = {}
    impossible: dict[Removal, str] = {}
    for removal in removals(pools, signals, kinds):
        log({"step": "ablation", "removed": list(removal)})
        try:
            scored = cross_validate(
                pools,
                learn,
                n_folds=n_folds,
                seed=seed,
                without=signals[removal.name] if removal.kind == "signals" else (),
                train_on=_material(pools, removal),
                log=log,
            )
        except InputError as error:
            impossible[removal] = str(error)
        else:
            changes[removal] = _changes(whole, scored, metric, seed)
    means = {name: _values(its, metric).mean() for name, its in _by_set(whole).items()}
    return Ablation(metric=metric, whole=means, changes=changes, impossible=impossible)


def removals(
    pools: Sequence[Pool], signals: Collection[str], kinds: Collection[Kind]
) -> Iterator[Removal]:
    """Yield what is removed, one part at a time; parts that no training pool has are left out."""
    trained = [pool for pool in pools if pool.weight]
    types = {
        classify_negative(one.kind) for pool in trained for one in pool.passages if not one.label
    }
    sets = dict.fromkeys(pool.set for pool in trained)
    parts: Mapping[Kind, Sequence[str]] = {
        "signals": list(signals),
        "data": list(sets) if len(sets) > 1 else [],
        "negatives": [name for name in NEGATIVE_TYPES if name in types] if len(types) > 1 else [],
    }
    for kind, names in parts.items():
        if kind in kinds:
            yield from (Removal(kind, name) for name in names)


def ablation_table(ablation: Ablation) -> str:
    """Return the ablation as Markdown, times 100; a change below 0 is a loss."""
    sets = list(ablation.whole)
    first = ["everything", *(f"{100 * ablation.whole[name]:.1f}" for name in sets)]
    rows = [
        [
            f"without {removal.kind}: {removal.name}",
            *(format_interval(ablation.metric, its[name]) for name in sets),
        ]
        for removal, its in ablation.changes.items()
    ]
    reasons = [
        f"without {removal.kind}: {removal.name}: cannot be fitted, as {reason}"
        for removal, reason in ablation.impossible.items()
    ]
    lines = format_table([ablation.metric, *sets], [first, *rows])
    return "\n".join([*lines, *(["", *reasons] if reasons else [])]) + "\n"


def _material(pools: Sequence[Pool], removal: Removal) -> Sequence[Pool]:
    if removal.kind == "data":
        return [pool for pool in pools if pool.set != removal.name]
    if removal.kind == "negatives":
        return remove_negatives(pools, removal.name)
    return pools


def _changes(
    whole: Sequence[ScoredPool], part: Sequence[ScoredPool], metric: str, seed: int
) -> dict[str, Interval]:
    before, after = _by_set(whole), _by_set(part)
    return {
        name: paired_bootstraps(
            [(_values(after[name], metric), _values(before[name], metric))], seed=seed
        )[0]
        for name in before
    }


def _by_set(scored: Sequence[ScoredPool]) -> dict[str, list[ScoredPool]]:
    found: dict[str, list[ScoredPool]] = {}
    for one in scored:
        if one.pool.n_golden:
            found.setdefault(one.pool.set, []).append(one)
    return found


def _values(scored: Sequence[ScoredPool], metric: str) -> Values:
    """Return a mean a group, weighted by its questions."""
    values = compute(metric, [one.judged() for one in scored]).values
    place: dict[str, int] = {}
    groups = [place.setdefault(one.pool.group, len(place)) for one in scored]
    counts = np.bincount(groups).astype(np.float64)
    return Values.of(np.bincount(groups, weights=values) / counts, counts)


SUFFIXES = (".svg", ".png")
_OPERATING = ("precision", "any golden", "empty")


def operating_figure(evaluation: Evaluation) -> CurveFigure:
    """Return what thresholds keep, a panel a set."""
    return CurveFigure(
        name="operating",
        title="What a threshold keeps",
        x_label="threshold",
        y_label="share",
        panels={
            name: {
                column: _curve(list(one.curve), [its[column] for its in one.curve.values()])
                for column in _OPERATING
            }
            for name, one in evaluation.sets.items()
        },
    )


def reliability_figure(evaluation: Evaluation) -> CurveFigure:
    """Return probabilities against shares of evidence, a panel a set; best is the diagonal."""
    ideal = CurvePoints([0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0], dashed=True)
    return CurveFigure(
        name="reliability",
        title="How far probabilities hold",
        x_label="mean probability",
        y_label="share of evidence",
        panels={
            name: {"ideal": ideal, "judge": _reliability(one)}
            for name, one in evaluation.sets.items()
        },
    )


def learning_figure(points: Sequence[Point], metric: str = METRIC) -> CurveFigure:
    """Return a metric against the number of training questions, a panel a set."""
    return _sizes("learning", "training questions", points, metric)


def trees_figure(points: Sequence[Point], metric: str = METRIC) -> CurveFigure:
    """Return a metric against the number of trees, a panel a set."""
    return _sizes("trees", "trees", points, metric)


def training_figures(log: Path, metric: str = METRIC) -> list[CurveFigure]:
    """Return what the log of a training holds points of: by trees, and by questions if asked for.

    Questions over several papers, over one, and claims are ranked by trees of their own, and shown
    apart.

    Args:
        log: A finished one.
        metric: Which of the rank metrics is shown.
    """
    rows = read_events(log)
    end = [row["step"] for row in rows].index(DONE)
    by_kind = {row["kind"]: _points(row) for row in rows[:end] if row["step"] == BY_TREES}
    by_questions = [_points(row) for row in rows[end:] if row["step"] == LEARNING_CURVE]
    return [
        trees_figure(_side_by_side(by_kind), metric),
        *(learning_figure(points, metric) for points in by_questions),
    ]


def save_figures(folder: Path, figures: Iterable[CurveFigure]) -> list[Path]:
    """Write each figure as SVG and as PNG; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for figure in figures:
        drawn = figure.draw()
        for suffix in SUFFIXES:
            paths.append(folder / f"{figure.name}{suffix}")
            save_figure(drawn, paths[-1])
    return paths


def _points(row: Event) -> list[Point]:
    return [Point.from_dict(one) for one in row["points"]]


def _side_by_side(by_kind: Mapping[str, Sequence[Point]]) -> list[Point]:
    """Return points over the sets of all kinds, which have the same sizes."""
    return [
        Point(
            of_size[0].size,
            {
                f"{name}, {kind}s": its
                for kind, one in zip(by_kind, of_size, strict=True)
                for name, its in one.metrics.items()
            },
        )
        for of_size in zip(*by_kind.values(), strict=True)
    ]


def _sizes(name: str, what: str, points: Sequence[Point], metric: str) -> CurveFigure:
    sizes = [one.size for one in points]
    return CurveFigure(
        name=name,
        title=f"{metric} against {what}",
        x_label=what,
        y_label=metric,
        panels={
            its: {metric: _curve(sizes, [one.metrics[its][metric] for one in points])}
            for its in points[0].metrics
        },
    )


def _curve(x: Sequence[float], its: Sequence[Interval]) -> CurvePoints:
    return CurvePoints(
        x, [one.mean for one in its], [one.low for one in its], [one.high for one in its]
    )


def _line(points: Sequence[tuple[float, float]]) -> CurvePoints:
    x, y = [one for one, _ in points], [one for _, one in points]
    return CurvePoints(x, y, y, y)


def _reliability(one: SetResult) -> CurvePoints:
    filled = [(part.mean, part.share) for part in one.bins if part.mean is not None]
    return _line([(mean, share) for mean, share in filled if share is not None])


RankingT = TypeVar("RankingT", PassageRanker, SinglePassageScorer)


def tree_curve(
    pools: Sequence[Pool],
    material: FeatureExtractor,
    *,
    sizes: Sequence[int] = SIZES,
    base: EvidenceScorer | None = None,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    log: Log = log_nothing,
) -> list[Point]:
    """Return a point a number of trees, cross-validated; each fold is fitted once.

    Probabilities are those of all trees, so only ranks are to be looked at.

    Args:
        pools: What is measured, and trained on.
        material: Looks at pools.
        sizes: Numbers of trees, >= 1, rising.
        base: See `fit_scorer`.
        n_folds: >= 2.
        seed: Of the folds and the fits.
        log: Told of each fold.

    Raises:
        SettingsError: There are too few groups for the folds.
        InputError: The pools cannot teach something.
    """
    fold_of = assign_folds(pools, n_folds=n_folds, seed=seed)
    scored: dict[int, list[ScoredPool]] = {size: [] for size in sizes}
    for fold in range(n_folds):
        sides = list(zip(pools, fold_of, strict=True))
        train = [one for one, its in sides if its != fold]
        test = [one for one, its in sides if its == fold]
        log({"step": "tree curve", "fold": fold, "train": len(train)})
        head = fit_scorer(train, material, seed=seed, log=log, base=base)
        for size in sizes:
            scored[size] += score_pools(test, build_scorer(first_trees(head, size), material), log)
    return [point(float(size), found, seed) for size, found in scored.items()]


def first_trees(head: EvidenceScorer, size: int) -> EvidenceScorer:
    """Return the head with only the first so many trees of each ensemble of each ranking."""
    return replace(
        head,
        question=_first(head.question, size),
        article=_first(head.article, size),
        claim=_first(head.claim, size),
        question_alone=_first(head.question_alone, size),
        claim_alone=_first(head.claim_alone, size),
    )


def _first(ranking: RankingT, size: int) -> RankingT:
    n_ensembles = len(ranking.trees.roots) // RANK_ROUNDS
    return replace(ranking, trees=between(ranking.trees, 0, size, n_ensembles))
