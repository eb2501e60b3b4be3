"""Study of the number of look-alikes in a pool."""

from collections.abc import Sequence

from deepera_graph.calibration.instance import Dataset, Instance, UnavailableError
from deepera_graph.calibration.statistics import Values, average
from deepera_graph.errors import BackendError
from deepera_graph.lab.bench.figures import CurveFigure, CurvePoints
from deepera_graph.lab.data.pools import with_look_alikes
from deepera_graph.lab.metrics.ranking import compute
from deepera_graph.lab.rankers.base import Ranker
from deepera_graph.lab.studies.base import RankerRun, StudyData, StudyRunner, draw_curve
from deepera_graph.lab.studies.results import StudyResult
from deepera_graph.lab.tables import Cell, Column, Grid, MetricEstimate

_METRICS = ("HitRate@1", "HitRate@3", "MRR", "CDR")
_DRAWN = "HitRate@1"
_MOST_CURVES = 6


# Source: How many look-alikes a pool has the DeepEra paper does not say; 1, 3, 5 and 10 of 30 are
# the readings that its sizes, and those of SciRerankBench, leave open.
def study_counts(runner: StudyRunner) -> StudyResult:
    """Rank the same questions with rising numbers of their look-alikes, in pools of one size."""
    rows: list[tuple[Cell, ...]] = []
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
            data = StudyData.read(_thinned(dataset, usable, n, counts[0], runner.config.seed))
            rows += (row for one in runner.rankers if (row := _row(runner, one, dataset, data, n)))
    grid = Grid(
        name="counts",
        title="Number of look-alikes",
        columns=(
            *Column.several("text", "data set", "ranker"),
            *Column.several("count", "look-alikes", "passages"),
            *Column.several("percent", *_METRICS),
        ),
        rows=tuple(rows),
        note=(
            "The same questions, with so many of their look-alikes in a pool of one size: each "
            "takes the place of the plain passage that stands last in retrieval, and more are "
            "added to fewer. CDR is the share of the pairs of a golden passage and its own "
            "look-alike in the right order."
        ),
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


def _thinned(
    dataset: Dataset, usable: Sequence[Instance], n: int, n_fewest: int, seed: int
) -> Dataset:
    thinned = [with_look_alikes(one, n, n_fewest=n_fewest, seed=seed) for one in usable]
    return Dataset(f"{dataset.name}, {n}", lambda: thinned, dataset.first_stage)


def _row(
    runner: StudyRunner, ranker: Ranker, dataset: Dataset, data: StudyData, n: int
) -> tuple[Cell, ...] | None:
    try:
        runs = [runner.run_once(one, data) for one in ranker.runs(runner.config.n_repeats)]
    except (UnavailableError, BackendError) as error:
        if runner.config.strict:
            raise
        runner.missing[dataset.name, ranker.name] = str(error)
        return None
    means = runner.estimate([_over_runs(runs, metric) for metric in _METRICS])
    return dataset.name, ranker.name, n, data.summary.n_candidates, *means


def _over_runs(runs: Sequence[RankerRun], metric: str) -> Values:
    return average([compute(metric, [one.judged for one in run.questions]) for run in runs])


def _draw(rows: Sequence[tuple[Cell, ...]]) -> tuple[CurveFigure, ...]:
    place = 4 + _METRICS.index(_DRAWN)
    points: dict[str, dict[str, list[tuple[float, MetricEstimate]]]] = {}
    for row in rows:
        data, ranker, n, mean = str(row[0]), str(row[1]), row[2], row[place]
        if isinstance(n, int) and isinstance(mean, MetricEstimate):
            points.setdefault(data, {}).setdefault(ranker, []).append((n, mean))
    panels: dict[str, dict[str, CurvePoints]] = {}
    for data, of in points.items():
        for ranker, found in list(of.items())[:_MOST_CURVES]:
            panels.setdefault(data, {})[ranker] = draw_curve(*zip(*found, strict=True))
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
