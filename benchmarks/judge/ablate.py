"""What each part of the judge is worth: every signal, data set and type of negative removed once.

    pip install -e '.[train,bench]'
    python benchmarks/judge/ablate.py sets/ --keep vectors --kinds signals,data

Everything is fitted anew for each removal, by cross-validation; the table tells the change.
"""

import argparse
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from deepera_graph.calibration.statistics import Interval, Values, paired_bootstraps
from deepera_graph.errors import InputError
from deepera_graph.judges.trained.features import PassageFeatures
from deepera_graph.judges.trained.pool_features import CONTEXT_FEATURES
from deepera_graph.lab.metrics.ranking import compute
from deepera_graph.lab.tables import format_rows
from deepera_graph.lab.training.evaluate import EvaluationPlan, format_interval
from deepera_graph.lab.training.fitting.scorer import build_learner
from deepera_graph.lab.training.lessons.augment import NEGATIVE_TYPES, classify_negative
from deepera_graph.lab.training.lessons.pools import Pool
from deepera_graph.lab.training.measure import N_FOLDS, FitJudge, ScoredPool, cross_validate

Kind = Literal["signals", "data", "negatives"]
KINDS: tuple[Kind, ...] = get_args(Kind)
METRIC = "HitRate@1"
SIGNALS: Mapping[str, tuple[str, ...]] = {
    "cosine of passage": ("cosine", "near_cosine", "lead", "lead_second"),
    "cosines of sentences": (
        *("sentence_cosine", "sentence_cosine_mean", "first_cosine", "last_cosine"),
        "result_cosine",
    ),
    "late interaction": (
        *("match", "match_least", "match_least3", "found", "sentence_match"),
        *("sentence_match_mean", "result_match"),
    ),
    "results role": (
        *(name for name in PassageFeatures._fields if name.startswith("role")),
        *("result_cosine", "result_match", "pool_role", "by_aims_cosine", "by_aims_words"),
    ),
    "rules": (
        *("grounding", "grounding_spread", "strength", "grounded_coverage", "grounded_strength"),
        *("opening", "closing", "peak", "names"),
    ),
    "words": tuple(name for name in (*CONTEXT_FEATURES, "words_here") if "words" in name),
    "studies": (
        *("topic", "support", "support_any", "link", "linked_topic", "topic_lead"),
        *("supported_lead", "link_two", "support_aims", "pool_topic"),
    ),
    "surroundings": CONTEXT_FEATURES,
}


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


def ablate(
    pools: Sequence[Pool],
    learn: FitJudge,
    *,
    signals: Mapping[str, Collection[str]] = SIGNALS,
    kinds: Collection[Kind] = KINDS,
    metric: str = METRIC,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    watch: Callable[[Removal], object] = lambda removal: None,
) -> Ablation:
    """Cross-validate with all parts, and without each."""
    whole = cross_validate(pools, learn, n_folds=n_folds, seed=seed)
    changes: dict[Removal, Mapping[str, Interval]] = {}
    impossible: dict[Removal, str] = {}
    for removal in list_removals(pools, signals, kinds):
        watch(removal)
        try:
            scored = cross_validate(
                pools,
                learn,
                n_folds=n_folds,
                seed=seed,
                without=signals[removal.name] if removal.kind == "signals" else (),
                train_on=remove(pools, removal),
            )
        except InputError as error:
            impossible[removal] = str(error)
        else:
            changes[removal] = compare(whole, scored, metric, seed)
    means = {name: average(its, metric).mean() for name, its in group_by_set(whole).items()}
    return Ablation(metric=metric, whole=means, changes=changes, impossible=impossible)


def list_removals(
    pools: Sequence[Pool], signals: Collection[str], kinds: Collection[Kind]
) -> Iterator[Removal]:
    """Yield what is removed, one part at a time; parts that no training pool has are left out."""
    trained = [pool for pool in pools if pool.weight]
    negatives = [one for pool in trained for one in pool.passages if not one.label]
    types = {classify_negative(one.kind) for one in negatives}
    sets = dict.fromkeys(pool.set for pool in trained)
    parts: Mapping[Kind, Sequence[str]] = {
        "signals": list(signals),
        "data": list(sets) if len(sets) > 1 else [],
        "negatives": [name for name in NEGATIVE_TYPES if name in types] if len(types) > 1 else [],
    }
    for kind, names in parts.items():
        if kind in kinds:
            yield from (Removal(kind, name) for name in names)


def remove(pools: Sequence[Pool], removal: Removal) -> Sequence[Pool]:
    """Return the pools without a data set or a type of negatives."""
    if removal.kind == "data":
        return [pool for pool in pools if pool.set != removal.name]
    if removal.kind == "negatives":
        return remove_negatives(pools, removal.name)
    return pools


def remove_negatives(pools: Sequence[Pool], name: str) -> list[Pool]:
    """Return the pools without the negatives of one type; those left with nothing are left out."""
    left = [
        (pool, tuple(x for x in pool.passages if x.label or classify_negative(x.kind) != name))
        for pool in pools
    ]
    return [pool.with_passages(kept) for pool, kept in left if kept]


def compare(
    whole: Sequence[ScoredPool], part: Sequence[ScoredPool], metric: str, seed: int
) -> dict[str, Interval]:
    """Return the change of each set, with its interval over groups."""
    before, after = group_by_set(whole), group_by_set(part)
    return {
        name: paired_bootstraps(
            [(average(after[name], metric), average(before[name], metric))], seed=seed
        )[0]
        for name in before
    }


def group_by_set(scored: Sequence[ScoredPool]) -> dict[str, list[ScoredPool]]:
    """Return the answerable pools of each set."""
    found: dict[str, list[ScoredPool]] = {}
    for one in scored:
        if one.pool.n_golden:
            found.setdefault(one.pool.set, []).append(one)
    return found


def average(scored: Sequence[ScoredPool], metric: str) -> Values:
    """Return a mean a group, weighted by its questions."""
    values = compute(metric, [one.to_ranking() for one in scored]).values
    place: dict[str, int] = {}
    groups = [place.setdefault(one.pool.group, len(place)) for one in scored]
    counts = np.bincount(groups).astype(np.float64)
    return Values.of(np.bincount(groups, weights=values) / counts, counts)


def format_ablation(ablation: Ablation) -> str:
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
    table = format_rows([ablation.metric, *sets], [first, *rows])
    return table + "".join(f"{line}\n" for line in (["", *reasons] if reasons else []))


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, nargs="+", help="see `deepera-lab judge evaluate -h`")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of parts (default: all)")
    parser.add_argument("--folds", type=int, default=N_FOLDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder where vectors are kept")
    chosen = parser.parse_args()
    kinds: list[Kind] = [kind for kind in KINDS if kind in chosen.kinds.split(",")]
    plan = EvaluationPlan(data=tuple(chosen.data), keep=chosen.keep)
    pools = plan.read_pools(to_train=True)
    with plan.open_extractor() as extractor:
        learn = build_learner(extractor, plan.load_base(pools))
        found = ablate(
            pools,
            learn,
            kinds=kinds,
            n_folds=chosen.folds,
            seed=chosen.seed,
            watch=lambda removal: sys.stderr.write(f"without {removal.name}\n"),
        )
    sys.stdout.write(format_ablation(found))


if __name__ == "__main__":
    main()
