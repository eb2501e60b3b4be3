"""`deepera demo`: the built-in corpus, question by question, before and after reranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from deepera_graph.cli import options
from deepera_graph.cli.console import count, output_console, progress_bar, show_number, write_json
from deepera_graph.cli.options import opt
from deepera_graph.errors import BackendError, SettingsError

if TYPE_CHECKING:
    from deepera_graph.demo import DemoQuestion, Trial
    from deepera_graph.result import RankedPassage

DAILY = {
    "demo": (
        "question", "without_evidence", "hard", "preset", "backend", "model", "base_url",
        "threshold", "as_json", "quiet",
    ),
}  # fmt: skip
N_BEFORE = 5
N_AFTER = 8
N_DROPPED = 3


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


def demo(
    *,
    chosen: DemoOptions,
    judge: options.JudgeOptions,
    kept: options.FilterOptions,
    output: options.OutputOptions,
) -> None:
    """Show on a built-in corpus how evidence is told from look-alikes; needs no key."""
    from deepera_graph.cli.opening import open_judge, settings_of
    from deepera_graph.settings import Settings

    settings = Settings.of(settings_of(judge, kept))
    backend = open_judge(judge)
    from deepera_graph.demo import run_trials
    from deepera_graph.reranker import EvidenceReranker

    questions = _find_questions(chosen.question or [], hard=chosen.hard)
    reranker = EvidenceReranker(backend, **settings.to_dict())
    console, as_json = output_console(), output.as_json
    trials: list[Trial] = []
    hidden = output.quiet or not as_json
    with progress_bar("reranking", total=len(questions), hidden=hidden) as bar:
        with_evidence = not chosen.without_evidence
        for trial in run_trials(reranker, questions, with_evidence=with_evidence, hard=chosen.hard):
            if trial.result.backend_failure is not None:
                raise BackendError(trial.result.backend_failure)
            trials.append(trial)
            bar.move(to=len(trials), count=len(trials))
            if not as_json:
                _show_trial(console, trial)
    if as_json:
        write_json([trial.to_dict() for trial in trials])
    else:
        _show_score(console, trials, without_evidence=chosen.without_evidence)


def _find_questions(ids: Sequence[str], *, hard: bool) -> list[DemoQuestion]:
    from deepera_graph.demo import read_questions

    questions = {question.id: question for question in read_questions(hard=hard)}
    for name in ids:
        if name not in questions:
            raise SettingsError(f"there is no question {name!r}; there are {', '.join(questions)}")
    return [question for name, question in questions.items() if not ids or name in ids]


def _show_score(console: Console, trials: Sequence[Trial], *, without_evidence: bool) -> None:
    n = count(len(trials), "question")
    if without_evidence:
        empty = sum(trial.result.outcome == "over_filtered" for trial in trials)
        console.print(f"[b]without evidence: over_filtered in {empty} of {n}[/b]")
        return
    first = sum(trial.evidence_first for trial in trials)
    before = sum(trial.evidence_first_before for trial in trials)
    console.print(f"[b]evidence first in {first} of {n}[/b]; as retrieved, in {before}")


def _show_trial(console: Console, trial: Trial) -> None:
    """Show the intent, the ranking before and after, the kept with summaries, and the dropped."""

    result, fields = trial.result, trial.result.intent["fields"]
    console.print(Rule(f"[b]{trial.question.id}[/b] {escape(trial.question.science)}"))
    console.print(Text(trial.question.question, style="bold"))
    console.print(
        Text.assemble(
            ("intent ", "dim"),
            f"{fields['intent']}; {fields['topic']}; {fields['entity_type']}; "
            f"answer: {fields['expected_answer_type']}",
        )
    )
    by_retrieval = sorted(result.passages, key=lambda one: one.retrieval_rank)
    console.print(_before(trial, by_retrieval[:N_BEFORE]))
    console.print(_after(trial, result.passages[:N_AFTER]))
    for passage in result.kept:
        _show_kept(console, passage)
    if not result.kept:
        console.print(
            f"[b]{result.outcome}[/b]: no passage reaches {result.threshold:g}, so none is kept"
        )
    _show_dropped(console, trial)
    console.print()


def _before(trial: Trial, passages: Sequence[RankedPassage]) -> Table:
    table = _table("before: as retrieved", {"rank": "dim", "score": "dim", "id": ""})
    for passage in passages:
        table.add_row(
            str(passage.retrieval_rank),
            show_number(passage.retrieval_score),
            passage.id,
            _title(passage),
            _mark(trial, passage),
        )
    return table


def _after(trial: Trial, passages: Sequence[RankedPassage]) -> Table:
    table = _table("after: as evidence", {"rank": "dim", "was": "dim", "score": "", "id": ""})
    for passage in passages:
        table.add_row(
            str(passage.rank),
            str(passage.retrieval_rank),
            Text(show_number(passage.score), style="bold" if passage.kept else ""),
            passage.id,
            _title(passage),
            _mark(trial, passage),
            style="" if passage.kept else "dim",
        )
    return table


def _table(title: str, columns: dict[str, str]) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="dim", box=None, expand=True, pad_edge=False
    )
    for name, style in {**columns, "title": "", "": ""}.items():
        ratio = 1 if name == "title" else None
        table.add_column(name, style=style, no_wrap=name != "title", ratio=ratio)
    return table


def _show_kept(console: Console, passage: RankedPassage) -> None:
    console.print(
        Text.assemble(("kept ", "bold green"), (passage.id, "bold"), f": {passage.reason}")
    )
    console.print(Padding(Text(passage.summary or passage.quote, style="italic"), (0, 0, 0, 5)))


def _show_dropped(console: Console, trial: Trial) -> None:
    """Show why the best dropped were dropped, and every golden passage among the dropped."""

    from deepera_graph.demo import GOLDEN

    dropped = [*trial.result.dropped, *trial.result.failed]
    shown = [
        passage
        for place, passage in enumerate(dropped)
        if place < N_DROPPED or trial.label(passage) == GOLDEN
    ]
    for passage in shown:
        console.print(
            Text.assemble(
                ("dropped ", "red"),
                f"{passage.id} ",
                (show_number(passage.score), "dim"),
                Text(" ") if trial.label(passage) else "",
                _mark(trial, passage),
                f": {passage.reason}",
            )
        )
    if len(dropped) > len(shown):
        console.print(Text(f"and {len(dropped) - len(shown)} more dropped", style="dim"))


def _mark(trial: Trial, passage: RankedPassage) -> Text:
    from deepera_graph.demo import GOLDEN

    label = trial.label(passage)
    return Text(label, style="green" if label == GOLDEN else "yellow")


def _title(passage: RankedPassage) -> Text:
    title = str(passage.metadata.get("title") or "")
    return Text(title, overflow="ellipsis", no_wrap=True)
