"""`deepera index` and `deepera ask`: fill a collection, and find the evidence for a question."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from deepera_graph.cli import options
from deepera_graph.cli.console import (
    output_console,
    progress_bar,
    show_number,
    tell,
    write_json,
)
from deepera_graph.cli.options import opt
from deepera_graph.errors import BackendError, InputError, SettingsError

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from deepera_graph.cli.opening import Source
    from deepera_graph.reranker import EvidenceReranker
    from deepera_graph.result import RankedPassage, RerankResult
    from deepera_graph.retrieval.store import PassageStore
    from deepera_graph.retrieval.word_index import WordIndex

DAILY = {
    "index": (
        "collection", "path", "qdrant_url", "mode", "embeddings", "max_words", "as_json", "quiet",
    ),
    "ask": (
        "collection", "path", "retrieve", "where", "answer", "preset", "backend", "model",
        "base_url", "threshold", "top_n", "as_json", "quiet",
    ),
}  # fmt: skip
N_DROPPED = 3
_INDENT = (0, 0, 0, 5)
_store = partial(opt, panel="Store")


@dataclass(frozen=True, kw_only=True)
class NewStoreOptions(options.StoreOptions):
    """Where passages go."""

    collection: str = _store(
        "Name of the collection.", "--collection", "-c", metavar="NAME", needed=True
    )
    mode: Literal["sparse", "dense", "hybrid"] | None = _store(
        "[b]sparse[/b] finds passages by their words, and needs nothing. [b]dense[/b] finds them "
        "by meaning, [b]hybrid[/b] by both; these need --embeddings.",
        brief="[b]sparse[/b] finds words; [b]dense[/b] and [b]hybrid[/b] need --embeddings.",
        metavar="HOW",
        shown="hybrid with --embeddings, else sparse",
    )


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """What is searched for."""

    retrieve: int = _store("Number of candidates retrieved.", metavar="K", default=30, least=1)
    where: list[str] | None = _store(
        'Only passages with this metadata; VALUE may be JSON: a list, or a range as {"gte": 2015}. '
        "May be repeated.",
        brief="Only passages with this metadata; may be repeated.",
        metavar="FIELD=VALUE",
    )
    answer: bool = opt("Draw an answer from what is kept.", default=False)


def index(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A file or a folder.")],
    *,
    store: NewStoreOptions,
    reading: options.ReadOptions,
    output: options.OutputOptions,
) -> None:
    """Put the passages of a file or folder into a collection that `deepera ask` can search."""
    from deepera_graph.cli.opening import Source, open_collection

    read = Source(source, reading)
    passages = chain([read.first()], read.passages)
    with open_collection(store, mode=store.mode, must_exist=False) as opened:
        try:
            with progress_bar("indexing", hidden=output.quiet) as bar:
                n_indexed = opened.add(passages, on_progress=lambda count: bar.move(count=count))
        except BaseException:
            opened.drop_if_new()
            raise
        n_in_all, mode = opened.count(), opened.mode
    read.tell()
    plain = {"mode": mode, "indexed": n_indexed, "in_collection": n_in_all}
    skipped = [{"place": one.place, "reason": one.reason} for one in read.skipped]
    tell(
        output,
        {"collection": store.collection, **plain, "skipped": skipped},
        lambda: (
            f"{n_indexed} passages indexed in {store.collection!r} ({mode}); "
            f"it holds {n_in_all} now"
        ),
    )
    raise typer.Exit(read.exit_code)


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What is asked.")],
    source: Annotated[
        str | None,
        typer.Argument(metavar="[SOURCE]", help="A file or folder, instead of --collection."),
    ] = None,
    *,
    store: options.StoreOptions,
    search: SearchOptions,
    reading: options.ReadOptions,
    judge: options.JudgeOptions,
    cache: options.CacheOptions,
    budget: options.BudgetOptions,
    kept: options.FilterOptions,
    output: options.OutputOptions,
) -> None:
    """Find the evidence for a question in a collection, a file or a folder."""
    from deepera_graph.cli.opening import Source, judgements_of, open_judge, settings_of
    from deepera_graph.settings import Settings

    settings = Settings.of(settings_of(judge, kept, budget, answer=search.answer))
    if not question.strip():
        raise InputError("the question is empty")
    conditions = _read_conditions(search.where or [])
    _check_one_place(source, store)
    read = None if source is None else Source(source, reading)
    backend = open_judge(judge)
    from deepera_graph.reranker import EvidenceReranker  # takes a second, so after all checks

    with judgements_of(backend, cache.cache) as judgements:
        reranker = EvidenceReranker(backend, cache=judgements, **settings.to_dict())
        candidates = _search(question, read, store, search, conditions, quiet=output.quiet)
        result = _rerank(reranker, question, candidates, quiet=output.quiet)
    if result.backend_failure is not None:
        raise BackendError(result.backend_failure)
    if output.as_json:
        write_json(result.to_dict())
    else:
        show_result(output_console(), result)
    if read is not None:
        raise typer.Exit(read.exit_code)


def _read_conditions(where: Sequence[str]) -> dict[str, Any]:
    conditions = {}
    for condition in where:
        name, equals, value = condition.partition("=")
        if not equals or not name:
            raise SettingsError(f"--where must be FIELD=VALUE, got {condition!r}")
        try:
            conditions[name] = json.loads(value)
        except ValueError:
            conditions[name] = value
    return conditions


def _check_one_place(source: str | None, store: options.StoreOptions) -> None:
    if (source is None) == (store.collection is None):
        given = "both were given" if source is not None else "neither was given"
        raise SettingsError(f"give a SOURCE or --collection: {given}")
    if source is not None and (store.path or store.qdrant_url):
        raise SettingsError("--path and --qdrant-url go with --collection; a SOURCE is in memory")


def _search(
    question: str,
    read: Source | None,
    place: options.StoreOptions,
    search: SearchOptions,
    conditions: dict[str, Any],
    *,
    quiet: bool,
) -> list[Document]:
    """Return the candidates, of a collection or of passages that are indexed for this question.

    Only a collection, embeddings and conditions on metadata need Qdrant, which takes a second.
    """
    from deepera_graph.cli.opening import find_embeddings, open_collection

    if read is None:
        with open_collection(place, must_exist=True) as opened:
            return opened.search(question, k=search.retrieve, where=conditions)
    passages = chain([read.first()], read.passages)
    if place.embeddings is None and not conditions:
        from deepera_graph.retrieval.word_index import WordIndex

        with WordIndex() as words:
            _fill(words, passages, quiet=quiet)
            read.tell()
            return words.search(question, k=search.retrieve)
    from deepera_graph.retrieval.store import open_store

    embeddings = find_embeddings(place.embeddings)
    with open_store("source", path=":memory:", embeddings=embeddings) as store:
        _fill(store, passages, quiet=quiet)
        read.tell()
        return store.search(question, k=search.retrieve, where=conditions)


def _fill(store: PassageStore | WordIndex, passages: Iterable[Document], *, quiet: bool) -> None:
    with progress_bar("indexing", hidden=quiet) as bar:
        store.add(passages, on_progress=lambda count: bar.move(count=count))


def _rerank(
    reranker: EvidenceReranker, question: str, candidates: list[Document], *, quiet: bool
) -> RerankResult:
    """Rerank with a bar that moves with every passage that is judged."""
    n_judged = 0
    with progress_bar("judging", total=len(candidates) or None, hidden=quiet) as bar:
        for event in reranker.stream(question, candidates):
            if event["event"] == "scored":
                n_judged += 1
                bar.move(to=n_judged, count=n_judged)
            if event["event"] == "result":
                result: RerankResult = event["result"]
    return result


def show_result(console: Console, result: RerankResult) -> None:
    """Show the answer if one was asked for, the evidence, and what to try when there is none."""
    from deepera_graph.schema import describe_directions

    console.print(Text(result.question, style="bold"))
    _show_answer(console, result)
    for passage in result.kept:
        _show_kept(console, passage)
    if not result.kept:
        _show_advice(console, result)
    used = result.total_usage
    unasked = f", {len(result.not_needed)} not needed" if result.not_needed else ""
    words = (
        f"{result.outcome}: {len(result.kept)} kept, {len(result.dropped)} dropped, "
        f"{len(result.failed)} failed{unasked}; {used.calls} calls; {result.seconds['total']:.1f} s"
    )
    if said := describe_directions(result.direction_counts):
        words += f"; {said}"
    if result.failed:
        words += f"; first failure: {result.failed[0].reason}"
    console.print(Text(words, style="dim"))


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
    from deepera_graph.schema import name_direction

    console.print(
        Text.assemble(
            (f"{passage.rank:>2}. ", "dim"),
            (show_number(passage.score), "bold green"),
            f" {name_direction(passage.direction)}".rstrip(),
            f"  {_name(passage)}",
        )
    )
    console.print(Padding(Text(passage.summary or passage.text), _INDENT))
    if passage.quote and passage.quote != passage.summary:
        console.print(Padding(Text(f"“{passage.quote}”", style="italic"), _INDENT))
    source = passage.metadata.get("source")
    found = f"found in {source} as number" if source else "retrieved as number"
    why = f"{passage.reason}; {found} {passage.retrieval_rank}"
    console.print(Padding(Text(why, style="dim"), _INDENT))


def _show_advice(console: Console, result: RerankResult) -> None:
    if result.outcome == "nothing_retrieved":
        console.print("Nothing was retrieved: no passage shares a word with the question.")
        return
    console.print(
        f"No passage is evidence enough (threshold {result.threshold:g}). The best dropped:"
    )
    for passage in result.dropped[:N_DROPPED]:
        line = f"    {show_number(passage.score)}  {_name(passage)}: {passage.reason}"
        console.print(Text(line))
    console.print(
        "To see more: lower --threshold, raise --retrieve, or keep the best with --on-empty top1."
    )


def _name(passage: RankedPassage) -> str:
    title = str(passage.metadata.get("title") or "")
    return f"{passage.id}  {title}".rstrip()
