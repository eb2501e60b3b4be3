"""Look-alikes by type from the first stage on, by their number, and what stands at each rank."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from deepera_graph.calibration.instance import Dataset, Instance, UnavailableError
from deepera_graph.calibration.statistics import Values, pool_runs
from deepera_graph.errors import BackendError
from deepera_graph.lab.bench.figures import (
    Bars,
    CurveFigure,
    Drawing,
    RankFigure,
    RankMap,
    RankShares,
    add_bar,
    draw_bars,
    draw_column,
    rank_cells,
    rank_shares,
)
from deepera_graph.lab.bench.rank import RankedQuestion
from deepera_graph.lab.data.pools import with_look_alikes
from deepera_graph.lab.metrics.ranking import (
    DatasetSummary,
    JudgedRanking,
    compute,
    summarize_dataset,
)
from deepera_graph.lab.rankers.base import Ranker
from deepera_graph.lab.studies.base import RankerRun, StudyRunner
from deepera_graph.lab.studies.experiment import StudyResult
from deepera_graph.lab.studies.variants import Keep, keep_from
from deepera_graph.lab.tables import Column, Grid, Row

FEWEST = 20
_GOLDEN, _OTHER = "golden", "no look-alike"
_ALL, _RARE = "all look-alikes", "rare types"
_MOVES = (  # columns of `_moves`
    Column("kept", "percent"),
    *Column.several("count", "rank before", "rank after", "moved up"),
    *Column.several("percent", "first", "above the golden"),
)


def study_look_alikes(runner: StudyRunner) -> StudyResult:
    """Follow the look-alikes of each type from the first stage on."""
    rows: list[Row] = []
    bars: Bars = {}
    unlabelled: dict[str, str] = {}
    for run in runner.runs():
        if not any(question.judged.types for question in run.questions):
            name = run.data.name
            unlabelled[name] = f"{name}: left out, as no passage of it is labelled as a look-alike."
        else:
            for row in _look_alike_rows(runner, run):
                rows.append(row)
                if row[2] != _OTHER:
                    add_bar(bars, run.data.name, str(row[2]), run.ranker.name, row[-1])
    config = runner.config
    grid = Grid.told(
        "look-alikes",
        columns=(
            *Column.several("text", "data set", "ranker", "type"),
            Column("passages", "count"),
            *_MOVES,
        ),
        rows=tuple(rows),
        threshold=config.threshold_told,
        most=config.top_n,
        fewest=FEWEST,
    )
    title = "How often each type of look-alike stands above the golden passage"
    return StudyResult(
        grids=(grid,),
        drawings=draw_bars("above-golden", title, bars),
        findings=tuple(unlabelled.values()),
    )


def _look_alike_rows(runner: StudyRunner, run: RankerRun) -> Iterator[Row]:
    counts = Counter(type for question in run.questions for type in question.judged.types.values())
    common = frozenset(type for type, count in counts.items() if count >= FEWEST)
    rare = (_RARE,) if len(common) < len(counts) else ()
    types = (_GOLDEN, _ALL, *sorted(common), *rare, _OTHER)
    keep = keep_from(runner.threshold_of(run.ranker), runner.config.top_n)
    moves = [_moves(keep, question) for question in run.questions]
    members = {
        type: [_members(question, type, common) for question in run.questions] for type in types
    }
    columns = [column for type in types for column in _average_moves(moves, members[type])]
    means = iter(runner.estimate(columns))
    for type in types:
        kept, *rest, above = (next(means) for _ in _MOVES)
        yield (
            *run.key,
            type,
            sum(map(len, members[type])),
            kept if run.ranker.says_why else None,
            *rest,
            None if type == _GOLDEN else above,
        )


def _members(question: RankedQuestion, type: str, common: frozenset[str]) -> list[str]:
    types, golden = question.judged.types, question.judged.golden
    if type == _GOLDEN:
        return [id for id in question.first if id in golden]
    if type == _OTHER:
        return [id for id in question.first if id not in golden and id not in types]
    if type == _RARE:
        return [id for id in question.first if id in types and types[id] not in common]
    return [id for id in question.first if id in types and type in (types[id], _ALL)]


def _moves(keep: Keep, question: RankedQuestion) -> dict[str, tuple[float, ...]]:
    """Return the numbers of `_MOVES` by passage."""
    kept = keep(question).ranked
    behind = len(question.first)
    after = {id: rank for rank, id in enumerate(question.judged.ranked, start=1)}
    golden = min(question.judged.golden_rank(), behind)
    moves: dict[str, tuple[float, ...]] = {}
    for before, id in enumerate(question.first, start=1):
        rank = after.get(id, behind)
        moves[id] = (id in kept, before, rank, before - rank, rank == 1, rank < golden)
    return moves


def _average_moves(
    moves: Sequence[Mapping[str, tuple[float, ...]]], members: Sequence[Sequence[str]]
) -> list[Values]:
    """Return one column a number of `_MOVES`; every passage has the same weight."""
    sums = np.array(
        [
            np.array([of[id] for id in ids]).reshape(-1, len(_MOVES)).sum(axis=0)
            for of, ids in zip(moves, members, strict=True)
        ]
    )
    counts = np.array([len(ids) for ids in members], dtype=np.float64)
    return [Values.of(column / np.maximum(counts, 1), counts) for column in sums.T]


_METRICS = ("HitRate@1", "HitRate@3", "MRR", "CDR")
_DRAWN = "HitRate@1"
_MOST_CURVES = 6


# Source: How many look-alikes a pool has the DeepEra paper does not say; 1, 3, 5 and 10 of 30 are
# the readings that its sizes, and those of SciRerankBench, leave open.
def study_counts(runner: StudyRunner) -> StudyResult:
    """Rank the same questions with rising numbers of their look-alikes, in pools of one size."""
    rows: list[Row] = []
    findings: list[str] = []
    for dataset in runner.datasets:
        counts, usable = _usable(dataset, runner.config.counts)
        if not counts:
            findings.append(
                f"{dataset.name}: left out, as no question has {runner.config.counts[0]} labelled "
                "look-alikes."
            )
            continue
        findings.append(
            f"{dataset.name}: {len(usable)} questions with at least {counts[-1]} look-alikes."
        )
        for n in counts:
            how = {"n_fewest": counts[0], "seed": runner.config.seed}
            thinned = [with_look_alikes(one, n, **how) for one in usable]
            thin = Dataset(f"{dataset.name}, {n}", partial(iter, thinned), dataset.first_stage)
            data = summarize_dataset(thin)
            rows += (row for one in runner.rankers if (row := _row(runner, one, dataset, data, n)))
    grid = Grid.told(
        "counts",
        columns=(
            *Column.several("text", "data set", "ranker"),
            *Column.several("count", "look-alikes", "passages"),
            *Column.several("percent", *_METRICS),
        ),
        rows=tuple(rows),
    )
    return StudyResult(grids=(grid,), drawings=_draw(rows), findings=tuple(findings))


def _usable(dataset: Dataset, counts: Sequence[int]) -> tuple[list[int], list[Instance]]:
    """Return the counts that half of the questions with look-alikes reach, and these questions."""
    having = [(one, sum(each.is_distractor for each in one.contexts)) for one in dataset]
    having = [(one, n) for one, n in having if n >= counts[0]]
    reached = [n for n in counts if having and sum(m >= n for _, m in having) * 2 >= len(having)]
    if not reached:
        return [], []
    return reached, [one for one, n in having if n >= reached[-1]]


def _row(
    runner: StudyRunner, ranker: Ranker, dataset: Dataset, data: DatasetSummary, n: int
) -> Row | None:
    try:
        runs = [runner.run_once(one, data) for one in ranker.runs(runner.config.n_repeats)]
    except (UnavailableError, BackendError) as error:
        if runner.config.strict:
            raise
        runner.missing[dataset.name, ranker.name] = str(error)
        return None
    judged = [[one.judged for one in run.questions] for run in runs]
    means = runner.estimate(
        [pool_runs([compute(name, one) for one in judged]) for name in _METRICS]
    )
    return dataset.name, ranker.name, n, data.n_candidates, *means


def _draw(rows: Sequence[Row]) -> tuple[CurveFigure, ...]:
    panels = draw_column(rows, 4 + _METRICS.index(_DRAWN), most=_MOST_CURVES)
    if not panels:
        return ()
    return (
        CurveFigure(
            name="counts",
            title=f"{_DRAWN} by the number of look-alikes in the pool",
            x_label="look-alikes",
            y_label="percent",
            panels=panels,
        ),
    )


N_RANKS = 30
_KINDS = ("golden", "distractor", "other")


def study_ranks(runner: StudyRunner) -> StudyResult:
    """Count what stands at each rank."""
    lists: dict[str, dict[str, list[JudgedRanking]]] = {}
    shares: dict[str, dict[str, RankShares]] = {}
    findings: dict[str, str] = {}
    for run in runner.runs():
        data, ranker = run.key
        judged = [question.judged for question in run.questions]
        lists.setdefault(ranker, {})[data] = judged
        shares.setdefault(ranker, {})[data] = rank_shares(judged, _count_ranks(judged))
        n, n_all = run.data.n_unanswered, run.data.n_questions
        if 0 < n < n_all:
            findings[data] = f"{data}: {n} of {n_all} questions are left out: nothing answers them."
    names = [one.name for one in runner.datasets]
    rows: list[Row] = [
        (name, ranker, rank + 1, *(float(getattr(of[name], kind)[rank]) for kind in _KINDS))
        for name in names
        for ranker, of in shares.items()
        if name in of
        for rank in range(len(of[name].golden))
    ]
    grid = Grid.told(
        "ranks",
        columns=(
            *Column.several("text", "data set", "ranker"),
            Column("rank", "count"),
            *(Column(kind, "percent") for kind in _KINDS),
        ),
        rows=tuple(rows),
    )
    complete = [name for name in names if all(name in of for of in lists.values())]
    return StudyResult(
        grids=(grid,),
        findings=tuple(findings.values()),
        drawings=_draw_ranks(complete, lists, shares),
    )


def _count_ranks(judged: Sequence[JudgedRanking]) -> int:
    """Return how many ranks are shown: those that some question has, and no more than thirty."""
    return min(N_RANKS, max(one.n_candidates for one in judged))


def _draw_ranks(
    names: Sequence[str],
    lists: Mapping[str, Mapping[str, list[JudgedRanking]]],
    shares: Mapping[str, Mapping[str, RankShares]],
) -> tuple[Drawing, ...]:
    if not names:
        return ()
    whole = RankMap(
        name="rank-map",
        title="Every question's ranking: one line a question, one cell a passage",
        panels={
            ranker: {name: rank_cells(of[name], _count_ranks(of[name])) for name in names}
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
