"""Figures of an evaluation."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from deepera_graph.bench.figures.curves import Curve, CurveFigure
from deepera_graph.bench.figures.save import save
from deepera_graph.bench.metrics.resample import Interval
from deepera_graph.judge.train.by_trees import BY_TREES
from deepera_graph.judge.train.evaluate import Evaluation, SetResult
from deepera_graph.judge.train.learning_curve import LEARNING_CURVE, Point
from deepera_graph.judge.train.log import DONE, Event, events

METRIC = "HitRate@1"
SUFFIXES = (".svg", ".png")
_OPERATING = ("precision", "any golden", "empty")


def operating_figure(evaluation: Evaluation) -> CurveFigure:
    """Return what thresholds keep, a panel a set."""
    return CurveFigure(
        name="operating",
        title="What a threshold keeps",
        x_label="threshold",
        y_label="share",
        panels={
            name: {
                column: _curve(list(one.curve), [its[column] for its in one.curve.values()])
                for column in _OPERATING
            }
            for name, one in evaluation.sets.items()
        },
    )


def reliability_figure(evaluation: Evaluation) -> CurveFigure:
    """Return probabilities against shares of evidence, a panel a set; best is the diagonal."""
    ideal = Curve([0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0], dashed=True)
    return CurveFigure(
        name="reliability",
        title="How far probabilities hold",
        x_label="mean probability",
        y_label="share of evidence",
        panels={
            name: {"ideal": ideal, "judge": _reliability(one)}
            for name, one in evaluation.sets.items()
        },
    )


def learning_figure(points: Sequence[Point], metric: str = METRIC) -> CurveFigure:
    """Return a metric against the number of training questions, a panel a set."""
    return _sizes("learning", "training questions", points, metric)


def trees_figure(points: Sequence[Point], metric: str = METRIC) -> CurveFigure:
    """Return a metric against the number of trees, a panel a set."""
    return _sizes("trees", "trees", points, metric)


def training_figures(log: Path, metric: str = METRIC) -> list[CurveFigure]:
    """Return what the log of a training holds points of: by trees, and by questions if asked for.

    Questions over several papers, over one, and claims are ranked by trees of their own, and shown
    apart.

    Args:
        log: A finished one.
        metric: Which of the rank metrics is shown.
    """
    rows = events(log)
    end = [row["step"] for row in rows].index(DONE)
    by_kind = {row["kind"]: _points(row) for row in rows[:end] if row["step"] == BY_TREES}
    by_questions = [_points(row) for row in rows[end:] if row["step"] == LEARNING_CURVE]
    return [
        trees_figure(_side_by_side(by_kind), metric),
        *(learning_figure(points, metric) for points in by_questions),
    ]


def save_figures(folder: Path, figures: Iterable[CurveFigure]) -> list[Path]:
    """Write each figure as SVG and as PNG; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for figure in figures:
        drawn = figure.draw()
        for suffix in SUFFIXES:
            paths.append(folder / f"{figure.name}{suffix}")
            save(drawn, paths[-1])
    return paths


def _points(row: Event) -> list[Point]:
    return [Point.of(one) for one in row["points"]]


def _side_by_side(by_kind: Mapping[str, Sequence[Point]]) -> list[Point]:
    """Return points over the sets of all kinds, which have the same sizes."""
    return [
        Point(
            of_size[0].size,
            {
                f"{name}, {kind}s": its
                for kind, one in zip(by_kind, of_size, strict=True)
                for name, its in one.metrics.items()
            },
        )
        for of_size in zip(*by_kind.values(), strict=True)
    ]


def _sizes(name: str, what: str, points: Sequence[Point], metric: str) -> CurveFigure:
    sizes = [one.size for one in points]
    return CurveFigure(
        name=name,
        title=f"{metric} against {what}",
        x_label=what,
        y_label=metric,
        panels={
            its: {metric: _curve(sizes, [one.metrics[its][metric] for one in points])}
            for its in points[0].metrics
        },
    )


def _curve(x: Sequence[float], its: Sequence[Interval]) -> Curve:
    return Curve(x, [one.mean for one in its], [one.low for one in its], [one.high for one in its])


def _line(points: Sequence[tuple[float, float]]) -> Curve:
    x, y = [one for one, _ in points], [one for _, one in points]
    return Curve(x, y, y, y)


def _reliability(one: SetResult) -> Curve:
    filled = [(part.mean, part.share) for part in one.bins if part.mean is not None]
    return _line([(mean, share) for mean, share in filled if share is not None])
