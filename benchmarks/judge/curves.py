"""How good the judge gets with more questions to learn from, and with more trees.

    pip install -e '.[train,bench]'
    python benchmarks/judge/curves.py sets/ --keep vectors -o figures

Both curves are cross-validated. ``learning`` fits judges on 10, 25, 50 and 100 % of the questions;
``trees`` takes the first trees of each ensemble, and only its ranks are to be looked at.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from deepera_graph.calibration.statistics import Interval
from deepera_graph.judges.trained.scorer import EvidenceScorer, PassageRanker, SinglePassageScorer
from deepera_graph.judges.trained.trees import Trees
from deepera_graph.lab.bench.figures import CurveFigure, CurvePoints
from deepera_graph.lab.training.evaluate import EvaluationPlan, save_figures
from deepera_graph.lab.training.fitting.features import FeatureExtractor
from deepera_graph.lab.training.fitting.ranking import RANK_ROUNDS
from deepera_graph.lab.training.fitting.scorer import build_learner, build_scorer, fit_scorer
from deepera_graph.lab.training.lessons.pools import Pool
from deepera_graph.lab.training.measure import (
    N_FOLDS,
    FitJudge,
    PoolScorer,
    ScoredPool,
    assign_folds,
    compute_rank_metrics,
    score_pools,
)
from deepera_graph.lab.training.weights import log_nothing

METRIC = "HitRate@1"
SHARES = (0.1, 0.25, 0.5, 1.0)
SIZES = (10, 25, 50, 100, 200, 350)
RankerT = TypeVar("RankerT", PassageRanker, SinglePassageScorer)


class Point(NamedTuple):
    """What judges of one size reach: of training questions (mean over folds), or of trees."""

    size: float
    metrics: Mapping[str, Mapping[str, Interval]]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        sets = {
            name: {metric: one._asdict() for metric, one in its.items()}
            for name, its in self.metrics.items()
        }
        return {"size": self.size, "sets": sets}


def trace_questions(
    pools: Sequence[Pool],
    learn: FitJudge,
    *,
    shares: Sequence[float] = SHARES,
    n_folds: int = N_FOLDS,
    seed: int = 0,
) -> list[Point]:
    """Return a point a share of the training questions; each is cross-validated.

    A smaller share is part of a larger one: groups join in one order, drawn once a fold.
    """
    points = []
    for share in shares:
        scored: list[ScoredPool] = []
        sizes = []
        for train, test in split_folds(pools, n_folds, seed):
            part = draw_part([one for one in train if one.weight], share, seed)
            sizes.append(len(part))
            scored += score_pools(test, learn(part, seed=seed, log=log_nothing))
        points.append(measure(float(np.mean(sizes)), scored, seed))
    return points


def trace_trees(
    pools: Sequence[Pool],
    fit: Callable[[Sequence[Pool]], EvidenceScorer],
    build: Callable[[EvidenceScorer], PoolScorer],
    *,
    sizes: Sequence[int] = SIZES,
    n_folds: int = N_FOLDS,
    seed: int = 0,
) -> list[Point]:
    """Return a point a number of trees; each fold is fitted once."""
    scored: dict[int, list[ScoredPool]] = {size: [] for size in sizes}
    for train, test in split_folds(pools, n_folds, seed):
        scorer = fit(train)
        for size in sizes:
            scored[size] += score_pools(test, build(take_trees(scorer, size)))
    return [measure(float(size), found, seed) for size, found in scored.items()]


def split_folds(
    pools: Sequence[Pool], n_folds: int, seed: int
) -> Iterator[tuple[list[Pool], list[Pool]]]:
    """Yield the pools to train on and those to test on, fold by fold."""
    sides = list(zip(pools, assign_folds(pools, n_folds=n_folds, seed=seed), strict=True))
    for fold in range(n_folds):
        yield [one for one, its in sides if its != fold], [one for one, its in sides if its == fold]


def draw_part(pools: Sequence[Pool], share: float, seed: int) -> list[Pool]:
    """Return the pools of a share of the groups."""
    names = sorted({pool.group for pool in pools})
    order = np.random.default_rng(seed).permutation(len(names))
    chosen = {names[place] for place in order[: max(1, round(share * len(names)))]}
    return [pool for pool in pools if pool.group in chosen]


def measure(size: float, scored: Sequence[ScoredPool], seed: int) -> Point:
    """Return the rank metrics of each set at one size."""
    by_set: dict[str, list[ScoredPool]] = {}
    for one in scored:
        by_set.setdefault(one.pool.set, []).append(one)
    return Point(size, {name: compute_rank_metrics(its, seed=seed) for name, its in by_set.items()})


def take_trees(scorer: EvidenceScorer, size: int) -> EvidenceScorer:
    """Return the scorer with only the first so many trees of each ensemble of each ranking."""
    return replace(
        scorer,
        question=_take(scorer.question, size),
        article=_take(scorer.article, size),
        claim=_take(scorer.claim, size),
        question_alone=_take(scorer.question_alone, size),
        claim_alone=_take(scorer.claim_alone, size),
    )


def _take(ranker: RankerT, size: int) -> RankerT:
    n_ensembles = len(ranker.trees.roots) // RANK_ROUNDS
    return replace(ranker, trees=slice_trees(ranker.trees, 0, size, n_ensembles))


def slice_trees(trees: Trees, start: int, end: int, n_ensembles: int) -> Trees:
    """Return the trees *start* to *end* of each ensemble of a mean."""
    roots = trees.roots.reshape(n_ensembles, -1)[:, start:end].ravel()
    return replace(trees, roots=roots)


def draw_curve(name: str, what: str, points: Sequence[Point], metric: str = METRIC) -> CurveFigure:
    """Return a metric against a size, a panel a set."""
    sizes = [one.size for one in points]

    def curve(its: str) -> CurvePoints:
        found = [one.metrics[its][metric] for one in points]
        return CurvePoints(
            sizes, [x.mean for x in found], [x.low for x in found], [x.high for x in found]
        )

    return CurveFigure(
        name=name,
        title=f"{metric} against {what}",
        x_label=what,
        y_label=metric,
        panels={its: {metric: curve(its)} for its in points[0].metrics},
    )


def trace(
    plan: EvaluationPlan, pools: Sequence[Pool], extractor: FeatureExtractor
) -> dict[str, list[Point]]:
    """Return both curves of the judge of this package."""
    base, seed, n_folds = plan.load_base(pools), plan.seed, plan.n_folds
    learn = build_learner(extractor, base)

    def fit(train: Sequence[Pool]) -> EvidenceScorer:
        return fit_scorer(train, extractor, seed=seed, base=base)

    def build(scorer: EvidenceScorer) -> PoolScorer:
        return build_scorer(scorer, extractor)

    return {
        "learning": trace_questions(pools, learn, n_folds=n_folds, seed=seed),
        "trees": trace_trees(pools, fit, build, n_folds=n_folds, seed=seed),
    }


def main() -> None:
    """Measure, and write figures and numbers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, nargs="+", help="see `deepera-lab judge evaluate -h`")
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder of the figures")
    parser.add_argument("--folds", type=int, default=N_FOLDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder where vectors are kept")
    chosen = parser.parse_args()
    plan = EvaluationPlan(
        data=tuple(chosen.data), keep=chosen.keep, seed=chosen.seed, n_folds=chosen.folds
    )
    pools = plan.read_pools(to_train=True)
    with plan.open_extractor() as extractor:
        curves = trace(plan, pools, extractor)
    what = {"learning": "training questions", "trees": "trees"}
    save_figures(chosen.out, [draw_curve(name, what[name], its) for name, its in curves.items()])
    rows = {name: [one.to_dict() for one in its] for name, its in curves.items()}
    (chosen.out / "curves.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
