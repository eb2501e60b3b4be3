"""How an answer to a question looks in a terminal."""

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from deepera_graph.result import RankedPassage, RerankResult

N_DROPPED = 3
_INDENT = (0, 0, 0, 5)


def show_result(console: Console, result: RerankResult) -> None:
    """Show the answer if one was asked for, the evidence, and what to try when there is none."""
    console.print(Text(result.question, style="bold"))
    _show_answer(console, result)
    for passage in result.kept:
        _show_kept(console, passage)
    if not result.kept:
        _show_advice(console, result)
    _show_counts(console, result)


def _show_answer(console: Console, result: RerankResult) -> None:
    if result.answer is None:
        return
    answer = result.answer
    if answer["status"] != "answered":
        cause = f": {answer['cause']}" if answer["cause"] else ""
        console.print(Text(f"no answer ({answer['status'].replace('_', ' ')}{cause})"))
        return
    console.print(Padding(Text(answer["text"]), (1, 0, 0, 0)))
    console.print(Text(f"cited: {', '.join(answer['citations']) or 'nothing'}", style="dim"))
    console.print()


def _show_kept(console: Console, passage: RankedPassage) -> None:
    console.print(
        Text.assemble(
            (f"{passage.rank:>2}. ", "dim"),
            (_number(passage.score), "bold green"),
            f"  {_name(passage)}",
        )
    )
    console.print(Padding(Text(passage.summary or passage.text), _INDENT))
    if passage.quote and passage.quote != passage.summary:
        console.print(Padding(Text(f"“{passage.quote}”", style="italic"), _INDENT))
    console.print(Padding(Text(_why(passage), style="dim"), _INDENT))


def _show_advice(console: Console, result: RerankResult) -> None:
    if result.outcome == "nothing_retrieved":
        console.print("Nothing was retrieved: no passage shares a word with the question.")
        return
    console.print(
        f"No passage is evidence enough (threshold {result.threshold:g}). The best dropped:"
    )
    for passage in result.dropped[:N_DROPPED]:
        console.print(Text(f"    {_number(passage.score)}  {_name(passage)}: {passage.reason}"))
    console.print(
        "To see more: lower --threshold, raise --retrieve, or keep the best with --on-empty top1."
    )


def _show_counts(console: Console, result: RerankResult) -> None:
    used = result.total_usage
    unasked = f", {len(result.not_needed)} not needed" if result.not_needed else ""
    words = (
        f"{result.outcome}: {len(result.kept)} kept, {len(result.dropped)} dropped, "
        f"{len(result.failed)} failed{unasked}; {used.calls} calls; {result.seconds['total']:.1f} s"
    )
    if result.failed:
        words += f"; first failure: {result.failed[0].reason}"
    console.print(Text(words, style="dim"))


def _name(passage: RankedPassage) -> str:
    title = str(passage.metadata.get("title") or "")
    return f"{passage.id}  {title}".rstrip()


def _why(passage: RankedPassage) -> str:
    source = passage.metadata.get("source")
    found = f"found in {source} as number" if source else "retrieved as number"
    return f"{passage.reason}; {found} {passage.retrieval_rank}"


def _number(score: float | None) -> str:
    return "–" if score is None else f"{score:.2f}"
