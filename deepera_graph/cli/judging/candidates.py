"""The candidates for a question: of a collection, or of files that are indexed for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.declaring import A_KEY, opt
from deepera_graph.errors import SettingsError

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

    from deepera_graph.cli.opening.sources import PassageSource
    from deepera_graph.multihop.passages.graph import NeighbourGraph
    from deepera_graph.multihop.passages.retriever import AdaptiveRetriever
    from deepera_graph.retrieval.collections.passage_store import PassageStore
    from deepera_graph.stores.words import WordIndex

_YEARS = {"year_from": "gte", "year_to": "lte"}
_SIGNS = {"gte": ">=", "lte": "<="}
_store = partial(opt, panel="Store")


@dataclass(frozen=True, kw_only=True)
class SearchOptions(options.WhereOptions):
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
        config=A_KEY,
        shown="50, at least as many as --retrieve",
    )
    retractions: Path | None = opt(
        "CSV of notices, with the columns of Retraction Watch: OriginalPaperDOI, "
        "OriginalPaperPubMedID, RetractionNature. Papers that it names are marked, and retracted "
        "ones count for nothing; so do those whose title or metadata say it.",
        brief="CSV of retracted papers, as of Retraction Watch.",
        metavar="FILE",
    )
    answer: bool = opt("Draw an answer from what is kept.", default=False)
    report: bool = opt(
        "Write several paragraphs on what is kept, with its limits and gaps. With --model the chat "
        "model writes, and no sentence is shown that the studies it cites do not say; without, "
        "every sentence is a quote.",
        brief="Write paragraphs, each sentence checked.",
        default=False,
    )
    dry_run: bool = opt(
        "Search, and say what judging would cost at most; with --report what writing would take, "
        "too. Nothing is judged.",
        brief="Only say what it would cost.",
        default=False,
    )
    format: Literal["text", "markdown", "html", "csv", "json", "bibtex", "ris"] = opt(
        "Form of the output. [b]markdown[/b], [b]html[/b] and [b]csv[/b] are tables of the "
        "evidence: score, source with its DOI, quote, summary; with -v the dropped passages, too "
        "(not html). [b]bibtex[/b] and [b]ris[/b] have the sources of the evidence, [b]json[/b] "
        "everything.",
        brief="markdown, html, csv, json, bibtex or ris.",
        metavar="FORM",
        default="text",
    )


def read_conditions(where: Sequence[str]) -> dict[str, Any]:
    """Read ``year>=2015``, ``year=2015``, ``year={"gte": 2015}`` and ``since 2015``."""
    from deepera_graph.retrieval.where import read_where

    return read_where(where, read_words=_read_years)


def mark_retracted(found: list[Document], file: Path | None) -> list[Document]:
    """Mark what a file of notices names; without a file all stays as it is."""
    if file is None:
        return found
    from deepera_graph.literature.retractions import read_retractions

    return read_retractions(file).mark(found)


def _read_years(condition: str) -> dict[str, Any]:
    """Read years in words; whatever else is asked in words, metadata cannot tell."""
    from deepera_graph.papers.agent.limits.reading import read_limits

    plain = read_limits(condition, year=date.today().year).to_dict()
    topic = plain.pop("topic")
    rest = {name: value for name, value in plain.items() if name not in ("question", *_YEARS)}
    bounds = {_YEARS[name]: plain[name] for name in _YEARS if name in plain}
    if not bounds or rest or topic != " ".join(condition.split()):
        read = [*(f"year{_SIGNS[sign]}{year}" for sign, year in bounds.items())]
        hint = f"; understood was {' and '.join(read)}, and nothing else" if read else ""
        raise SettingsError(
            "--where must be FIELD=VALUE, e.g. 'year>=2015', or years in words, e.g. 'since 2015', "
            f"in quotes, got {condition!r}{hint}"
        )
    return {"year": bounds}


def search_passages(
    question: str,
    read: PassageSource | None,
    place: options.StoreOptions,
    search: SearchOptions,
    conditions: dict[str, Any],
    *,
    quiet: bool,
) -> list[Document]:
    """Return the candidates, of a collection or of passages that are indexed for this question.

    Only a collection, embeddings and conditions on metadata need Qdrant, which takes a second.
    """
    from deepera_graph.cli.judging.evidence import find_candidates
    from deepera_graph.cli.opening.sources import batches
    from deepera_graph.cli.opening.stores import (
        find_embeddings,
        has_papers_alone,
        load_neighbours,
        open_collection,
    )

    if read is None and has_papers_alone(place):
        return _search_papers(question, place, search, conditions)
    if read is None:
        with open_collection(place, must_exist=True) as opened:
            if search.adaptive:
                graph = load_neighbours(place)
                found = _search_adaptively(question, opened, graph, search, conditions)
            else:
                found = find_candidates(opened, question, search.retrieve, conditions)
        return _note_citations(found, place)
    read.check()
    if place.embeddings is None and not conditions:
        from deepera_graph.stores.words import WordIndex

        with WordIndex() as words:
            read.fill(words, quiet=quiet)
            read.tell()
            if search.adaptive and words.count() > 1:
                graph = _build_graph(words.passages(), find_embeddings("local"))
                return _search_adaptively(question, words, graph, search, {})
            return words.search(question, k=search.retrieve)
    from deepera_graph.retrieval.collections.store import open_store

    embeddings = find_embeddings(place.embeddings)
    with open_store("source", path=":memory:", embeddings=embeddings) as store:
        read.fill(store, quiet=quiet, **batches(place.embeddings))
        read.tell()
        if search.adaptive and store.count() > 1:
            passages = [one.passage for one in store.scan()]
            graph = _build_graph(passages, embeddings or find_embeddings("local"))
            return _search_adaptively(question, store, graph, search, conditions)
        return find_candidates(store, question, search.retrieve, conditions)


def _search_papers(
    question: str, place: options.StoreOptions, search: SearchOptions, conditions: dict[str, Any]
) -> list[Document]:
    """Search a library that has papers and no passages: their abstracts are judged."""
    from deepera_graph.cli.opening.stores import open_papers
    from deepera_graph.papers.filling import note_cited, to_passage
    from deepera_graph.papers.results import Scope

    if search.adaptive:
        raise SettingsError("--adaptive needs a library with passages; this one has papers alone")
    with open_papers(place, place.library or "", place.embeddings) as base:
        found = base.search(question, k=search.retrieve, scope=Scope.of(conditions))
        return note_cited(base, [to_passage(one.paper, retrieval_rank=one.rank) for one in found])


def _note_citations(found: list[Document], place: options.StoreOptions) -> list[Document]:
    """Return passages with how often papers of their library cite them, where that is known."""
    from deepera_graph.cli.opening.stores import find_papers, open_papers
    from deepera_graph.papers.filling import note_cited

    if not Path(find_papers(place, place.library or "")).is_file():
        return found
    with open_papers(place, place.library or "") as base:
        return note_cited(base, found)


def _build_graph(passages: list[Document], embeddings: Embeddings | None) -> NeighbourGraph:
    """Find neighbours for one question; a few passages have fewer."""
    from deepera_graph.multihop.passages.graph import K, NeighbourGraph

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
    from deepera_graph.multihop.agent.adaptive import BUDGET
    from deepera_graph.multihop.passages.retriever import AdaptiveRetriever

    return AdaptiveRetriever(
        first_stage=source,
        graph=graph,
        where=conditions or None,
        budget=search.explore or max(BUDGET, search.retrieve),
        k=search.retrieve,
    )


def make_adaptive(
    source: PassageStore | WordIndex,
    *,
    place: options.StoreOptions,
    search: SearchOptions,
    conditions: dict[str, Any],
) -> AdaptiveRetriever | None:
    """Return a retriever for several questions; None where there is but one passage."""
    from deepera_graph.cli.opening.stores import find_embeddings, load_neighbours

    if place.library is not None:
        return _retriever_on(source, load_neighbours(place), search, conditions)
    if source.count() < 2:
        return None
    scan = getattr(source, "scan", None)
    passages = source.passages() if scan is None else [one.passage for one in scan()]  # type: ignore[union-attr]  # an index of words has them
    embeddings = find_embeddings(place.embeddings or "local")
    return _retriever_on(source, _build_graph(passages, embeddings), search, conditions)
