"""`deepera demo`: the built-in corpus, before and after reranking, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from deepera_graph.cli.opening.judges import open_judge, settings_of
from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import OK, SOME_FAILED, text_console, write_json
from deepera_graph.cli.shared.declaring import opt
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.settings import Settings
from deepera_graph.settings.ranges import suggest_value
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.demo import DemoQuestion, Trial
    from deepera_graph.result import RankedPassage

DAILY = {
    "demo": (
        "question", "without_evidence", "hard", "preset", "backend", "model", "base_url",
        "threshold", "verbose", "as_json", "quiet",
    ),
}  # fmt: skip
N_SHOWN = 3
N_SHOWN_IN_FULL = 8
_LEGEND = {
    "golden": "the evidence, as the corpus is labelled; a judge sees no label",
    "look-alike": "same subject, same words, but no evidence for this question",
    "score": "how sure the judge is of a passage; it is kept from {threshold} on",
    "outcome": "ok: evidence was kept; no_evidence: no passage reaches the threshold",
}
_READ_AS = "how the question was understood: intent; topic; entities; form of the answer"


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """What is shown."""

    question: list[str] | None = opt(
        "Only this question; may be repeated.", metavar="ID", shown="all"
    )
    without_evidence: bool = opt(
        "Take the golden passages out first: then nothing should pass.", default=False
    )
    hard: bool = opt(
        "Use the corpus written against judges that match words, as the rules do.", default=False
    )


@dataclass(frozen=True, kw_only=True)
class DemoJudgeOptions(options.FilterOptions, options.JudgeOptions):
    """Who judges, and what is kept."""


def demo(
    *,
    chosen: DemoOptions,
    judge: DemoJudgeOptions,
    output: options.ShowOptions,
) -> None:
    """Show on a built-in corpus how evidence is told from look-alikes; needs no key."""
    settings = Settings.of(settings_of(judge))
    backend = open_judge(judge)
    from deepera_graph.demo import run_trials
    from deepera_graph.reranker import EvidenceReranker

    questions = _find_questions(chosen.question or [], hard=chosen.hard)
    reranker = EvidenceReranker(backend, **settings.to_dict())
    trials: list[Trial] = []
    with progress_bar("reranking", total=len(questions), hidden=output.quiet) as bar:
        with_evidence = not chosen.without_evidence
        for trial in run_trials(reranker, questions, with_evidence=with_evidence, hard=chosen.hard):
            if trial.result.backend_failure is not None:
                raise BackendError(trial.result.backend_failure)
            trials.append(trial)
            bar.reach(len(trials))
    if output.as_json:
        write_json([trial.to_dict() for trial in trials])
    else:
        each = output.verbose or bool(chosen.question)
        _show_trials(text_console(), trials, each=each, verbose=output.verbose)
        _show_score(text_console(), trials, without_evidence=chosen.without_evidence)
    degraded = all(trial.result.outcome == "degraded" for trial in trials)
    raise typer.Exit(SOME_FAILED if degraded else OK)


def _find_questions(ids: Sequence[str], *, hard: bool) -> list[DemoQuestion]:
    from deepera_graph.demo import read_questions

    questions = {question.id: question for question in read_questions(hard=hard)}
    for name in ids:
        if name not in questions:
            known, hint = ", ".join(questions), suggest_value(name, questions)
            raise SettingsError(f"unknown question {name!r}; available: {known}{hint}")
    return [question for name, question in questions.items() if not ids or name in ids]


def _show_trials(console: Console, trials: Sequence[Trial], *, each: bool, verbose: bool) -> None:
    """Show each question; or one of them and a line for every question, which fits a screen."""
    _show_legend(console, trials[0].result.threshold, verbose=verbose)
    telling = [
        one
        for one in trials
        if one.evidence_first and not one.evidence_first_before and not one.mistakes()
    ]
    for trial in trials if each else (telling or trials)[:1]:
        _show_trial(console, trial, verbose=verbose)
    if not each:
        console.print(_overview(trials))
        console.print(
            "More of a question: deepera demo --question q01; of all: deepera demo -v", style="dim"
        )


def _show_legend(console: Console, threshold: float, *, verbose: bool) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for word, meaning in (_LEGEND | ({"read as": _READ_AS} if verbose else {})).items():
        table.add_row(_colour(word), Text(meaning.format(threshold=f"{threshold:g}"), style="dim"))
    console.print(table)


def _overview(trials: Sequence[Trial]) -> Table:
    """Return a line a question: what is first as retrieved, and after, and what was kept."""
    table = Table(box=None, pad_edge=False)
    for name in ("all", "first before", "first after", "score", "outcome", "kept"):
        table.add_column(name, no_wrap=True, justify="right" if name == "score" else "left")
    for trial in trials:
        ranked = trial.result.passages[:1]
        retrieved = trial.by_retrieval[:1]
        kept = (_short_label(trial, passage) or "other" for passage in trial.result.kept)
        table.add_row(
            trial.question.id,
            *(_colour(_short_label(trial, one) or "other") for one in (*retrieved, *ranked)),
            trial.result.show_score(ranked[0].score) if ranked else "",
            trial.result.outcome,
            ", ".join(dict.fromkeys(kept)) or "nothing",
        )
    return table


def _show_score(console: Console, trials: Sequence[Trial], *, without_evidence: bool) -> None:
    """Say how many went right, and name each question that did not."""
    n = count(len(trials), "question")
    if without_evidence:
        empty = sum(trial.result.outcome == "no_evidence" for trial in trials)
        console.print(f"[b]without evidence: no_evidence in {empty} of {n}[/b]")
    else:
        first = sum(trial.evidence_first for trial in trials)
        before = sum(trial.evidence_first_before for trial in trials)
        console.print(f"[b]evidence first in {first} of {n}[/b]; as retrieved, in {before}")
    wrong = {trial.question.id: trial.mistakes() for trial in trials}
    if not any(wrong.values()):
        console.print("Nothing went wrong.")
        return
    console.print("What went wrong:")
    for name, mistakes in wrong.items():
        for mistake in mistakes:
            console.print(Text(f"  {name}  {mistake}"))


def _show_trial(console: Console, trial: Trial, *, verbose: bool) -> None:
    """Show the best before and after, and what was kept; or what was nearest."""
    from deepera_graph.cli.judging.evidence import describe_reading

    result = trial.result
    console.print(Rule(f"{trial.question.id} {trial.question.science}", style="dim"))
    console.print(Text(trial.question.question, style="bold"))
    if verbose or not result.reads_by_rules:
        console.print(describe_reading(result))
    console.print(_before_and_after(trial, N_SHOWN_IN_FULL if verbose else N_SHOWN))
    for place, passage in enumerate(result.kept):
        _show_passage(console, trial, passage, whole=verbose or not place)
    if not result.kept or result.fallback is not None:
        console.print(f"[b]{result.outcome}[/b]: no passage reaches {result.threshold:g}")
    if verbose or not result.kept:
        _show_dropped(console, trial)


def _before_and_after(trial: Trial, n: int) -> Table:
    table = Table(box=None, expand=True, pad_edge=False)
    table.add_column("", style="dim", no_wrap=True)
    table.add_column("before: as retrieved", ratio=1)
    table.add_column("after: as evidence", ratio=1)
    ranked = trial.result.passages[:n]
    for rank, (before, after) in enumerate(zip(trial.by_retrieval, ranked, strict=False), start=1):
        score = Text(
            f"{trial.result.show_score(after.score)} ", style="bold" if after.kept else "dim"
        )
        table.add_row(str(rank), _entry(trial, before), score + _entry(trial, after))
    return table


def _entry(trial: Trial, passage: RankedPassage) -> Text:
    title = str(passage.metadata.get("title") or "")
    entry = Text.assemble((passage.id, "dim"), " ", _colour(_short_label(trial, passage)), " ")
    entry.append(title)
    return entry


def _show_passage(
    console: Console, trial: Trial, passage: RankedPassage, *, whole: bool = True
) -> None:
    near = trial.result.fallback is not None
    head = ("below the threshold: ", "bold red") if near else ("kept ", "bold green")
    how = f"{passage.band} " if passage.band == "possible" else ""
    score = f" score {trial.result.show_score(passage.score)} {how}"
    console.print(Text.assemble(head, (passage.id, "bold"), score, _colour(trial.label(passage))))
    words = passage.summary or passage.quote
    for text, style in ((words, "italic"), (passage.reason, "dim")):
        if text and whole:
            console.print(Padding(Text(text, style=style), (0, 0, 0, 5), expand=False))


def _show_dropped(console: Console, trial: Trial) -> None:
    """Show why the best dropped were dropped, and every golden passage among the dropped."""
    from deepera_graph.demo import GOLDEN

    dropped = [*trial.result.dropped, *trial.result.failed]
    shown = [
        passage
        for place, passage in enumerate(dropped)
        if place < N_SHOWN or trial.label(passage) == GOLDEN
    ]
    for passage in shown:
        words = [
            f"{passage.id} score {trial.result.show_score(passage.score)}",
            trial.label(passage),
        ]
        line = " ".join(filter(None, words))
        why = f": {passage.reason}" if passage.reason else ""
        console.print(Text.assemble(("dropped ", "red"), line + why))
    if len(dropped) > len(shown):
        console.print(Text(f"and {len(dropped) - len(shown)} more dropped", style="dim"))


def _short_label(trial: Trial, passage: RankedPassage) -> str:
    return trial.label(passage).partition(" (")[0]


def _colour(label: str) -> Text:
    word = label.partition(" (")[0]
    return Text(label, style={"golden": "green", "look-alike": "yellow"}.get(word, ""))
