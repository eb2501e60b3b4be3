"""Look-alikes by type: how many a filter lets through, and how far each is moved up or down."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isnan

import numpy as np

from deepera_graph.bench.data.instance import MetricError
from deepera_graph.bench.figures import (
    BarFigure,
    RankFigure,
    RankMap,
    RankShares,
    rank_cells,
    rank_shares,
)
from deepera_graph.bench.metrics.ranking import JudgedRanking
from deepera_graph.bench.metrics.statistics import Values, paired_bootstraps
from deepera_graph.bench.studies.base import (
    All,
    Cell,
    Column,
    Drawing,
    Experiment,
    ExperimentResult,
    Grid,
    Lab,
    Material,
    Pass,
    Scored,
    Unit,
    estimates,
    measure,
    metric_columns,
)
from deepera_graph.bench.table import MetricEstimate

_BASE = "base"


def changes(lab: Lab, measured: All, unit: Unit) -> Grid:
    """Return the change of every ranker and metric with that unit.

    Raises:
        MetricError: The setup names a base that is no data set.
    """
    rows = [
        row
        for before, after in _pairs(lab)
        for row in _pair_rows(lab, before, after, measured, unit)
    ]
    return Grid(
        name="change" if unit == "percent" else "change-lfs",
        title="From base to look-alikes",
        columns=(
            Column("from"),
            Column("to"),
            Column("ranker"),
            Column("metric"),
            Column("questions", "count"),
            Column("before", unit),
            Column("after", unit),
            Column("difference", unit),
            Column("relative", "percent"),
        ),
        rows=tuple(rows),
        note=(
            "Over the questions that both data sets have. Difference is in points, with a paired "
            "95 % interval; relative is (after - before) / before."
        ),
    )


def _pairs(lab: Lab) -> Iterator[tuple[Material, Material]]:
    """Yield the data sets that have a base: same source, and questions in common."""
    materials = list(lab.materials())
    named = lab.setup.base
    if named and named not in [one.name for one in materials]:
        raise MetricError(f"base must be one of {[one.name for one in materials]}, got {named!r}")
    for before in materials:
        if before.name != named if named else before.labels[0].setting != _BASE:
            continue
        for after in materials:
            if after is not before and _shared(before, after)[0]:
                yield before, after


def _shared(before: Material, after: Material) -> tuple[list[int], list[int]]:
    """Return the places of the questions that both have, pair by pair."""
    places = {one.question: place for place, one in enumerate(before.labels)}
    both = [
        (places[one.question], place)
        for place, one in enumerate(after.labels)
        if one.question in places
    ]
    return [first for first, _ in both], [second for _, second in both]


def _pair_rows(
    lab: Lab, before: Material, after: Material, measured: All, unit: Unit
) -> Iterator[tuple[Cell, ...]]:
    here, there = _shared(before, after)
    names = [
        (ranker.name, place, column.name)
        for ranker in lab.rankers
        if {(before.name, ranker.name), (after.name, ranker.name)} <= measured.keys()
        for place, column in enumerate(metric_columns(lab))
        if column.unit == unit
    ]
    old = [_only(measured[before.name, ranker].values[at], here) for ranker, at, _ in names]
    new = [_only(measured[after.name, ranker].values[at], there) for ranker, at, _ in names]
    found = estimates([*old, *new], lab.setup)
    differences = paired_bootstraps(
        list(zip(new, old, strict=True)), n_resamples=lab.setup.n_resamples, seed=lab.setup.seed
    )
    for place, (ranker, _, name) in enumerate(names):
        first, second = found[place], found[len(names) + place]
        relative = (second.mean - first.mean) / first.mean if first.mean else None
        cells = (first, second, MetricEstimate(*differences[place], 0), relative)
        yield before.name, after.name, ranker, name, len(here), *cells


def _only(values: Values, places: Sequence[int]) -> Values:
    chosen = np.asarray(places)
    return Values(values.values[chosen], values.weights[chosen])


def run_cost(lab: Lab) -> ExperimentResult:
    """Measure."""
    grid = Grid(
        name="cost",
        title="Efficiency",
        columns=(
            Column("data set"),
            Column("ranker"),
            Column("passages", "count"),
            Column("time", "seconds"),
            Column("slowest", "seconds"),
            Column("calls", "count"),
            Column("tokens in", "count"),
            Column("tokens out", "count"),
            Column("failed", "count"),
        ),
        rows=tuple(row for repeats in lab.repeated() for row in _row(repeats)),
        note=(
            "For a question, on average; slowest is the mean of the slowest group of questions "
            "ranked together. Times were measured when the rankings were made, and are read back "
            "with them; they are of the machine and the load of that moment."
        ),
    )
    return ExperimentResult(grids=(grid,))


def _row(repeats: list[Pass]) -> Iterator[tuple[Cell, ...]]:
    ranked = [question.ranked for one in repeats for question in one.questions]
    first = repeats[0]
    seconds = np.array([one.seconds for one in ranked])
    counts = np.array(
        [(one.calls, one.input_tokens, one.output_tokens, one.failed) for one in ranked]
    )
    yield (
        first.material.name,
        first.ranker.name,
        first.material.survey.n_candidates,
        float(seconds.mean()),
        float(seconds.max()),
        *map(float, counts.mean(axis=0)),
    )


COST = Experiment(
    name="cost",
    title="Efficiency",
    measures="Seconds, model calls and tokens that a ranker takes for a question.",
    run=run_cost,
)

_GOLDEN, _OTHER = "golden", "no look-alike"
_ALL, _RARE = "all look-alikes", "rare types"
FEWEST = 20
_N_COLUMNS = 6


def run_look_alikes(lab: Lab) -> ExperimentResult:
    """Measure."""
    rows: list[tuple[Cell, ...]] = []
    bars: dict[str, dict[str, dict[str, MetricEstimate]]] = {}
    for one in lab.passes():
        if not any(question.labels.types for question in one.questions):
            continue
        for row in _rows_look_alikes(lab, one):
            rows.append(row)
            above = row[-1]
            if isinstance(above, MetricEstimate) and above.mean == above.mean and row[2] != _OTHER:
                in_percent = MetricEstimate(*(100 * part for part in above))
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
    return ExperimentResult(grids=(grid,), drawings=_figures_look_alikes(bars))


def _rows_look_alikes(lab: Lab, one: Pass) -> Iterator[tuple[Cell, ...]]:
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
            kept if one.ranker.says_why else None,
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


def _figures_look_alikes(
    bars: dict[str, dict[str, dict[str, MetricEstimate]]],
) -> tuple[BarFigure, ...]:
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


LOOK_ALIKES = Experiment(
    name="look-alikes",
    title="Look-alikes by type",
    measures=(
        "How many look-alikes of each type a filter keeps, how far a ranker moves them against "
        "the first stage, and how often they stand above the golden passage."
    ),
    run=run_look_alikes,
)


def run_main_table(lab: Lab) -> ExperimentResult:
    """Measure."""
    measured = {
        (repeats[0].material.name, repeats[0].ranker.name): measure(lab, repeats)
        for repeats in lab.repeated()
    }
    rows = tuple(_rows_main_table(lab, measured))
    columns = (
        Column("data set"),
        Column("setting"),
        Column("ranker"),
        *metric_columns(lab),
    )
    grid = Grid(
        name="main",
        title="Main table",
        columns=columns,
        rows=rows,
        note=(
            "Percent, with 95 % intervals over questions; ± is the standard deviation over runs "
            "of a ranker that differs from run to run."
        ),
    )
    units: tuple[Unit, ...] = ("percent", "number")
    losses = [changes(lab, measured, unit) for unit in units]
    return ExperimentResult(
        grids=(grid, *(one for one in losses if one.rows), *_side_by_side(lab, grid)),
        drawings=_figures_main_table(grid),
        findings=_about(lab),
    )


def _figures_main_table(grid: Grid) -> tuple[BarFigure, ...]:
    panels: dict[str, dict[str, dict[str, MetricEstimate]]] = {}
    for place, column in list(enumerate(grid.columns))[3:]:
        for row in grid.rows:
            cell = row[place]
            if (
                isinstance(cell, MetricEstimate)
                and column.unit == "percent"
                and not isnan(cell.mean)
            ):
                groups = panels.setdefault(column.name, {})
                in_percent = MetricEstimate(*(100 * part for part in cell))
                groups.setdefault(str(row[0]), {})[str(row[2])] = in_percent
    if not panels:
        return ()
    title = "Every ranker on every data set"
    return (BarFigure(name="rankers", title=title, x_label="percent", panels=panels),)


def _side_by_side(lab: Lab, grid: Grid) -> Iterator[Grid]:
    """Yield, for a setting that several data sets have, a table as the paper prints it."""
    for setting in dict.fromkeys(str(row[1]) for row in grid.rows):
        rows = {(row[0], row[2]): row[3:] for row in grid.rows if row[1] == setting}
        names = list(dict.fromkeys(str(name) for name, _ in rows))
        rankers = [
            one.name for one in lab.rankers if all((name, one.name) in rows for name in names)
        ]
        if len(names) > 1 and setting:
            yield Grid(
                name=f"setting-{re.sub(r'[^a-z0-9]+', '-', setting.lower())}",
                title=f"Setting {setting}, data sets side by side",
                columns=(
                    Column("ranker"),
                    *(
                        Column(f"{name} {column.name}", column.unit)
                        for name in names
                        for column in grid.columns[3:]
                    ),
                ),
                rows=tuple(
                    (ranker, *(cell for name in names for cell in rows[name, ranker]))
                    for ranker in rankers
                ),
            )


def _rows_main_table(lab: Lab, measured: All) -> Iterator[tuple[Cell, ...]]:
    for material in lab.materials():
        mine = [one for one in measured.values() if one.material.name == material.name]
        found = iter(estimates([values for one in mine for values in one.values], lab.setup))
        for one in mine:
            cells = [next(found)._replace(std=std) for std in one.stds]
            yield material.name, material.labels[0].setting, one.ranker, *cells


def _about(lab: Lab) -> tuple[str, ...]:
    return tuple(
        f"{one.name}: {one.survey.n_questions} questions, {one.survey.n_candidates:.1f} candidates "
        f"each ({one.survey.n_distractors:.1f} labelled distractors), golden among them for "
        f"{100 * one.survey.ceiling:.1f} %; first stage: {one.survey.first_stage}."
        for one in lab.materials()
    )


MAIN_TABLE = Experiment(
    name="main",
    title="Main table",
    measures=("Every ranker on every data set, and how much each loses when look-alikes come in."),
    run=run_main_table,
)

N_RANKS = 30
_SHOWN = ("golden", "distractor", "other")


def run_ranks(lab: Lab) -> ExperimentResult:
    """Measure."""
    lists: dict[str, dict[str, list[JudgedRanking]]] = {}
    for one in lab.passes():
        judged = [question.judged for question in one.questions]
        lists.setdefault(one.ranker.name, {})[one.material.name] = judged
    shares = {
        ranker: {name: rank_shares(judged, N_RANKS) for name, judged in of.items()}
        for ranker, of in lists.items()
    }
    rows = [
        row
        for ranker, of in shares.items()
        for name, one in of.items()
        for row in _rows_ranks(name, ranker, one)
    ]
    grid = Grid(
        name="ranks",
        title="What stands at each rank",
        columns=(
            Column("data set"),
            Column("ranker"),
            Column("rank", "count"),
            *(Column(kind, "percent") for kind in _SHOWN),
        ),
        rows=tuple(sorted(rows, key=lambda row: _data_sets(lab).index(str(row[0])))),
        note=(
            "Share of the questions with a golden passage, a labelled look-alike or another "
            "passage at the rank; less than 100 in sum where a question has fewer passages."
        ),
    )
    return ExperimentResult(grids=(grid,), drawings=_figures_ranks(lab, lists, shares))


def _data_sets(lab: Lab) -> list[str]:
    return [one.name for one in lab.datasets]


def _rows_ranks(name: str, ranker: str, shares: RankShares) -> list[tuple[Cell, ...]]:
    return [
        (name, ranker, rank + 1, *(float(getattr(shares, kind)[rank]) for kind in _SHOWN))
        for rank in range(N_RANKS)
    ]


def _figures_ranks(
    lab: Lab,
    lists: dict[str, dict[str, list[JudgedRanking]]],
    shares: dict[str, dict[str, RankShares]],
) -> tuple[Drawing, ...]:
    names = [name for name in _data_sets(lab) if all(name in of for of in lists.values())]
    if not names:
        return ()
    whole = RankMap(
        name="rank-map",
        title="Every question's ranking: one line a question, one cell a passage",
        panels={
            ranker: {name: rank_cells(of[name], N_RANKS) for name in names}
            for ranker, of in lists.items()
        },
    )
    means = [
        RankFigure(
            name=f"ranks-{number}",
            title=f"What stands at each rank on {name}",
            panels={ranker: of[name] for ranker, of in shares.items()},
        )
        for number, name in enumerate(names, start=1)
    ]
    return whole, *means


RANKS = Experiment(
    name="ranks",
    title="Rank distribution",
    measures=(
        "Where golden passages and look-alikes stand, for every ranker and data set: after figure "
        "5 of DeepEra."
    ),
    run=run_ranks,
)
