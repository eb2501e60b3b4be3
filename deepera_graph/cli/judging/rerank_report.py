"""What `deepera rerank` says of a run at its end, and of one that it only estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from deepera_graph.cli.shared.console import json_bytes, write_bytes
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.jobs.report import JobReport
    from deepera_graph.schema import Backend
    from deepera_graph.settings import Settings


def describe_failures(report: JobReport) -> str:
    """Say how many passages failed, and of what most of them did; or that a budget left them."""
    cause, n = report.commonest_cause() or ("", 0)
    undone = report.statuses["skipped_budget"]
    if undone == report.n_failed:
        return f"The budget stopped the run with {count(undone, 'passage')} not judged ({cause})."
    which = count(n, "passage") if n == report.n_failed else f"{n} of {report.n_failed} passages"
    return f"{which} could not be judged: {cause}"


def describe_report(report: JobReport) -> str:
    """Return the report in a line."""
    from deepera_graph.pipeline.shown import describe_calls

    earlier = f" ({report.n_earlier} of them earlier)" if report.n_earlier else ""
    not_needed = report.statuses["not_needed"]
    unasked = f", {not_needed} not needed" if not_needed else ""
    undone = report.statuses["skipped_budget"]
    unjudged = f", {undone} not judged" if undone else ""
    words = [
        f"{count(report.n_written, 'line')} written{earlier}, {report.n_bad} bad",
        f"{count(report.n_passages, 'passage')}, {report.n_kept} kept, "
        f"{report.n_failed - undone} failed{unjudged}{unasked}",
        _describe_outcomes(report),
        describe_calls(report.total_usage),
        f"{report.to_dict()['seconds']['wall']:.1f} s, not counting start-up",
    ]
    return "; ".join(words)


def _describe_outcomes(report: JobReport) -> str:
    if not report.n_written:
        return "no question done"
    beside = report.outcomes_beside
    found = [f"{n} {name}" for name, n in sorted(beside.items()) if n and name != "ok"]
    too = f" ({', '.join(found)} among them)" if found else ""
    others = "".join(
        f", {n - beside[name]} {name}"
        for name, n in sorted(report.outcomes.items())
        if name != "ok" and n > beside[name]
    )
    n_questions = count(report.n_written, "question")
    possible = f", possible evidence for {report.n_possible}" if report.n_possible else ""
    return f"evidence for {report.n_evidence} of {n_questions}{possible}{too}{others}"


def _show_money(cost: float) -> str:
    """Return a cost with two decimals, or two digits if it is less than that shows."""
    return f"{cost:.2f}" if cost >= 0.1 or not cost else f"{cost:.2g}"


def _describe_basis(backend: Backend, settings: Settings) -> str:
    """Say what an estimate goes by."""
    from deepera_graph.agents.role import REPLY_TOKENS
    from deepera_graph.judges.base import tokens_known
    from deepera_graph.usage import CHARS_PER_TOKEN

    if not backend.asks_model:
        return f"the {backend.name} backend makes no calls"
    tokens = (
        f"assuming {CHARS_PER_TOKEN} characters per prompt token, {REPLY_TOKENS} tokens per "
        "verdict or summary in a reply,"
        if tokens_known(backend)
        else f"calls only: roles of the {backend.name} backend that do not say what they cost, nor "
        "asks_model = False, count as a call each time they are asked; assuming"
    )
    basis = f"upper bound, {tokens} and that every passage that may be kept is kept"
    if settings.stop_after is not None:
        basis += "; with --stop-after fewer passages may be asked about"
    return basis


def tell_estimate(
    report: JobReport, backend: Backend, settings: Settings, *, as_json: bool
) -> None:
    """Write the estimate to stdout; the cost, too, if both prices are known."""
    basis = _describe_basis(backend, settings)
    budget, total = settings.budget, report.total_usage
    cost = budget.cost(total) if budget is not None and budget.has_prices else None
    if as_json:
        plain = report.to_dict()
        counts = {name: plain[name] for name in ("lines", "usage", "errors")}
        write_bytes(json_bytes({"estimate": basis, **counts, "cost": cost}))
        return
    typer.echo(f"{count(report.n_written, 'question')}, {count(report.n_passages, 'passage')}")
    for stage, used in [*report.usage.items(), ("total", total)]:
        typer.echo(
            f"{stage:>10}: {count(used.calls, 'call')}, about {used.input_tokens} tokens in and "
            f"{used.output_tokens} out"
        )
    if cost is not None:
        typer.echo(f"{'cost':>10}: about {_show_money(cost)}, in the currency of the prices")
    typer.echo(f"This is an estimate: {basis}.")
    if cost is None and backend.asks_model:
        typer.echo("It has the cost, too, with --input-price and --output-price.")
