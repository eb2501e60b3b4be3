"""What `deepera bench build` shows: an estimate, a summary, problems."""

from collections.abc import Mapping
from typing import Any

import typer

from deepera_graph.bench.build import outputs
from deepera_graph.bench.build.builder import BuildEstimate, BuildResult
from deepera_graph.budget import Budget
from deepera_graph.cli.work.bench.rebuild import Earlier
from deepera_graph.cli.work.terminal import write_json


def tell_estimate(found: BuildEstimate, budget: Budget, *, as_json: bool) -> None:
    """Write what a build would ask of the model, and what that costs where prices are known."""
    priced = None not in (budget.input_price, budget.output_price)
    total = found.total_usage
    cost = budget.cost(total) if priced else None
    if as_json:
        write_json(
            {
                "documents": found.n_documents,
                "questions": found.n_questions,
                "calls": total.calls,
                "most_calls": found.most_calls,
                "input_tokens": total.input_tokens,
                "output_tokens": total.output_tokens,
                "steps": {step: used.calls for step, used in found.usage.items()},
                "cost": cost,
            }
        )
        return
    steps = ", ".join(f"{step} {used.calls}" for step, used in found.usage.items())
    money = "" if cost is None else f", about {cost:.2f} of money"
    typer.echo(
        f"{found.n_questions} questions from {found.n_documents} documents: "
        f"{total.calls} calls ({steps}), at most {found.most_calls} if look-alikes are "
        f"rejected; about {total.input_tokens} prompt and {total.output_tokens} "
        f"answer tokens{money}"
    )


def summary(built: BuildResult) -> str:
    """Return a line a data set, what was dropped, and where all of it is."""
    lines = [_dataset_line(name, record) for name, record in built.manifest["datasets"].items()]
    n_dropped = sum(sum(reasons.values()) for reasons in built.manifest["dropped"].values())
    lines.append(f"{n_dropped} documents and questions dropped, see {outputs.DROPPED}")
    lines.append(f"{built.n_sent} calls; written to {built.folder}")
    return "".join(f"{line}\n" for line in lines)


def problems_of(built: BuildResult, earlier: Earlier | None) -> list[str]:
    """Return what is not as it was to be, a line each."""
    problems = [
        f"{name} has no question, see {outputs.DROPPED}"
        for name, record in built.manifest["datasets"].items()
        if not record["questions"]
    ]
    if built.n_failed:
        problems.append(
            f"{built.n_failed} calls failed; run it again with --overwrite to try these again"
        )
    changed = [] if earlier is None else earlier.differences(built.manifest)
    if earlier is not None and changed:
        problems.append(f"not the same as in {earlier.path}: {', '.join(changed)}")
    return problems


def _dataset_line(name: str, record: Mapping[str, Any]) -> str:
    wanted, got = record["wanted"], record["questions"]
    text = f"{name}: {got} questions" + ("" if got == wanted else f" of {wanted} wanted")
    ceiling = record["golden"]["ceiling_of_retrieval"]
    if ceiling is not None:
        text += f", golden passage retrieved for {ceiling:.1%}"
    if "distractors" in record:
        made = record["distractors"]
        text += f", {made['passed']} look-alikes passed, {made['rejected']} tries rejected"
    return text
