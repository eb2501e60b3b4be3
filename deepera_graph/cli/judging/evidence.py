"""What `deepera ask` prints: the answer, the evidence with its sources, or the nearest there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from deepera_graph.export import (
    BELOW,
    N_NEAREST,
    answer_with_numbers,
    describe_outcome,
    list_cited,
)
from deepera_graph.pipeline.shown import (
    count_bands,
    describe_calls,
    describe_cut,
    describe_failures,
    describe_uncited,
)
from deepera_graph.schema import POSSIBLE
from deepera_graph.text.plain import count, name_some
from deepera_graph.text.questions import describe_directions, name_direction

if TYPE_CHECKING:
    from rich.console import Console

    from deepera_graph.result import RankedPassage, RerankResult

_SHOWN_CHARS = 300


def show_result(
    console: Console, result: RerankResult, *, verbose: bool = False, quiet: bool = False
) -> None:
    """Show the answer if one was asked for, and the evidence; or the nearest, marked as such."""
    # *quiet* leaves out what is a remark: notes, hints and the closing line.
    console.print(Text(result.question, style="bold"))
    for warning in () if quiet else result.warnings:
        console.print(Text(f"note: {warning}", style="yellow"))
    if result.sources and not quiet:
        console.print(Text(f"searched {_describe_sources(result)}", style="dim"))
    if result.all_passages and (
        verbose or not result.reads_by_rules
    ):  # without any nobody reads it
        console.print(describe_reading(result))
    if result.fallback is not None:
        words = f"on_empty={result.fallback} shows the nearest all the same. It is not evidence."
        console.print(Text(f"BELOW THE THRESHOLD: {_none_of(result)}. {words}", style="bold red"))
    _show_answer(console, result)
    _show_passages(console, result, quiet=quiet)
    if verbose:
        _show_rest(console, result)
    if not quiet:
        console.print(Text(_closing_line(result), style="dim"))


def _describe_sources(result: RerankResult) -> str:
    """Say what each service gave: ``pubmed (30), arxiv (failed)``."""
    said = []
    for one in result.sources:
        found = str(one["papers"]) if one["papers"] or one["status"] == "empty" else ""
        gone = "" if one["status"] in ("ok", "empty") else one["status"].replace("_", " ")
        said.append(f"{one['source']} ({', '.join(filter(None, (found, gone)))})")
    return ", ".join(said)


def describe_reading(result: RerankResult) -> Text:
    """Return how the question was read, in a line; or why it could not be."""
    if result.intent["status"] == "fallback":
        cause = result.intent["cause"] or "no reason was given"
        return Text(f"the question could not be read: {cause}", style="yellow")
    fields = result.intent["fields"]
    words = (
        f"{fields['intent']}; {fields['topic']}; {fields['entity_type']}; "
        f"answer: {fields['expected_answer_type']}"
    )
    return Text.assemble(("read as ", "dim"), words)


def _none_of(result: RerankResult) -> str:
    n = len(result.all_passages) - len(result.failed)
    judged = " that could be judged" if result.failed else ""
    return f"none of {count(n, 'passage')}{judged} reaches {result.threshold:g}"


def _closing_line(result: RerankResult) -> str:
    n_undone = sum(one.status == "skipped_budget" for one in result.failed)
    undone = f", {n_undone} not judged" if n_undone else ""
    unasked = f", {len(result.not_needed)} not needed" if result.not_needed else ""
    kept = f"{len(result.kept)} kept"
    n = count_bands(result)
    others = {"possible": n.possible, "retracted": n.retracted}
    if any(others.values()):
        parts = [f"{n.evidence} evidence", *(f"{m} {one}" for one, m in others.items() if m)]
        kept += f" ({', '.join(parts)})"
    if result.fallback is None and len(result.studies) < len(result.kept):
        kept += f" of {count(len(result.studies), 'study')}"
    if result.fallback is not None:
        kept = f"0 kept, {len(result.kept)} shown by on_empty={result.fallback}"
    words = (
        f"{result.outcome}: {kept}, {len(result.dropped)} dropped{describe_cut(result)}, "
        f"{len(result.failed) - n_undone} failed{undone}{unasked}; "
        f"{describe_calls(result.total_usage)}; "
        f"judged in {result.seconds['total']:.1f} s"
    )
    if said := describe_directions(result.direction_counts, result.positions):
        words += f"; {said}"
    return words


def _show_answer(console: Console, result: RerankResult) -> None:
    if result.answer is None:
        return
    answer = result.answer
    if answer["status"] != "answered":
        cause = f": {answer['cause']}" if answer["cause"] else ""
        console.print(Text(f"no answer ({answer['status'].replace('_', ' ')}{cause})"))
        return
    ranks = {one.id: one.rank for one in result.kept}
    if result.fallback is not None:
        console.print(Text("\nFrom passages below the threshold:", style="bold red"))
    console.print(Padding(Text(answer_with_numbers(result)), (1, 0, 0, 0), expand=False))
    cited = ", ".join(str(ranks[name]) for name in list_cited(result, answer["citations"]))
    rest = (describe_uncited(result, ranks), _tell_possible(result))
    words = "; ".join(filter(None, (f"cited: {cited or 'nothing'}", *rest)))
    console.print(Text(words, style="dim"))
    console.print()


def _tell_possible(result: RerankResult) -> str:
    """Say which studies may be evidence and are not in the answer."""
    ranks = [str(study[0].rank) for study in _possible(result)]
    are = "study is" if len(ranks) == 1 else "studies are"
    return f"{len(ranks)} more {are} possible, not counted: {name_some(ranks)}" if ranks else ""


def _possible(result: RerankResult) -> list[tuple[RankedPassage, ...]]:
    return [study for study in result.studies if study[0].band == POSSIBLE]


def _show_passages(console: Console, result: RerankResult, *, quiet: bool) -> None:
    """Show what was kept, the evidence first, and what could not be judged; or the nearest."""
    # A study is shown once, by its best passage; its others are lines below that.
    if not result.kept:
        _show_nearest(console, result, quiet=quiet)
        return
    possible = _possible(result)
    for study in result.studies:
        if study not in possible:
            _show_study(console, result, study)
    if possible:
        console.print(Text("Possible: may be evidence or not", style="bold yellow"))
    for study in possible:
        _show_study(console, result, study)
    if result.failed:
        console.print(Text(describe_failures(result), style="bold yellow"))


def _show_study(console: Console, result: RerankResult, study: Sequence[RankedPassage]) -> None:
    """Show the best passage of a study, and a line for each of the others."""
    best, *others = study
    _show_passage(console, result, best)
    same = {one.id for one in result.same_record(best)}
    for one in others:
        page = f" p. {one.quote_page}" if one.quote_page else ""
        band = f", {POSSIBLE}" if one.band == POSSIBLE and best.band != POSSIBLE else ""
        said = f", {name_direction(one.direction)}" if one.direction != best.direction else ""
        words = f": {_say(one)}" if _say(one) != _say(best) else ""
        head = f"also{page} [{one.id}] ({result.show_score(one.score)}{band}{said.rstrip(', ')})"
        source = "" if one.id in same else f" in {result.cite(one)}"
        row = Table.grid()
        row.add_row(
            Text(f"{one.rank:>2}. ", style="dim"), Text(f"{head}{source}{words}", style="dim")
        )
        console.print(row)


def _say(passage: RankedPassage) -> str:
    return passage.quote or passage.summary or _short(passage.text)


def _show_passage(console: Console, result: RerankResult, passage: RankedPassage) -> None:
    """Show a passage that was kept, or one that is near: source, words, why, and where it was."""
    near, source = passage.band is None, _cite(result, passage)
    is_possible = passage.band == POSSIBLE
    colour = "yellow" if is_possible else "green"
    said = name_direction(passage.direction) or passage.position
    score = Text.assemble(
        ("score " if near else "", "red"),
        (result.show_score(passage.score), f"bold {'red' if near else colour}"),
        (
            f", {BELOW}" if near else f" {POSSIBLE}" if is_possible else "",
            "red" if near else colour,
        ),
        f"{',' if near or is_possible else ''} {said}" if said else "",
    )
    head = Table.grid()  # so that what follows in other lines stands below the score
    head.add_row(
        Text(f"{passage.rank:>2}. ", style="dim"), score if near else score + "  " + source
    )
    console.print(head)
    if near:
        console.print(_indent(source))
    console.print(_indent(Text(passage.summary or _short(passage.text))))
    if passage.quote and passage.quote not in {passage.summary, _short(passage.text)}:
        console.print(_indent(Text(f"“{passage.quote}”", style="italic")))
    file = passage.metadata.get("source")
    place = f", from {file}" if file and str(file) not in source.plain else ""
    found = f"[{passage.id}] retrieved as number {passage.retrieval_rank}{place}"
    n_citing = passage.metadata.get("cited_in_library")
    cited = f"cited by {n_citing} in your library" if n_citing else ""
    why = "; ".join(filter(None, (passage.reason, cited, found)))
    console.print(_indent(Text(why, style="dim")))


def _show_nearest(console: Console, result: RerankResult, *, quiet: bool) -> None:
    if result.outcome == "nothing_retrieved":
        console.print("Nothing was retrieved.")
        return
    console.print(Text(describe_outcome(result), style="bold"))
    for passage in result.dropped[:N_NEAREST]:
        _show_passage(console, result, passage)
    _show_in_lines(console, result, result.failed[:N_NEAREST])
    if result.dropped and not result.failed and not quiet:
        console.print(
            "To see more: lower --threshold, raise --retrieve, or set DEEPERA_ON_EMPTY=top1, which "
            "keeps the best."
        )


def _show_rest(console: Console, result: RerankResult) -> None:
    """Show every passage that is not shown yet, in a line each."""
    n_shown = 0 if result.kept else N_NEAREST
    _show_in_lines(console, result, (*result.dropped[n_shown:], *result.failed[n_shown:]))


def _show_in_lines(
    console: Console, result: RerankResult, passages: Sequence[RankedPassage]
) -> None:
    causes = {one.reason for one in result.failed}
    said = causes if len(causes) == 1 else ()  # by the sentence on what failed
    for passage in passages:
        reason = "" if passage.reason in said else f": {passage.reason}"
        score, source = result.show_score(passage.score), result.cite(passage)
        line = Text(f"{score}  [{passage.id}] {source}{reason}".removesuffix(": "), style="dim")
        row = Table.grid()  # so that what follows in other lines stands below the score
        row.add_row(Text(f"{passage.rank:>2}. ", style="dim"), line)
        console.print(row)


def _cite(result: RerankResult, passage: RankedPassage) -> Text:
    """Return the source of a passage; what became of its paper stands out."""
    cited = result.cite(passage)
    source = Text(str(cited))
    grave = cited.status in ("retracted", "concern")
    source.stylize("bold white on red" if grave else "bold yellow", 0, len(cited.mark))
    return source


def _indent(words: Text) -> Padding:
    return Padding(words, (0, 0, 0, 4), expand=False)


def _short(text: str) -> str:
    if len(text) <= _SHOWN_CHARS:
        return text
    whole = text[: _SHOWN_CHARS + 1].rpartition(" ")[0]
    return f"{(whole or text[:_SHOWN_CHARS]).rstrip()} ..."
