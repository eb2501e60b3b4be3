"""`deepera-lab bioasq check` and `evaluate`: what is wrong with a submission, and its worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.console import SOME_FAILED, check_input, say, tell
from deepera_graph.cli.shared.declaring import opt
from deepera_graph.errors import SettingsError
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.bioasq.check import SubmissionProblem
    from deepera_graph.bioasq.measures import Evaluation, Phase
    from deepera_graph.calibration.statistics import Interval

_SHOWN = 5  # problems of one name
_EDITION = 8
_GOLDEN_OF = {"a": "documents or snippets", "b": "answers"}


@dataclass(frozen=True, kw_only=True)
class SubmissionOptions:
    """What a submission is held against."""

    questions: Path | None = opt(
        "The test set that is answered, or golden questions: their ids and types hold.",
        metavar="FILE",
    )
    phase: Literal["a", "b"] | None = opt(
        "What must be there: [b]a[/b] documents and snippets, [b]b[/b] answers.",
        metavar="a|b",
        shown="what FILE has",
    )
    strict: bool = opt("End with code 1 for warnings, too.", default=False)


@dataclass(frozen=True, kw_only=True)
class MeasureSubmissionOptions:
    """How a submission is measured."""

    phase: Literal["a", "b"] | None = opt(
        "What is measured: [b]a[/b] documents and snippets, [b]b[/b] answers.",
        metavar="a|b",
        shown="what SUBMISSION has",
    )
    official: bool = opt("Measure as BioASQ's own evaluator does, quirks and all.", default=False)
    edition: int | None = opt(
        "With --official: 5 (of BioASQ 5 to 7), 8, or 9, which leaves out questions without "
        "golden answers.",
        metavar="N",
        shown="8",
    )
    intervals: bool = opt("Show 95 % intervals, bootstrapped over questions.", default=False)
    resamples: int = opt(
        "With --intervals: how often questions are resampled.", metavar="N", default=10_000, least=1
    )
    seed: int = opt("With --intervals: random seed.", metavar="S", default=0, least=0)


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The submission.")],
    *,
    chosen: SubmissionOptions,
    output: options.OutputOptions,
) -> None:
    """Say what is wrong with a submission."""
    check_input(file, chosen.questions)
    from deepera_graph.bioasq.check import check_submission
    from deepera_graph.bioasq.questions import read_questions, read_raw

    if not read_raw(file):
        raise SettingsError(f"{str(file)!r} has no question")
    asked = None if chosen.questions is None else read_questions(chosen.questions)
    problems = check_submission(file, asked, phase=chosen.phase)
    n_errors = sum(one.level == "error" for one in problems)
    n_warnings = len(problems) - n_errors
    tell(
        output,
        {
            "file": str(file),
            "errors": n_errors,
            "warnings": n_warnings,
            "problems": [one._asdict() for one in problems],
        },
        lambda: (
            f"{_list_problems(problems)}{file}: {count(n_errors, 'error')}, "
            f"{count(n_warnings, 'warning')}"
        ),
    )
    if n_errors or (chosen.strict and n_warnings):
        raise typer.Exit(SOME_FAILED)


def _list_problems(problems: Sequence[SubmissionProblem]) -> str:
    """Return the problems by name, errors first, the first few of each."""
    lines = []
    ordered = sorted(problems, key=lambda one: (one.level, one.name))
    for (level, name), group in groupby(ordered, key=lambda one: (one.level, one.name)):
        same = [*group]
        lines.append(f"{level}: {name}")
        lines += [f"  {one.question}: {one.field}: {one.message}" for one in same[:_SHOWN]]
        if len(same) > _SHOWN:
            lines.append(f"  and {len(same) - _SHOWN} more, see --json")
    return "".join(f"{line}\n" for line in lines)


def evaluate(
    golden: Annotated[Path, typer.Argument(metavar="GOLDEN", help="Golden questions.")],
    submission: Annotated[Path, typer.Argument(metavar="SUBMISSION", help="Answered ones.")],
    *,
    chosen: MeasureSubmissionOptions,
    output: options.OutputOptions,
) -> None:
    """Measure a submission."""
    check_input(golden, submission)
    if chosen.edition is not None and not chosen.official:
        raise SettingsError("--edition goes with --official")
    phases = _find_phases(submission) if chosen.phase is None else (chosen.phase,)
    evaluations = [_evaluate(golden, submission, phase, chosen) for phase in phases]
    intervals = _intervals(evaluations, chosen) if chosen.intervals else {}
    if not output.quiet:
        _tell_unknown(golden, submission)
    tell(
        output,
        _plain(evaluations, intervals),
        lambda: _show(evaluations, intervals, official=chosen.official),
    )
    if not any(one.questions for each in evaluations for one in each.measures.values()):
        what = " or ".join(_GOLDEN_OF[phase] for phase in phases)
        say(f"nothing is measured: {golden} has no golden {what}; is it the test set?")
        raise typer.Exit(SOME_FAILED)


def _tell_unknown(golden: Path, submission: Path) -> None:
    """Say on stderr which answers count nowhere, as the golden set has no question of their id."""
    from deepera_graph.bioasq.questions import read_raw

    asked, given = (
        dict.fromkeys(str(one.get("id")) for one in read_raw(path) if isinstance(one, Mapping))
        for path in (golden, submission)
    )
    unknown = [name for name in given if name not in asked]
    if unknown:
        n_given = f"{len(unknown)} of {count(len(given), 'answer')}"
        verb = "is" if len(unknown) == 1 else "are"
        where = f"{verb} to no question of {golden}, such as {unknown[0]!r}"
        say(f"{n_given} in {submission} {where}; not counted")


def _find_phases(submission: Path) -> tuple[Phase, ...]:
    """Return the phases that a submission has answers for."""
    from deepera_graph.bioasq.questions import read_raw

    questions = [one for one in read_raw(submission) if isinstance(one, Mapping)]
    has_a = any(one.get("documents") or one.get("snippets") for one in questions)
    has_b = any("exact_answer" in one or one.get("ideal_answer") for one in questions)
    if has_b:
        return ("a", "b") if has_a else ("b",)
    return ("a",)


def _evaluate(
    golden: Path, submission: Path, phase: Phase, chosen: MeasureSubmissionOptions
) -> Evaluation:
    if chosen.official:
        from deepera_graph.bioasq.official import evaluate_officially

        edition = _EDITION if chosen.edition is None else chosen.edition
        return evaluate_officially(golden, submission, phase, edition=edition)
    from deepera_graph.bioasq.measures import evaluate_phase
    from deepera_graph.bioasq.questions import read_questions, read_submission

    asked = read_questions(golden)
    given = read_submission(submission, asked)
    return evaluate_phase(asked, given, phase)


def _intervals(
    evaluations: Sequence[Evaluation], chosen: MeasureSubmissionOptions
) -> dict[str, Interval]:
    """Return an interval for every measure of at least one question."""
    from deepera_graph.calibration.statistics import bootstrap_sums

    found: dict[str, Interval] = {}
    measures = {name: one for each in evaluations for name, one in each.measures.items()}
    for questions in dict.fromkeys(one.questions for one in measures.values() if one.questions):
        same = {name: one for name, one in measures.items() if one.questions == questions}
        made = bootstrap_sums(
            [(one.summed, one.combine) for one in same.values()],
            n_resamples=chosen.resamples,
            seed=chosen.seed,
        )
        found |= dict(zip(same, made, strict=True))
    return found


def _plain(evaluations: Sequence[Evaluation], intervals: Mapping[str, Interval]) -> Any:
    measures = {}
    for name, one in ((name, one) for each in evaluations for name, one in each.measures.items()):
        measures[name] = {"value": _number(one.value()), "questions": len(one.questions)}
        if name in intervals:
            measures[name] |= {
                key: _number(getattr(intervals[name], key)) for key in ("low", "high")
            }
    return {
        "variant": evaluations[0].variant,
        "measures": measures,
        "unanswered": _unanswered(evaluations),
    }


def _number(value: float) -> float | None:
    return None if isnan(value) else value


def _unanswered(evaluations: Sequence[Evaluation]) -> list[str]:
    return [*dict.fromkeys(name for one in evaluations for name in one.missing)]


def _show(
    evaluations: Sequence[Evaluation], intervals: Mapping[str, Interval], *, official: bool
) -> str:
    """Return a Markdown table that says what its numbers are."""
    from deepera_graph.bioasq.measures import RANKING
    from deepera_graph.lab.tables import format_rows

    body = []
    for name, one in ((name, one) for each in evaluations for name, one in each.measures.items()):
        value, low_high = one.value(), intervals.get(name)
        interval = f"{low_high.low:.4f} to {low_high.high:.4f}" if low_high else ""
        body.append(
            (
                describe_measure(name) + (" *" if name in RANKING else ""),
                "–" if isnan(value) else f"{value:.4f}",
                *([interval] if intervals else []),
                str(len(one.questions)),
            )
        )
    head = ("measure", "value", *(["95 % interval"] if intervals else []), "questions")
    return f"{_about(evaluations, official=official)}\n\n{format_rows(head, body)}".rstrip()


def _about(evaluations: Sequence[Evaluation], *, official: bool) -> str:
    unanswered = len(_unanswered(evaluations))
    how = (
        f"{evaluations[0].variant}: as the evaluator of BioASQ counts, quirks and all"
        if official
        else "corrected: documents by PMID, no more than the rules allow, 0 where there is no "
        "answer\n(--official counts as the evaluator of BioASQ does)"
    )
    return how + (f"\n{count(unanswered, 'question')} not answered" if unanswered else "")


_WORDS = {
    **{"yesno": "yes/no", "map": "MAP", "gmap": "GMAP", "f1": "F1", "mrr": "MRR"},
    **{"rouge-2": "ROUGE-2", "rouge-su4": "ROUGE-SU4"},
}


def describe_measure(name: str) -> str:
    """Return the name of a measure as people write it, e.g. ``documents MAP``."""
    return " ".join(_WORDS.get(part, part) for part in name.split("_"))
