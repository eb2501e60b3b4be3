"""What stands at each rank."""

from collections.abc import Mapping, Sequence

from deepera_graph.lab.bench.figures import RankFigure, RankMap, RankShares, rank_cells, rank_shares
from deepera_graph.lab.metrics.ranking import JudgedRanking
from deepera_graph.lab.studies.base import StudyRunner
from deepera_graph.lab.studies.results import Drawing, StudyResult
from deepera_graph.lab.tables import Column, Grid, Row

N_RANKS = 30
_KINDS = ("golden", "distractor", "other")


def study_ranks(runner: StudyRunner) -> StudyResult:
    """Count what stands at each rank."""
    lists: dict[str, dict[str, list[JudgedRanking]]] = {}
    shares: dict[str, dict[str, RankShares]] = {}
    for run in runner.runs():
        data, ranker = run.key
        judged = [question.judged for question in run.questions]
        lists.setdefault(ranker, {})[data] = judged
        shares.setdefault(ranker, {})[data] = rank_shares(judged, N_RANKS)
    names = [one.name for one in runner.datasets]
    rows: list[Row] = [
        (name, ranker, rank + 1, *(float(getattr(of[name], kind)[rank]) for kind in _KINDS))
        for name in names
        for ranker, of in shares.items()
        if name in of
        for rank in range(N_RANKS)
    ]
    grid = Grid(
        name="ranks",
        title="What stands at each rank",
        columns=(
            *Column.several("text", "data set", "ranker"),
            Column("rank", "count"),
            *(Column(kind, "percent") for kind in _KINDS),
        ),
        rows=tuple(rows),
        note=(
            "Share of the questions with a golden passage, a labelled look-alike or another "
            "passage at the rank; less than 100 in sum where a question has fewer passages."
        ),
    )
    complete = [name for name in names if all(name in of for of in lists.values())]
    return StudyResult(grids=(grid,), drawings=_draw_ranks(complete, lists, shares))


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
