"""What each part is worth: every signal, data set and type of negative removed once."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from deepera_graph.bench.metrics.named import compute
from deepera_graph.bench.metrics.resample import Interval, paired_bootstraps
from deepera_graph.bench.metrics.values import Values
from deepera_graph.errors import InputError
from deepera_graph.judge.train.cross_validate import cross_validated
from deepera_graph.judge.train.folds import N_FOLDS
from deepera_graph.judge.train.learn import Learn
from deepera_graph.judge.train.log import Log, silent
from deepera_graph.judge.train.look_alikes import NEGATIVE_TYPES, negative_type, without_type
from deepera_graph.judge.train.pool import Pool
from deepera_graph.judge.train.render import cell, table
from deepera_graph.judge.train.scored import Scored

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

    def plain(self) -> dict[str, Any]:
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
    learn: Learn,
    *,
    signals: Mapping[str, Collection[str]],
    kinds: Collection[Kind] = KINDS,
    metric: str = METRIC,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    log: Log = silent,
) -> Ablation:
    """Cross-validate with all parts, and without each.

    Args:
        pools: What is measured, and trained on.
        learn: Fits a judge.
        signals: Groups of signals, by name.
        kinds: What sorts of parts are removed.
        metric: See `deepera_graph.bench.metrics.named.compute`.
        n_folds: >= 2.
        seed: Of the folds and the fits.
        log: Told of each fit.

    Raises:
        SettingsError: There are too few groups for the folds.
        InputError: Nothing can be fitted even with all parts.
        MetricError: The metric is unknown.
    """
    whole = cross_validated(pools, learn, n_folds=n_folds, seed=seed, log=log)
    changes: dict[Removal, Mapping[str, Interval]] = {}
    impossible: dict[Removal, str] = {}
    for removal in removals(pools, signals, kinds):
        log({"step": "ablation", "removed": list(removal)})
        try:
            scored = cross_validated(
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
    types = {negative_type(one.kind) for pool in trained for one in pool.passages if not one.label}
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
            *(cell(ablation.metric, its[name]) for name in sets),
        ]
        for removal, its in ablation.changes.items()
    ]
    reasons = [
        f"without {removal.kind}: {removal.name}: cannot be fitted, as {reason}"
        for removal, reason in ablation.impossible.items()
    ]
    lines = table([ablation.metric, *sets], [first, *rows])
    return "\n".join([*lines, *(["", *reasons] if reasons else [])]) + "\n"


def _material(pools: Sequence[Pool], removal: Removal) -> Sequence[Pool]:
    if removal.kind == "data":
        return [pool for pool in pools if pool.set != removal.name]
    if removal.kind == "negatives":
        return without_type(pools, removal.name)
    return pools


def _changes(
    whole: Sequence[Scored], part: Sequence[Scored], metric: str, seed: int
) -> dict[str, Interval]:
    before, after = _by_set(whole), _by_set(part)
    return {
        name: paired_bootstraps(
            [(_values(after[name], metric), _values(before[name], metric))], seed=seed
        )[0]
        for name in before
    }


def _by_set(scored: Sequence[Scored]) -> dict[str, list[Scored]]:
    found: dict[str, list[Scored]] = {}
    for one in scored:
        if one.pool.n_golden:
            found.setdefault(one.pool.set, []).append(one)
    return found


def _values(scored: Sequence[Scored], metric: str) -> Values:
    """Return a mean a group, weighted by its questions."""
    values = compute(metric, [one.judged() for one in scored]).values
    place: dict[str, int] = {}
    groups = [place.setdefault(one.pool.group, len(place)) for one in scored]
    counts = np.bincount(groups).astype(np.float64)
    return Values.of(np.bincount(groups, weights=values) / counts, counts)
