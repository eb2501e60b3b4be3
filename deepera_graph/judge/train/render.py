"""An evaluation as Markdown."""

from collections.abc import Iterable, Sequence
from math import isfinite

from deepera_graph.bench.metrics.resample import Interval
from deepera_graph.judge.train.evaluate import COLUMNS, Evaluation, SetResult
from deepera_graph.judge.train.measure import Bin

_COUNTS = frozenset({"kept"})
_CURVE = ("kept", "precision", "any golden", "empty")


def markdown(evaluation: Evaluation) -> str:
    """Return the tables: all sets, then of each its operating curve and its reliability.

    Between them, what share of the golden passages is among the best so many of their question, as
    a pre-filter would keep them.

    Shares are times 100; a kept count is passages a question. Intervals are of 95 %, by bootstrap
    over groups of questions.
    """
    parts = [evaluation.how, "", *_overview(evaluation)]
    parts += ["", "## What a pre-filter keeps", "", *_best(evaluation)]
    for name, one in evaluation.sets.items():
        parts += ["", f"## {name}", "", *_curve(one), "", *_reliability(one.bins), ""]
        parts.append(", ".join(f"{key} {value:.3f}" for key, value in one.calibration.items()))
    return "\n".join(parts) + "\n"


def _best(evaluation: Evaluation) -> list[str]:
    """Return a table of the golden passages that are among the best of their question."""
    cuts = list(dict.fromkeys(cut for one in evaluation.sets.values() for cut in one.best))
    rows = [
        [name, *(cell("golden", one.best[cut]["golden"]) for cut in cuts)]
        for name, one in evaluation.sets.items()
    ]
    return table(["golden passages among the best", *map(str, cuts)], rows)


def overview(evaluation: Evaluation) -> str:
    """Return the table of all sets alone, after the sentence on how it was measured."""
    return "\n".join([evaluation.how, "", *_overview(evaluation)]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table; all columns but the first are aligned right."""
    marks = ["---", *["---:"] * (len(head) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (head, marks, *rows)]


def cell(name: str, one: Interval) -> str:
    """Return a mean with its interval; a dash if it is not a number."""
    if not isfinite(one.mean):
        return "-"
    if name in _COUNTS:
        return f"{one.mean:.2f} ({one.low:.2f} to {one.high:.2f})"
    return f"{100 * one.mean:.1f} ({100 * one.low:.1f} to {100 * one.high:.1f})"


def _overview(evaluation: Evaluation) -> list[str]:
    at = f"at {evaluation.tau:g}"
    head = ["set", "questions", *(f"{name} {at}" if name == "kept" else name for name in COLUMNS)]
    rows = [
        [name, _questions(one), *(cell(column, one.metrics[column]) for column in COLUMNS)]
        for name, one in evaluation.sets.items()
    ]
    return table(head, rows)


def _questions(one: SetResult) -> str:
    if not one.n_trained_on:
        return str(one.n_questions)
    return f"{one.n_questions} ({one.n_trained_on} trained on)"


def _curve(one: SetResult) -> list[str]:
    rows = [
        [f"{tau:.2f}", *(cell(name, its[name]) for name in _CURVE)]
        for tau, its in one.curve.items()
    ]
    return table(["threshold", *_CURVE], rows)


def _reliability(bins: Sequence[Bin]) -> list[str]:
    rows = [
        [f"{one.low:.1f} to {one.high:.1f}", str(one.n), f"{one.mean:.3f}", f"{one.share:.3f}"]
        for one in bins
        if one.mean is not None and one.share is not None
    ]
    return table(["probability", "passages", "mean probability", "share of evidence"], rows)
