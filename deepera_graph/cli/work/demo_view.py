"""How a trial of the demonstration looks in a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from deepera_graph.demo import GOLDEN, Trial
from deepera_graph.result import RankedPassage

N_BEFORE = 5
N_AFTER = 8
N_DROPPED = 3


def show_trial(console: Console, trial: Trial) -> None:
    """Show the intent, the ranking before and after, the kept with summaries, and the dropped."""
    result = trial.result
    console.print(Rule(f"[b]{trial.question.id}[/b] {escape(trial.question.science)}"))
    console.print(Text(trial.question.question, style="bold"))
    console.print(_intent(trial))
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


def _intent(trial: Trial) -> Text:
    fields = trial.result.intent["fields"]
    return Text.assemble(
        ("intent ", "dim"),
        f"{fields['intent']}; {fields['topic']}; {fields['entity_type']}; "
        f"answer: {fields['expected_answer_type']}",
    )


def _before(trial: Trial, passages: Sequence[RankedPassage]) -> Table:
    table = _table("before: as retrieved")
    for name, style in (("rank", "dim"), ("score", "dim"), ("id", ""), ("title", ""), ("", "")):
        table.add_column(name, style=style, no_wrap=name != "title", ratio=_ratio(name))
    for passage in passages:
        table.add_row(
            str(passage.retrieval_rank),
            _number(passage.retrieval_score),
            passage.id,
            _title(passage),
            _mark(trial, passage),
        )
    return table


def _after(trial: Trial, passages: Sequence[RankedPassage]) -> Table:
    table = _table("after: as evidence")
    for name in ("rank", "was", "score", "id", "title", ""):
        style = "dim" if name in {"rank", "was"} else ""
        table.add_column(name, style=style, no_wrap=name != "title", ratio=_ratio(name))
    for passage in passages:
        table.add_row(
            str(passage.rank),
            str(passage.retrieval_rank),
            Text(_number(passage.score), style="bold" if passage.kept else ""),
            passage.id,
            _title(passage),
            _mark(trial, passage),
            style="" if passage.kept else "dim",
        )
    return table


def _show_kept(console: Console, passage: RankedPassage) -> None:
    console.print(
        Text.assemble(("kept ", "bold green"), (passage.id, "bold"), f": {passage.reason}")
    )
    console.print(Padding(Text(passage.summary or passage.quote, style="italic"), (0, 0, 0, 5)))


def _show_dropped(console: Console, trial: Trial) -> None:
    """Show why the best dropped were dropped, and every golden passage among the dropped."""
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
                (f"{_number(passage.score)} ", "dim"),
                _mark(trial, passage),
                f": {passage.reason}",
            )
        )
    if len(dropped) > len(shown):
        console.print(Text(f"and {len(dropped) - len(shown)} more dropped", style="dim"))


def _mark(trial: Trial, passage: RankedPassage) -> Text:
    label = trial.label(passage)
    return Text(label, style="green" if label == GOLDEN else "yellow")


def _title(passage: RankedPassage) -> Text:
    return Text(str(passage.metadata.get("title") or ""), overflow="ellipsis", no_wrap=True)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _ratio(name: str) -> int | None:
    return 1 if name == "title" else None


def _table(title: str) -> Table:
    return Table(
        title=title, title_justify="left", title_style="dim", box=None, expand=True, pad_edge=False
    )
