"""`deepera-lab bioasq evaluate` and `ensemble`: what submissions are worth, and one run of two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.bioasq.settings import FIRST, MAX_DOCUMENTS, SECOND, check_pair
from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.console import (
    SOME_FAILED,
    check_file,
    check_input,
    say,
    tell,
    tell_done,
)
from deepera_graph.cli.shared.declaring import arg, given, opt
from deepera_graph.errors import SettingsError
from deepera_graph.lab.cli.running import plain_number
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.bioasq.ensemble import Tried, WeightSearch
    from deepera_graph.bioasq.measures import Evaluation, Measure, Phase
    from deepera_graph.bioasq.questions import BioasqQuestion
    from deepera_graph.bioasq.runs import Run
    from deepera_graph.calibration.statistics import Interval

_EDITION = 8
_BEST_SHOWN = 5
_join = partial(opt, panel="How they are joined")
_GOLDEN_OF = {"a": "documents or snippets", "b": "answers"}


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


def evaluate(
    golden: Annotated[Path, arg("GOLDEN", "Golden questions.")],
    submission: Annotated[Path, arg("SUBMISSION", "Answered ones.")],
    *,
    chosen: MeasureSubmissionOptions,
    output: options.OutputOptions,
) -> None:
    """Measure a submission."""
    check_input(golden, submission)
    if chosen.edition is not None and not chosen.official:
        raise SettingsError("--edition goes with --official")
    phases = _find_phases(submission) if chosen.phase is None else (chosen.phase,)
    from deepera_graph.bioasq.measures import join_evaluations

    whole = join_evaluations([_evaluate(golden, submission, phase, chosen) for phase in phases])
    intervals = _intervals(whole, chosen) if chosen.intervals else {}
    if not output.quiet:
        _tell_unknown(golden, submission)
    tell(
        output,
        {
            "variant": whole.variant,
            "measures": {
                name: _plain(one, intervals.get(name)) for name, one in whole.measures.items()
            },
            "unanswered": list(whole.missing),
        },
        lambda: _show(whole, intervals, official=chosen.official),
    )
    if not any(one.questions for one in whole.measures.values()):
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


def _intervals(whole: Evaluation, chosen: MeasureSubmissionOptions) -> dict[str, Interval]:
    """Return an interval for every measure of at least one question."""
    from deepera_graph.calibration.statistics import bootstrap_sums

    found: dict[str, Interval] = {}
    measures = whole.measures
    for questions in dict.fromkeys(one.questions for one in measures.values() if one.questions):
        same = {name: one for name, one in measures.items() if one.questions == questions}
        made = bootstrap_sums(
            [(one.summed, one.combine) for one in same.values()],
            n_resamples=chosen.resamples,
            seed=chosen.seed,
        )
        found |= dict(zip(same, made, strict=True))
    return found


def _plain(measure: Measure, interval: Interval | None) -> dict[str, Any]:
    bounds = {} if interval is None else {"low": interval.low, "high": interval.high}
    plain = {"value": measure.value(), "questions": len(measure.questions), **bounds}
    return {name: plain_number(value) for name, value in plain.items()}


def _show(whole: Evaluation, intervals: Mapping[str, Interval], *, official: bool) -> str:
    """Return a Markdown table that says what its numbers are."""
    from deepera_graph.bioasq.measures import RANKING
    from deepera_graph.lab.tables import format_rows

    body = []
    for name, one in whole.measures.items():
        value, low_high = one.value(), intervals.get(name)
        interval = (
            "–"
            if low_high is None or isnan(low_high.low)
            else f"{low_high.low:.4f} to {low_high.high:.4f}"
        )
        body.append(
            (
                describe_measure(name) + (" *" if name in RANKING else ""),
                "–" if isnan(value) else f"{value:.4f}",
                *([interval] if intervals else []),
                str(len(one.questions)),
            )
        )
    head = ("measure", "value", *(["95 % interval"] if intervals else []), "questions")
    how = (
        f"{whole.variant}: as the evaluator of BioASQ counts, quirks and all"
        if official
        else "corrected: documents by PMID, no more than the rules allow, 0 where there is no "
        "answer\n(--official counts as the evaluator of BioASQ does)"
    )
    if whole.missing:
        how += f"\n{count(len(whole.missing), 'question')} not answered"
    return f"{how}\n\n{format_rows(head, body)}".rstrip()


_WORDS = {
    **{"yesno": "yes/no", "map": "MAP", "gmap": "GMAP", "f1": "F1", "mrr": "MRR"},
    **{"rouge-2": "ROUGE-2", "rouge-su4": "ROUGE-SU4"},
}


def describe_measure(name: str) -> str:
    """Return the name of a measure as people write it, e.g. ``documents MAP``."""
    return " ".join(_WORDS.get(part, part) for part in name.split("_"))


@dataclass(frozen=True, kw_only=True)
class JoinOptions:
    """How two runs become one."""

    weights: str | None = _join(
        "Add up points for places, or what --scores says, with these weights.",
        metavar="W,W",
        many=float,
    )
    nominate: str | None = _join(
        "Take this many of the first run, then this many new ones of the second; what one lacks "
        "the other fills.",
        metavar="N,N",
        shown="6,4",
        many=int,
        setting="nominated",
    )
    search_weights: bool = _join(
        "Try all pairs of weights from 0 to 10, and take the best for --golden by MAP of ten "
        "documents. Use questions that nothing else is measured on.",
        default=False,
    )
    golden: Path | None = _join("With --search-weights: golden questions.", metavar="FILE")
    scores: Literal["rank", "reciprocal", "min-max"] | None = _join(
        "With weights, what is added up. [b]rank[/b]: 1.0 for the first place down to 0.1 for the "
        "tenth. [b]reciprocal[/b]: 1 / (60 + rank). [b]min-max[/b]: the scores, from 0 to 1.",
        metavar="HOW",
        shown="rank",
    )
    n_documents: int | None = _join(
        "With weights: documents of a question.", "--documents", metavar="N", least=1, shown="10"
    )
    questions: Path | None = _join(
        "Write a submission for these questions, not a run. Snippets that stand in FILE are kept "
        "where their document is.",
        metavar="FILE",
    )


@dataclass(frozen=True, kw_only=True)
class JoinFiles:
    """Where the result goes."""

    out: Path = opt(
        "The run, JSON lines; a TREC run if the name ends with .trec.",
        "--out",
        "-o",
        metavar="FILE",
        needed=True,
    )
    overwrite: bool = opt("Replace a file that exists.", default=False)


def ensemble(
    first: Annotated[Path, arg("RUN", "It decides where documents tie.")],
    second: Annotated[Path, arg("RUN", "The other run.")],
    *,
    chosen: JoinOptions,
    files: JoinFiles,
    output: options.OutputOptions,
) -> None:
    """Make one run of two."""
    _check_join(first, second, chosen, files)
    from deepera_graph.bioasq.ensemble import nominate, search_weights, weigh
    from deepera_graph.bioasq.questions import read_questions
    from deepera_graph.bioasq.runs import read_run

    both = [read_run(first), read_run(second)]
    asked = None if chosen.questions is None else read_questions(chosen.questions)
    remarks = [*_compare_runs({first: both[0], second: both[1]})]
    if chosen.questions is not None and asked is not None:
        remarks += _compare_asked(both, chosen.questions, asked)
    for one in remarks if not output.quiet else ():
        say(one)
    how, plain = chosen.scores or "rank", given(chosen)
    found: WeightSearch | None = None
    if chosen.search_weights and chosen.golden is not None:
        found = search_weights(both[0], both[1], read_questions(chosen.golden), how=how)
    weights = found.best.weights if found else plain.get("weights")
    if weights is not None:
        made = weigh(both, weights, how=how, n=chosen.n_documents or MAX_DOCUMENTS)
    else:
        n_first, n_second = plain.get("nominated", (FIRST, SECOND))
        made = nominate(both[0], both[1], n_first=n_first, n_second=n_second)
    from deepera_graph.bioasq.questions import write_questions
    from deepera_graph.bioasq.runs import submit_run, write_run

    if asked is not None:
        write_questions(files.out, submit_run(made, asked))
    else:
        write_run(files.out, made)
    n_written = len(made if asked is None else asked)
    result: dict[str, Any] = {"questions": n_written, "out": str(files.out)}
    if found is not None:
        result |= {"weights": [*found.best.weights], "map": found.best.map}
        result |= {"golden_questions": found.n_questions}
        result |= {"tried": [one._asdict() for one in found.tried]}
    tell_done(output, result, lambda: _tell_join(n_written, found, files))


def _check_join(first: Path, second: Path, chosen: JoinOptions, files: JoinFiles) -> None:
    ways = {
        "--weights": chosen.weights is not None,
        "--nominate": chosen.nominate is not None,
        "--search-weights": chosen.search_weights,
    }
    named = [name for name, wanted in ways.items() if wanted]
    if len(named) > 1:
        raise SettingsError(f"give one of {', '.join(ways)}, got {' and '.join(named)}")
    if chosen.search_weights != (chosen.golden is not None):
        raise SettingsError("--search-weights and --golden go together")
    if chosen.scores is not None and named not in (["--weights"], ["--search-weights"]):
        raise SettingsError("--scores goes with --weights or --search-weights")
    if chosen.n_documents is not None and named not in (["--weights"], ["--search-weights"]):
        raise SettingsError(
            "--documents goes with --weights or --search-weights: --nominate says itself how many"
        )
    plain = given(chosen)
    for option, name in (("--weights", "weights"), ("--nominate", "nominated")):
        if name in plain:
            check_pair(option, plain[name])
    check_input(first, second, chosen.golden, chosen.questions)
    check_file(files.out, overwrite=files.overwrite)


def _compare_runs(runs: Mapping[Path, Run]) -> Iterator[str]:
    """Yield what one run has and the other lacks; raise `SettingsError` if one ranks nothing."""
    ranked = {
        path: {name for name, ranking in run.items() if ranking} for path, run in runs.items()
    }
    in_all = set().union(*ranked.values())
    for path, names in ranked.items():
        if not names:
            raise SettingsError(f"{str(path)!r} ranks no document")
        if lacking := len(in_all - names):
            yield f"{path} has no document for {lacking} of {count(len(in_all), 'question')}"


def _compare_asked(
    runs: Sequence[Run], questions: Path, asked: Sequence[BioasqQuestion]
) -> Iterator[str]:
    """Yield how many questions no run has; raise `SettingsError` if that is all of them."""
    n_lacking = sum(all(one.id not in run for run in runs) for one in asked)
    if n_lacking == len(asked):
        raise SettingsError(f"neither run has a question of {str(questions)!r}")
    if n_lacking:
        yield f"{n_lacking} of {count(len(asked), 'question')} in {questions} are in neither run"


def _tell_join(n: int, found: WeightSearch | None, files: JoinFiles) -> str:
    lines = []
    if found is not None:
        from deepera_graph.bioasq.ensemble import share_of_first

        distinct: dict[float, Tried] = {}  # 2:2 is 1:1
        for one in sorted(found.tried, key=lambda one: (-one.map, one != found.best)):
            distinct.setdefault(share_of_first(one.weights), one)
        shown = [
            f"{one.weights[0]:g}:{one.weights[1]:g} {one.map:.4f}"
            for one in [*distinct.values()][:_BEST_SHOWN]
        ]
        asked = count(found.n_questions, "golden question")
        lines.append(f"best weights by MAP@10 of {asked}: {', '.join(shown)}")
    lines.append(f"{count(n, 'question')} in {files.out}")
    return "\n".join(lines)
