"""Look-alikes by type, followed from the first stage on."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from deepera_graph.calibration.statistics import Values
from deepera_graph.lab.studies.bars import Bars, add_bar, draw_bars
from deepera_graph.lab.studies.base import RankedQuestion, RankerRun, StudyConfig, StudyRunner
from deepera_graph.lab.studies.results import StudyResult
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
    for run in runner.runs():
        if any(question.labels.types for question in run.questions):
            for row in _look_alike_rows(runner, run):
                rows.append(row)
                if row[2] != _OTHER:
                    add_bar(bars, run.data.name, str(row[2]), run.ranker.name, row[-1])
    config = runner.config
    grid = Grid(
        name="look-alikes",
        title="Look-alikes by type",
        columns=(
            *Column.several("text", "data set", "ranker", "type"),
            Column("passages", "count"),
            *_MOVES,
        ),
        rows=tuple(rows),
        note=(
            f"Kept: share that a filter at {_told(config)} hands on, at most "
            f"{config.top_n} a question; only where scores say what to keep. Rank before "
            "is that of the first stage; moved up is in ranks, below 0 for down; above the golden "
            "is the share that stands before the best golden passage. A passage that was not "
            f"returned stands behind the last one. Rare types are those with fewer than {FEWEST} "
            "passages, together."
        ),
    )
    title = "How often each type of look-alike stands above the golden passage"
    return StudyResult(grids=(grid,), drawings=draw_bars("above-golden", title, bars))


def _told(config: StudyConfig) -> str:
    return "the ranker's own threshold" if config.threshold is None else f"{config.threshold:g}"


def _look_alike_rows(runner: StudyRunner, run: RankerRun) -> Iterator[Row]:
    counts = Counter(type for question in run.questions for type in question.labels.types.values())
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
    types, golden = question.labels.types, question.judged.golden
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
