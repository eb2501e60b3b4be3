"""Look-alikes by type: how many a filter lets through, and how far each is moved up or down."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from deepera_graph.bench.experiments.experiment import (
    Cell,
    Column,
    Experiment,
    ExperimentResult,
    Grid,
)
from deepera_graph.bench.experiments.lab import Lab, Pass
from deepera_graph.bench.experiments.numbers import estimates
from deepera_graph.bench.experiments.scored import Scored
from deepera_graph.bench.figures.bars import BarFigure
from deepera_graph.bench.metrics.values import Values
from deepera_graph.bench.rankers.ranker import NotingRanker
from deepera_graph.bench.table import Estimate

_GOLDEN, _OTHER = "golden", "no look-alike"
_ALL, _RARE = "all look-alikes", "rare types"
FEWEST = 20
_N_COLUMNS = 6


def run(lab: Lab) -> ExperimentResult:
    """Measure."""
    rows: list[tuple[Cell, ...]] = []
    bars: dict[str, dict[str, dict[str, Estimate]]] = {}
    for one in lab.passes():
        if not any(question.labels.types for question in one.questions):
            continue
        for row in _rows(lab, one):
            rows.append(row)
            above = row[-1]
            if isinstance(above, Estimate) and above.mean == above.mean and row[2] != _OTHER:
                in_percent = Estimate(*(100 * part for part in above))
                groups = bars.setdefault(one.material.name, {})
                groups.setdefault(str(row[2]), {})[one.ranker.name] = in_percent
    grid = Grid(
        name="look-alikes",
        title="Look-alikes by type",
        columns=(
            Column("data set"),
            Column("ranker"),
            Column("type"),
            Column("passages", "count"),
            Column("kept", "percent"),
            Column("rank before", "count"),
            Column("rank after", "count"),
            Column("moved up", "count"),
            Column("first", "percent"),
            Column("above the golden", "percent"),
        ),
        rows=tuple(rows),
        note=(
            f"Kept: share that a filter at {lab.setup.threshold:g} hands on, at most "
            f"{lab.setup.top_n} a question; only where scores say what to keep. Rank before "
            "is that of the first stage; moved up is in ranks, below 0 for down; above the golden "
            "is the share that stands before the best golden passage. A passage that was not "
            f"returned stands behind the last one. Rare types are those with fewer than {FEWEST} "
            "passages, together."
        ),
    )
    return ExperimentResult(grids=(grid,), drawings=_figures(bars))


def _rows(lab: Lab, one: Pass) -> Iterator[tuple[Cell, ...]]:
    counts = Counter(type for question in one.questions for type in question.labels.types.values())
    common = frozenset(type for type, count in counts.items() if count >= FEWEST)
    rare = (_RARE,) if len(common) < len(counts) else ()
    types = (_GOLDEN, _ALL, *sorted(common), *rare, _OTHER)
    moves = [_moves(lab, question) for question in one.questions]
    members = {
        type: [_members(question, type, common) for question in one.questions] for type in types
    }
    columns = [column for type in types for column in _columns(moves, members[type])]
    means = iter(estimates(columns, lab.setup))
    for type in types:
        kept, *rest, above = (next(means) for _ in range(_N_COLUMNS))
        yield (
            one.material.name,
            one.ranker.name,
            type,
            sum(map(len, members[type])),
            kept if isinstance(one.ranker, NotingRanker) else None,
            *rest,
            None if type == _GOLDEN else above,
        )


def _members(question: Scored, type: str, common: frozenset[str]) -> list[str]:
    types, golden = question.labels.types, question.judged.golden
    if type == _GOLDEN:
        wanted = {id for id in question.first if id in golden}
    elif type == _OTHER:
        wanted = {id for id in question.first if id not in golden and id not in types}
    elif type == _RARE:
        wanted = {id for id, own in types.items() if own not in common}
    else:
        wanted = {id for id, own in types.items() if type in (own, _ALL)}
    return [id for id in question.first if id in wanted]


def _moves(lab: Lab, question: Scored) -> dict[str, tuple[float, ...]]:
    """Return kept, rank before, rank after, moved up, first and above the golden, by passage."""
    kept = question.kept(threshold=lab.setup.threshold, n=lab.setup.top_n).ranked
    behind = len(question.first)
    after = {id: rank for rank, id in enumerate(question.judged.ranked, start=1)}
    golden = min(question.judged.golden_rank(), behind)
    moves: dict[str, tuple[float, ...]] = {}
    for before, id in enumerate(question.first, start=1):
        rank = after.get(id, behind)
        moves[id] = (id in kept, before, rank, before - rank, rank == 1, rank < golden)
    return moves


def _columns(
    moves: Sequence[Mapping[str, tuple[float, ...]]], members: Sequence[Sequence[str]]
) -> list[Values]:
    """Return one column a number of `_moves`; every passage has the same weight."""
    sums = np.array(
        [
            np.array([of[id] for id in ids]).reshape(-1, _N_COLUMNS).sum(axis=0)
            for of, ids in zip(moves, members, strict=True)
        ]
    )
    counts = np.array([len(ids) for ids in members], dtype=np.float64)
    return [Values.of(column / np.maximum(counts, 1), counts) for column in sums.T]


def _figures(bars: dict[str, dict[str, dict[str, Estimate]]]) -> tuple[BarFigure, ...]:
    if not bars:
        return ()
    return (
        BarFigure(
            name="above-golden",
            title="How often each type of look-alike stands above the golden passage",
            x_label="percent",
            panels=bars,
        ),
    )


EXPERIMENT = Experiment(
    name="look-alikes",
    title="Look-alikes by type",
    measures=(
        "How many look-alikes of each type a filter keeps, how far a ranker moves them against "
        "the first stage, and how often they stand above the golden passage."
    ),
    run=run,
)
