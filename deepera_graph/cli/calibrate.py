"""`deepera calibrate`: fit from labelled passages how probable evidence is at which score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

from deepera_graph.cli.opening.judges import open_reranker
from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import needing, tell
from deepera_graph.cli.shared.declaring import arg, opt
from deepera_graph.errors import InputError

_fit = partial(opt, panel="Curve")
_WIDTH = 21
_FEWEST = 30  # questions, and passages of either kind
_COLUMNS = ("precision", "recall", "kept", "answered")
_HEADS = ("precision", "recall", "kept a question", "something kept")


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """How the curve is fitted, and where it goes."""

    out: Path | None = opt("Where the curve goes.", "--out", "-o", metavar="CURVE", shown="nowhere")
    overwrite: bool = opt("Replace CURVE.", default=False)
    limit: int | None = opt("Only the first N questions.", metavar="N", least=1, shown="all")
    method: Literal["isotonic", "platt"] = _fit(
        "[b]isotonic[/b] fits any rising shape and needs some hundred passages; [b]platt[/b] is a "
        "logistic curve and needs few.",
        default="isotonic",
    )
    precision: float = _fit(
        "A threshold is suggested at which this share of the kept passages is evidence, from 0 to "
        "1.",
        metavar="P",
        default=0.8,
    )
    resamples: int = _fit("Resamples for the intervals.", metavar="N", default=2000)
    seed: int = _fit("Random seed of the resamples.", metavar="S", default=0, least=0)
    max_failed_share: float = _fit(
        "Largest share of passages that could not be judged, from 0 to 1; with more no curve is "
        "fitted.",
        metavar="S",
        default=0.2,
    )


def calibrate(
    labelled: Annotated[Path, arg("LABELLED", "Labelled questions, a JSON object a line.")],
    *,
    fit: FitOptions,
    judge: options.CachedJudgeOptions,
    output: options.OutputOptions,
) -> None:
    """Fit from labelled passages how probable evidence is at which score."""
    if not labelled.exists():
        raise InputError(f"no such file: {str(labelled)!r}")
    with needing("calibrate", "calibrate"):
        from deepera_graph.calibration import report
        from deepera_graph.calibration.calibrate import check_method

    check_method(fit.method)

    at_once = judge.max_concurrency
    chosen = {} if at_once is None else {"max_concurrency": at_once}
    with (
        open_reranker(judge, chosen) as (reranker, _),
        progress_bar("judging", hidden=output.quiet) as bar,
    ):
        numbers = count(1)
        found = report.calibrate(
            labelled,
            fit.out,
            reranker=reranker,
            method=fit.method,
            precision=fit.precision,
            n_resamples=fit.resamples,
            seed=fit.seed,
            limit=fit.limit,
            overwrite=fit.overwrite,
            max_failed_share=fit.max_failed_share,
            watch=lambda _: bar.move(count=next(numbers)),
        )
    tell(output, found, lambda: "\n".join(report_lines(found)), out=fit.out)


def report_lines(report: Mapping[str, Any]) -> list[str]:
    """Return a report as lines of text."""
    how = report["how"]
    return [
        *_describe(report),
        "",
        " " * 20 + "".join(head.ljust(_WIDTH) for head in _HEADS).rstrip(),
        *(_format_point(point) for point in report["operating_points"]),
        "",
        *(_format_suggestion(name, report) for name in ("even", "sure") if how["folds"]),
        *_warn_of_few(report["data"]),
        f"{_say_how_measured(how)} of {how['level']:.0%} over {how['n_resamples']} resamples of "
        "the questions.",
    ]


def _say_how_measured(how: Mapping[str, Any]) -> str:
    if how["folds"]:
        return f"Probabilities by {how['folds']}-fold cross-validation over questions; intervals"
    return f"No probability is measured, and none suggested: {how['why_not']}.\nIntervals"


def _describe(report: Mapping[str, Any]) -> list[str]:
    curve, data, quality = report["curve"], report["data"], report["quality"]
    judge = ", ".join(f"{key} {value}" for key, value in curve["judge"].items()) or "unknown"
    brier, error = quality["brier"], quality["calibration_error"]
    failed = f"; {data['failed']} could not be judged" if data["failed"] else ""
    return [
        f"judge               {judge}",
        f"data                {data['questions']} questions, {data['judged']} passages, "
        f"{data['relevant']} of them evidence{failed}",
        f"curve               {curve['method']}",
        f"Brier score         {_format_change(brier)}, {brier['base_rate']:.4f} for the base rate "
        "alone",
        f"calibration error   {_format_change(error)}",
    ]


def _format_change(measure: Mapping[str, float | None]) -> str:
    after = measure["after"]
    calibrated = "" if after is None else f", {after:.4f} calibrated"
    return f"{measure['before']:.4f} as it is{calibrated}"


def _warn_of_few(data: Mapping[str, int]) -> list[str]:
    """Return a line that says so if there is too little for a curve to hold for other questions."""
    counts = {
        "questions": data["questions"],
        "passages of evidence": data["relevant"],
        "others": data["judged"] - data["relevant"],
    }
    few = [f"{n} {what}" for what, n in counts.items() if n < _FEWEST]
    told = (
        f"Few data ({', '.join(few)}): on other questions a threshold may keep quite another share"
    )
    return [f"{told}; label {_FEWEST} of each or more."] if few else []


def _format_point(point: Mapping[str, Any]) -> str:
    name = f"{point['on']} >= {point['tau']:.2f}"
    cells = "".join(_format_rate(point[column]).ljust(_WIDTH) for column in _COLUMNS)
    return f"{name:<20}{cells}".rstrip()


def _format_rate(estimate: Mapping[str, float | None]) -> str:
    if estimate["mean"] is None:
        return "-"
    if estimate["low"] is None:
        return f"{estimate['mean']:.3f}"
    return f"{estimate['mean']:.3f} ({estimate['low']:.3f}-{estimate['high']:.3f})"


def _format_suggestion(name: str, report: Mapping[str, Any]) -> str:
    one = report["suggested"][name]
    wanted = f"precision {report['wanted_precision']:g}"
    wish = wanted if name == "even" else f"{wanted} at the low end of its interval"
    if one["probability"] is None:
        return f"{wish}: not reached; {one['why_not']}"
    if one["score"] is None:
        return f"{wish}: probability >= {one['probability']:.2f}, which no score has on this curve"
    return f"{wish}: probability >= {one['probability']:.2f}, that is score >= {one['score']:.3f}"
