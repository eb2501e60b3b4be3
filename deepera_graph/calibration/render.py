"""A report in lines of text, for people."""

from collections.abc import Mapping
from typing import Any

_WIDTH = 21
_COLUMNS = ("precision", "recall", "kept", "answered")
_HEADS = ("precision", "recall", "kept a question", "something kept")


def report_lines(report: Mapping[str, Any]) -> list[str]:
    """Return the lines of a report of `deepera_graph.calibration.report`."""
    return [
        *_about(report),
        "",
        " " * 20 + "".join(head.ljust(_WIDTH) for head in _HEADS).rstrip(),
        *(_row(point) for point in report["operating_points"]),
        "",
        *(_suggestion(name, report) for name in ("even", "sure")),
        *_method(report),
    ]


def _about(report: Mapping[str, Any]) -> list[str]:
    curve, data, quality = report["curve"], report["data"], report["quality"]
    judge = ", ".join(f"{key} {value}" for key, value in curve["judge"].items()) or "unknown"
    brier, error = quality["brier"], quality["calibration_error"]
    failed = f"; {data['failed']} could not be judged" if data["failed"] else ""
    return [
        f"judge               {judge}",
        f"data                {data['questions']} questions, {data['judged']} passages, "
        f"{data['relevant']} of them evidence{failed}",
        f"curve               {curve['method']}",
        f"Brier score         {brier['before']:.4f} as it is, {brier['after']:.4f} calibrated, "
        f"{brier['base_rate']:.4f} for the base rate alone",
        f"calibration error   {error['before']:.4f} as it is, {error['after']:.4f} calibrated",
    ]


def _row(point: Mapping[str, Any]) -> str:
    name = f"{point['on']} >= {point['tau']:.2f}"
    cells = "".join(_cell(point[column]).ljust(_WIDTH) for column in _COLUMNS)
    return f"{name:<20}{cells}".rstrip()


def _cell(estimate: Mapping[str, float | None]) -> str:
    if estimate["mean"] is None:
        return "-"
    if estimate["low"] is None:
        return f"{estimate['mean']:.3f}"
    return f"{estimate['mean']:.3f} ({estimate['low']:.3f}-{estimate['high']:.3f})"


def _suggestion(name: str, report: Mapping[str, Any]) -> str:
    one = report["suggested"][name]
    wanted = f"precision {report['wanted_precision']:g}"
    wish = wanted if name == "even" else f"{wanted} at the low end of its interval"
    if one["probability"] is None:
        return f"{wish}: not reached; {one['why_not']}"
    if one["score"] is None:
        return f"{wish}: probability >= {one['probability']:.2f}, which no score has on this curve"
    return f"{wish}: probability >= {one['probability']:.2f}, that is score >= {one['score']:.3f}"


def _method(report: Mapping[str, Any]) -> list[str]:
    how = report["how"]
    return [
        f"Probabilities by {how['folds']}-fold cross-validation over questions; intervals of "
        f"{how['level']:.0%} over {how['n_resamples']} resamples of the questions."
    ]
