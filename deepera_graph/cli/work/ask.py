"""What `deepera ask` does."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import typer
from langchain_core.documents import Document

from deepera_graph.cli.exits import SOME_FAILED, say
from deepera_graph.cli.work.ask_view import show_result
from deepera_graph.cli.work.backend import Judge
from deepera_graph.cli.work.judgements import judgements_of
from deepera_graph.cli.work.place import Place
from deepera_graph.cli.work.terminal import output_console, progress_bar, write_json
from deepera_graph.cli.work.threshold import with_threshold
from deepera_graph.errors import BackendError, InputError, SettingsError
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult
from deepera_graph.retrieval.sources import read_passages
from deepera_graph.retrieval.store import PassageStore, open_store

__all__ = ["Judge", "Place", "Search", "run", "with_threshold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The options that say what to search, as they were given."""

    source: str | None
    place: Place
    retrieve: int
    where: Sequence[str]

    def conditions(self) -> dict[str, Any]:
        """Return the conditions on metadata.

        Raises:
            SettingsError: One is not FIELD=VALUE.
        """
        conditions = {}
        for condition in self.where:
            name, equals, value = condition.partition("=")
            if not equals or not name:
                raise SettingsError(f"--where must be FIELD=VALUE, got {condition!r}")
            conditions[name] = _value(value)
        return conditions


def run(
    question: str,
    search: Search,
    judge: Judge,
    settings: dict[str, Any],
    *,
    cache: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Retrieve, rerank and show the evidence.

    Raises:
        InputError: The question is blank, or there is no such source.
        SettingsError: An option is out of range, or options do not go together.
        StoreError: The store is missing, locked or unreachable, or the cache that was asked for
            cannot be used.
        BackendError: The backend is unreachable.
    """
    if not question.strip():
        raise InputError("the question is empty")
    conditions = search.conditions()
    _check(search)
    backend = judge.build()
    with judgements_of(backend, cache) as judgements:
        reranker = EvidenceReranker(backend, cache=judgements, **settings)
        with _open(search, quiet=quiet) as store:
            candidates = store.search(question, k=search.retrieve, where=conditions)
        result = _rerank(reranker, question, candidates, quiet=quiet)
    if result.backend_failure is not None:
        raise BackendError(result.backend_failure)
    if as_json:
        write_json(result.to_dict())
    else:
        show_result(output_console(), result)


def _check(search: Search) -> None:
    """Raise `SettingsError` unless exactly one thing is to be searched."""
    place = search.place
    if (search.source is None) == (place.collection is None):
        given = "both were given" if search.source is not None else "neither was given"
        raise SettingsError(f"give a SOURCE or --collection: {given}")
    if search.source is not None and (place.path or place.qdrant_url):
        raise SettingsError("--path and --qdrant-url go with --collection; a SOURCE is in memory")


def _open(search: Search, *, quiet: bool) -> PassageStore:
    if search.source is None:
        return search.place.open(must_exist=True)
    passages = read_passages(search.source)
    store = open_store("source", path=":memory:", embeddings=search.place.find_embeddings())
    try:
        with progress_bar("indexing", hidden=quiet) as bar:
            store.add(passages, on_progress=lambda count: bar.move(count=count))
    except InputError as error:
        store.close()
        say(str(error))
        raise typer.Exit(SOME_FAILED) from error
    return store


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


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
