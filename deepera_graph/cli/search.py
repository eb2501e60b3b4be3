"""`deepera index` and `deepera ask`: fill a collection, and find the evidence for a question."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.cli import options
from deepera_graph.cli.console import (
    OK,
    SOME_FAILED,
    count,
    from_thread,
    progress_bar,
    say,
    tell,
    text_console,
    write_bytes,
)
from deepera_graph.cli.multihop import HopOptions, ask_in_steps, check_options
from deepera_graph.cli.options import opt
from deepera_graph.errors import BackendError, InputError, SettingsError

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

    from deepera_graph.cli.opening import Source
    from deepera_graph.multihop.graph import NeighbourGraph
    from deepera_graph.multihop.retriever import AdaptiveRetriever
    from deepera_graph.reranker import EvidenceReranker
    from deepera_graph.result import RerankResult
    from deepera_graph.retrieval.store import PassageStore
    from deepera_graph.retrieval.word_index import WordIndex

DAILY = {
    "index": (
        "collection", "path", "qdrant_url", "mode", "embeddings", "neighbours", "max_words",
        "verbose",
        "as_json", "quiet",
    ),
    "ask": (
        "sources", "collection", "retrieve", "adaptive", "multihop", "where", "answer",
        "preset",
        "backend", "model", "base_url", "threshold", "top_n", "format", "verbose", "as_json",
        "quiet",
    ),
}  # fmt: skip
_BATCH_OF_EMBEDDINGS = 32
_CONDITION = re.compile(r"\s*([^=<>]*[^=<>\s])\s*(=|>=|<=|>|<)\s*(.*)", re.DOTALL)
_BOUNDS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_store = partial(opt, panel="Store")


@dataclass(frozen=True, kw_only=True)
class NewStoreOptions(options.StoreOptions):
    """Where passages go."""

    mode: Literal["sparse", "dense", "hybrid"] | None = _store(
        "[b]sparse[/b] finds passages by their words, and needs nothing. [b]dense[/b] finds them "
        "by meaning, [b]hybrid[/b] by both; these need --embeddings.",
        "--search",
        "--mode",
        brief="[b]sparse[/b] finds words; [b]dense[/b] and [b]hybrid[/b] need --embeddings.",
        metavar="HOW",
        shown="hybrid with --embeddings, else sparse",
    )
    neighbours: int | None = _store(
        "Also find the N nearest neighbours of every passage, e.g. 16, for `deepera ask "
        "--adaptive`. A collection that has neighbours has them brought up to date whenever "
        "passages are added.",
        brief="Also find the N nearest neighbours of every passage, for `ask --adaptive`.",
        metavar="N",
        least=1,
    )
    neighbours_by: Literal["meaning", "words"] | None = _store(
        "With --neighbours: whether near is what means the same, or what has the same words.",
        metavar="HOW",
        shown="meaning if the collection is searched by words, else words",
    )


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """What is searched for."""

    retrieve: int = _store(
        "Candidates retrieved.", "--retrieve", "-k", metavar="K", default=30, least=1
    )
    adaptive: bool = _store(
        "Also look at the neighbours of passages that are close to the question, and at theirs: "
        "for questions whose evidence no single search brings together. Needs a collection with "
        "--neighbours; those of a SOURCE are found anew.",
        brief="Also look at neighbours of what is found.",
        default=False,
    )
    explore: int | None = _store(
        "With --adaptive: most passages compared with the question.",
        metavar="N",
        least=1,
        shown="50, at least as many as --retrieve",
    )
    where: list[str] | None = _store(
        "Only passages with this metadata: FIELD=VALUE, or 'year>=2015' in quotes; VALUE may be "
        'JSON: a list, or a range as {"gte": 2015}. May be repeated.',
        brief="Only passages with this metadata.",
        metavar="FIELD=VALUE",
    )
    answer: bool = opt("Draw an answer from what is kept.", default=False)
    format: Literal["text", "markdown", "html", "csv", "json", "bibtex", "ris"] = opt(
        "Form of the output. [b]markdown[/b], [b]html[/b] and [b]csv[/b] are tables of the "
        "evidence: score, source with its DOI, quote, summary; with -v the dropped passages, too "
        "(not html). [b]bibtex[/b] and [b]ris[/b] have the sources of the evidence, [b]json[/b] "
        "everything.",
        brief="markdown, html, csv, json, bibtex or ris.",
        metavar="FORM",
        default="text",
    )


@dataclass(frozen=True, kw_only=True)
class IndexOutputOptions(options.OutputOptions):
    """What is told."""

    verbose: bool = opt(
        "Name every record and file that was skipped, and why.",
        "--verbose",
        "-v",
        default=False,
    )


def index(
    source: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE", help="Files, folders, ZIP archives or patterns."),
    ],
    *,
    store: NewStoreOptions,
    keep: options.KeepOptions,
    reading: options.ReadOptions,
    output: IndexOutputOptions,
) -> None:
    """Put the passages of files or folders into a collection that `deepera ask` can search."""
    from deepera_graph.cli.opening import Source, keep_embedded, keep_with, open_collection

    keep_with(None, keep)  # says what is wrong with it
    if store.neighbours_by is not None and store.neighbours is None:
        raise SettingsError("--neighbours-by goes with --neighbours")
    read = Source(*source, reading=reading, verbose=output.verbose)
    read.check()
    with open_collection(store, mode=store.mode, must_exist=False) as opened:
        if opened.embeddings_name and not opened.is_new and store.embeddings is None:
            made_by = f"{store.collection!r} was made with embeddings ({opened.embeddings_name})"
            say(f"{made_by}, so these passages are embedded with them, too")
        embedded = keep_embedded(opened, keep)
        try:
            how = _batches(opened.embeddings_name)
            n_indexed = read.fill(opened, quiet=output.quiet, embedded=embedded, **how)
        except BaseException:
            opened.drop_if_new()
            raise
        n_in_all, mode = opened.count(), opened.mode
        graph = _find_neighbours(opened, store, quiet=output.quiet)
    read.tell()
    plain: dict[str, Any] = {"mode": mode, "indexed": n_indexed, "in_collection": n_in_all}
    plain["files"] = dict(read.forms.most_common())
    if graph is not None:
        plain["neighbours"] = {"k": graph.k, "by": graph.kind, "passages": len(graph)}
    skipped = [{"place": one.place, "reason": one.reason} for one in read.skipped]
    tell(
        output,
        {"collection": store.collection, **plain, "skipped": skipped},
        lambda: (
            f"{count(n_indexed, 'passage')} indexed in {store.collection!r} ({mode}); "
            f"it holds {n_in_all} now{read.describe_files()}" + _describe_neighbours(graph)
        ),
    )
    raise typer.Exit(read.exit_code)


def _find_neighbours(
    opened: PassageStore, store: NewStoreOptions, *, quiet: bool
) -> NeighbourGraph | None:
    """Find the neighbours of what a collection holds, or update them; None if unwanted."""
    from deepera_graph.cli.opening import find_embeddings, neighbours_of

    folder = neighbours_of(store, store.collection or "")
    if store.neighbours is None and not folder.is_dir():
        return None
    from deepera_graph.multihop.graph import K, NeighbourGraph

    known, n = NeighbourGraph.load(folder) if folder.is_dir() else None, opened.count()
    own = opened.vectorstore.embeddings
    k = store.neighbours or (known.k if known is not None else K)
    if k >= n:
        has = f"{store.collection!r} has {count(n, 'passage')}"
        again = f"give --neighbours {k} again when there are more"
        if n < 2:
            say(f"note: {has}, so there are no neighbours to find; {again}")
            return None
        if not quiet:
            say(f"note: {has}, so each gets {count(n - 1, 'neighbour')}, not {k}; {again}")
        k = n - 1
    with progress_bar("finding neighbours", total=n, hidden=quiet) as bar:

        def watch(n: int) -> None:
            bar.move(to=n, count=n)

        using = None if own is not None else find_embeddings("local")
        by = store.neighbours_by or (known.kind if known is not None else None)
        if known is not None and (k, by) == (known.k, known.kind):
            graph = known.update(opened, using, on_progress=watch)
        else:
            graph = NeighbourGraph.of_store(opened, k, by=by, embeddings=using, on_progress=watch)
    graph.save(folder)
    return graph


def _describe_neighbours(graph: NeighbourGraph | None) -> str:
    if graph is None:
        return ""
    return f"; {count(graph.k, 'neighbour')} of each by {graph.kind}"


def _batches(embeddings: str | None) -> dict[str, Any]:
    """Return how passages are added: embedding them takes long, and the bar is to move on."""
    return {} if not embeddings else {"batch_size": _BATCH_OF_EMBEDDINGS}


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What is asked.")],
    source: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE", help="Files or folders, instead of --collection."),
    ] = None,
    *,
    literature: options.LiteratureOptions,
    store: options.StoreOptions,
    search: SearchOptions,
    keep: options.KeepOptions,
    reading: options.ReadOptions,
    judge: options.JudgeOptions,
    cache: options.CacheOptions,
    budget: options.BudgetOptions,
    kept: options.FilterOptions,
    hops: HopOptions,
    output: options.ShowOptions,
) -> None:
    """Find the evidence for a question in a collection, files or the literature."""
    from deepera_graph.cli.literature import (
        check_literature,
        check_one_place,
        find_scope,
        search_literature,
    )
    from deepera_graph.cli.opening import (
        Source,
        find_collection_folder,
        judgements_of,
        keep_with,
        open_judge,
        read_max_words,
        settings_of,
    )
    from deepera_graph.settings import Settings

    check_options(hops, judge, kept, search.format, adaptive=search.adaptive, answer=search.answer)
    settings = Settings.of(settings_of(judge, kept, budget, answer=search.answer))
    if not question.strip():
        raise InputError("the question is empty")
    conditions = _read_conditions(search.where or [])
    if search.explore is not None and not search.adaptive:
        raise SettingsError("--explore goes with --adaptive")
    source = source or []
    if source and Path(question).is_file() and not any(Path(one).exists() for one in source):
        raise InputError(f"the QUESTION comes first, then the SOURCE: {question!r} is a file")
    check_literature(literature)
    check_one_place(question, source, store, literature)
    scope = find_scope(literature, conditions, adaptive=search.adaptive, multihop=hops.multihop)
    read = Source(*source, reading=reading, verbose=output.verbose) if source else None
    if hops.multihop:
        raise typer.Exit(
            ask_in_steps(
                question,
                read,
                place=store,
                conditions=conditions,
                hops=hops,
                judge=judge,
                cache=cache,
                budget=budget,
                k=kept.top_n,
                make_adaptive=partial(
                    _make_adaptive, place=store, search=search, conditions=conditions
                )
                if search.adaptive
                else None,
                as_json=output.as_json or search.format == "json",
                quiet=output.quiet,
            )
        )
    backend = open_judge(judge, keep_with(find_collection_folder(store), keep))
    from deepera_graph.cli.evidence import show_result  # takes a second, so after all checks
    from deepera_graph.export import export_result
    from deepera_graph.reranker import EvidenceReranker

    with judgements_of(backend, cache.cache) as judgements:
        reranker = EvidenceReranker(backend, cache=judgements, **settings.to_dict())
        found = None
        if scope is not None:
            found = search_literature(
                literature,
                question,
                k=search.retrieve,
                scope=scope,
                cache=cache.cache,
                quiet=output.quiet,
            )
            candidates = found.to_documents(max_words=read_max_words(reading.max_words))
        else:
            candidates = _search(question, read, store, search, conditions, quiet=output.quiet)
            _tell_if_none(candidates, conditions)
        result = _rerank(reranker, question, candidates, quiet=output.quiet)
        result = result if found is None else found.added_to(result)
    failed = _tell_failures(result) or (
        OK if found is None or not found.incomplete else SOME_FAILED
    )
    form = "json" if output.as_json else search.format
    if form == "text":
        show_result(text_console(), result, verbose=output.verbose, quiet=output.quiet)
    else:
        written = export_result(result, form, whole=output.verbose)
        write_bytes(written.encode("utf-8", "backslashreplace"))
    raise typer.Exit(failed or (OK if read is None else read.exit_code))


def _tell_failures(result: RerankResult) -> int:
    """Say on stderr what could not be judged, if anything; return the exit code."""
    from deepera_graph.result import describe_failures

    if result.backend_failure is not None:
        raise BackendError(result.backend_failure)
    if failures := describe_failures(result):
        say(failures)
    nothing_judged = len(result.failed) == len(result.all_passages) > 0
    return SOME_FAILED if nothing_judged or result.outcome == "degraded" else OK


def _read_conditions(where: Sequence[str]) -> dict[str, Any]:
    """Read ``year=2015``, ``year={"gte": 2015}`` and ``year>=2015``; two bounds make a range."""
    conditions: dict[str, Any] = {}
    for condition in where:
        found = _CONDITION.fullmatch(condition)
        if found is None:
            raise SettingsError(
                f"--where must be FIELD=VALUE or e.g. 'year>=2015', in quotes, got {condition!r}"
            )
        name, sign, text = found.groups()
        value = _read_value(text)
        if sign in _BOUNDS:
            earlier = conditions.get(name)
            value = {**(earlier if isinstance(earlier, dict) else {}), _BOUNDS[sign]: value}
        conditions[name] = value
    return conditions


def _read_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


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
    from deepera_graph.cli.evidence import find_candidates
    from deepera_graph.cli.opening import find_embeddings, load_neighbours, open_collection

    if read is None:
        with open_collection(place, must_exist=True) as opened:
            if search.adaptive:
                graph = load_neighbours(place)
                return _search_adaptively(question, opened, graph, search, conditions)
            return find_candidates(opened, question, search.retrieve, conditions)
    read.check()
    if place.embeddings is None and not conditions:
        from deepera_graph.retrieval.word_index import WordIndex

        with WordIndex() as words:
            read.fill(words, quiet=quiet)
            read.tell()
            if search.adaptive and words.count() > 1:
                graph = _build_graph(words.passages(), find_embeddings("local"))
                return _search_adaptively(question, words, graph, search, {})
            return words.search(question, k=search.retrieve)
    from deepera_graph.retrieval.store import open_store

    embeddings = find_embeddings(place.embeddings)
    with open_store("source", path=":memory:", embeddings=embeddings) as store:
        read.fill(store, quiet=quiet, **_batches(place.embeddings))
        read.tell()
        if search.adaptive and store.count() > 1:
            passages = [one.passage for one in store.scan()]
            graph = _build_graph(passages, embeddings or find_embeddings("local"))
            return _search_adaptively(question, store, graph, search, conditions)
        return find_candidates(store, question, search.retrieve, conditions)


def _tell_if_none(found: Sequence[Document], conditions: Mapping[str, Any]) -> None:
    """Say why nothing was found; with conditions that was said before."""
    if not found and not conditions:
        say("no passage shares a word with the question")


def _build_graph(passages: list[Document], embeddings: Embeddings | None) -> NeighbourGraph:
    """Find neighbours for one question; a few passages have fewer."""
    from deepera_graph.multihop.graph import K, NeighbourGraph

    k = min(K, len(passages) - 1)
    if embeddings is None:
        return NeighbourGraph.of_words(passages, k)
    return NeighbourGraph.build(passages, embeddings, k)


def _search_adaptively(
    question: str,
    source: PassageStore | WordIndex,
    graph: NeighbourGraph,
    search: SearchOptions,
    conditions: dict[str, Any],
) -> list[Document]:
    """Return the best of what a search finds and of its neighbours."""
    return _retriever_on(source, graph, search, conditions).find(question).documents


def _retriever_on(
    source: PassageStore | WordIndex,
    graph: NeighbourGraph,
    search: SearchOptions,
    conditions: dict[str, Any],
) -> AdaptiveRetriever:
    from deepera_graph.multihop.adaptive import BUDGET
    from deepera_graph.multihop.retriever import AdaptiveRetriever

    return AdaptiveRetriever(
        first_stage=source,
        graph=graph,
        where=conditions or None,
        budget=search.explore or max(BUDGET, search.retrieve),
        k=search.retrieve,
    )


def _make_adaptive(
    source: PassageStore | WordIndex,
    *,
    place: options.StoreOptions,
    search: SearchOptions,
    conditions: dict[str, Any],
) -> AdaptiveRetriever | None:
    """Return a retriever for several questions; None where there is but one passage."""
    from deepera_graph.cli.opening import find_embeddings, load_neighbours

    if place.collection is not None:
        return _retriever_on(source, load_neighbours(place), search, conditions)
    if source.count() < 2:
        return None
    scan = getattr(source, "scan", None)
    passages = source.passages() if scan is None else [one.passage for one in scan()]  # type: ignore[union-attr]  # an index of words has them
    embeddings = find_embeddings(place.embeddings or "local")
    return _retriever_on(source, _build_graph(passages, embeddings), search, conditions)


def _rerank(
    reranker: EvidenceReranker, question: str, candidates: list[Document], *, quiet: bool
) -> RerankResult:
    """Rerank with a bar that moves with every passage that is judged."""
    n_judged = 0
    with progress_bar("judging", total=len(candidates) or None, hidden=quiet) as bar:
        for event in from_thread(reranker.stream(question, candidates)):
            if event["event"] == "scored":
                n_judged += 1
                bar.move(to=n_judged, count=n_judged)
            if event["event"] == "result":
                result: RerankResult = event["result"]
    return result
