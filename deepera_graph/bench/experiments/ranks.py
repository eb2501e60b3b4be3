"""Rank distribution: what stands at each rank, question by question and on average."""

from deepera_graph.bench.experiments.experiment import (
    Cell,
    Column,
    Drawing,
    Experiment,
    ExperimentResult,
    Grid,
)
from deepera_graph.bench.experiments.lab import Lab
from deepera_graph.bench.figures.rank_figure import RankFigure
from deepera_graph.bench.figures.rank_map import RankMap, rank_cells
from deepera_graph.bench.figures.rank_shares import RankShares, rank_shares
from deepera_graph.bench.metrics.judged import Judged

N_RANKS = 30
_SHOWN = ("golden", "distractor", "other")


def run(lab: Lab) -> ExperimentResult:
    """Measure."""
    lists: dict[str, dict[str, list[Judged]]] = {}
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
        for row in _rows(name, ranker, one)
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
    return ExperimentResult(grids=(grid,), drawings=_figures(lab, lists, shares))


def _data_sets(lab: Lab) -> list[str]:
    return [one.name for one in lab.datasets]


def _rows(name: str, ranker: str, shares: RankShares) -> list[tuple[Cell, ...]]:
    return [
        (name, ranker, rank + 1, *(float(getattr(shares, kind)[rank]) for kind in _SHOWN))
        for rank in range(N_RANKS)
    ]


def _figures(
    lab: Lab,
    lists: dict[str, dict[str, list[Judged]]],
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


EXPERIMENT = Experiment(
    name="ranks",
    title="Rank distribution",
    measures=(
        "Where golden passages and look-alikes stand, for every ranker and data set: after figure "
        "5 of DeepEra."
    ),
    run=run,
)
