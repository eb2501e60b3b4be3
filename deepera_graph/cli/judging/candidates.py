"""The candidates for a question: of files, of a library, or of the world's literature."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepera_graph.cli.judging.literature import (
    check_literature,
    find_scope,
    search_literature,
)
from deepera_graph.cli.opening.sources import PassageSource, batches
from deepera_graph.cli.opening.stores import (
    check_library,
    find_embeddings,
    find_papers,
    has_papers_alone,
    load_neighbours,
    open_collection,
    open_papers,
)
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.console import OK, SOME_FAILED, say
from deepera_graph.cli.shared.values import read_max_words
from deepera_graph.errors import InputError, SettingsError

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from deepera_graph.multihop.passages.graph import NeighbourGraph
    from deepera_graph.multihop.passages.retriever import AdaptiveRetriever
    from deepera_graph.papers.results import Scope
    from deepera_graph.papers.sources import LiteratureAnswer
    from deepera_graph.result import RerankResult
    from deepera_graph.retrieval.collections.passage_store import PassageStore
    from deepera_graph.stores.words import WordIndex

    Opened = PassageStore | WordIndex
    Find = Callable[[str, int], list[Document]]

_YEARS = {"year_from": "gte", "year_to": "lte"}
_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_LOOKED_AT = 200  # passages, to see how many a condition leaves out
_ONE_PLACE = "a SOURCE, --library or --source"


def read_conditions(where: Sequence[str]) -> dict[str, Any]:
    """Read ``year>=2015``, ``year=2015``, ``year={"gte": 2015}`` and ``since 2015``."""
    from deepera_graph.retrieval import read_where

    return read_where(where, read_words=_read_years)


def to_scope(limits: places.WhereOptions) -> Scope:
    """Return the limits that were given."""
    from deepera_graph.papers import Scope

    return Scope.of(read_conditions(limits.where or []))


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


def note_limits(question: str) -> str:
    """Say that years and kinds of papers in a question leave no paper out, if it names any."""
    from deepera_graph.papers.agent.limits.reading import read_limits

    limits = read_limits(question, year=date.today().year)
    bounds = {"gte": limits.year_from, "lte": limits.year_to}
    years = [f"year{_SIGNS[sign]}{year}" for sign, year in bounds.items() if year]
    kinds = [*limits.types, *(f"no {one}" for one in limits.not_types)]
    if not years and not kinds:
        return ""
    wheres = [" ".join(f"--where '{one}'" for one in years)] if years else []
    others = ["`deepera papers ask` for kinds of papers"] if kinds else []
    return (
        f"limits in the question ({', '.join([*years, *kinds])}) are judged as words, and leave no "
        f"paper out; to leave some out, take {' and '.join([*wheres, *others])}"
    )


@dataclass(frozen=True, kw_only=True)
class FoundCandidates:
    """The candidates for a question, and how the services went that were asked, if any."""

    documents: list[Document]
    answer: LiteratureAnswer | None = None

    def add_to(self, result: RerankResult) -> RerankResult:
        """Return a result that also says what each service gave."""
        return result if self.answer is None else self.answer.added_to(result)

    @property
    def exit_code(self) -> int:
        """What a command that was done otherwise ends with."""
        return SOME_FAILED if self.answer is not None and self.answer.incomplete else OK


class Place:
    """The one place that a command searches for a question, checked when it is made.

    Args:
        question: What is asked.
        files: Files or folders, which are indexed in memory for this one question.
        store: Library, or how files are embedded.
        literature: Services.
        reading: How files are read.
        search: What is searched for.
        cache: Where replies of services are kept.
        output: Whether files that are skipped are told one by one, and progress is shown.
        without: Options that do not go with services, and whether they were given.
    """

    def __init__(
        self,
        question: str,
        files: Sequence[str],
        *,
        store: places.StoreOptions,
        literature: places.LiteratureOptions,
        reading: places.ReadOptions,
        search: places.SearchOptions,
        cache: options.CacheOptions,
        output: options.OutputOptions,
        **without: bool,
    ) -> None:
        self.store, self.search, self.quiet = store, search, output.quiet
        self.conditions = read_conditions(search.where or [])
        self._literature, self._cache = literature, cache.cache
        self._max_words = reading.max_words
        _check_question(question, files)
        check_literature(literature)
        _check_one_place(question, files, store, literature)
        self._scope = find_scope(literature, self.conditions, adaptive=search.adaptive, **without)
        verbose = getattr(output, "verbose", False)
        self._read = PassageSource(*files, reading=reading, verbose=verbose) if files else None

    @property
    def exit_code(self) -> int:
        """What a command that was done otherwise ends with."""
        return OK if self._read is None else self._read.exit_code

    def find(self, question: str) -> FoundCandidates:
        """Return the candidates; say on stderr what could not be read, and why there are none."""
        if self._scope is not None:
            return self._ask_services(question, self._scope)

        if self._read is None and has_papers_alone(self.store):
            found = self._search_papers(question)
        else:
            with self.open() as opened:
                adaptive = self.follow_neighbours(opened)
                found = (
                    self.search_in(opened)(question, self.search.retrieve)
                    if adaptive is None
                    else adaptive.find(question).documents
                )
            if self._read is None:
                found = self._note_citations(found)
        if not found and not self.conditions:
            say("no passage shares a word with the question")
        return FoundCandidates(documents=self._mark_retracted(found))

    @contextmanager
    def open(self) -> Iterator[Opened]:
        """Open the passages of a library, or those of files when they are indexed.

        Only a library, embeddings and conditions on metadata need Qdrant, which takes a second.
        """
        if self._read is None:
            with open_collection(self.store, must_exist=True) as collection:
                yield collection
            return
        self._read.check()
        given, how = self.store.embeddings, batches(self.store.embeddings)
        if given is None and not self.conditions:
            from deepera_graph.stores.words import WordIndex

            with WordIndex() as words:
                self._read.fill(words, quiet=self.quiet)
                self._read.tell()
                yield words
            return
        from deepera_graph.retrieval.collections.store import open_store

        with open_store("source", path=":memory:", embeddings=find_embeddings(given)) as made:
            self._read.fill(made, quiet=self.quiet, **how)
            self._read.tell()
            yield made

    def search_in(self, opened: Opened) -> Find:
        """Return the search of what was opened, under the conditions on metadata."""
        if not self.conditions:
            return lambda asked, k: opened.search(asked, k=k)
        store: Any = opened  # an index of words is opened where there are no conditions
        return lambda asked, k: _search_store(store, asked, k, self.conditions)

    def follow_neighbours(self, opened: Opened) -> AdaptiveRetriever | None:
        """Return a retriever that looks at neighbours, too; None if it is not to, or has none."""
        if not self.search.adaptive or (self._read is not None and opened.count() < 2):
            return None
        from deepera_graph.multihop.agent.adaptive import BUDGET
        from deepera_graph.multihop.passages.retriever import AdaptiveRetriever

        graph = load_neighbours(self.store) if self._read is None else self._build_graph(opened)
        return AdaptiveRetriever(
            first_stage=opened,
            graph=graph,
            where=self.conditions or None,
            budget=self.search.explore or max(BUDGET, self.search.retrieve),
            k=self.search.retrieve,
        )

    def _build_graph(self, opened: Any) -> NeighbourGraph:
        """Find neighbours for one question; a few passages have fewer."""
        from deepera_graph.multihop.passages.graph import K, NeighbourGraph

        stored = hasattr(opened, "scan")
        passages = [one.passage for one in opened.scan()] if stored else opened.passages()
        k = min(K, len(passages) - 1)
        embeddings = find_embeddings(self.store.embeddings or "local")
        assert embeddings is not None
        return NeighbourGraph.build(passages, embeddings, k)

    def _ask_services(self, question: str, scope: Scope) -> FoundCandidates:
        answer = search_literature(
            self._literature,
            question,
            k=self.search.retrieve,
            scope=scope,
            cache=self._cache,
            quiet=self.quiet,
        )
        documents = answer.to_documents(max_words=read_max_words(self._max_words))
        return FoundCandidates(documents=self._mark_retracted(documents), answer=answer)

    def _search_papers(self, question: str) -> list[Document]:
        """Search a library that has papers and no passages: their abstracts are judged."""
        from deepera_graph.papers.base import note_cited
        from deepera_graph.papers.paper import to_passage
        from deepera_graph.papers.results import Scope

        if self.search.adaptive:
            raise SettingsError(
                "--adaptive needs a library with passages; this one has papers alone"
            )
        with open_papers(self.store, self.store.library or "", self.store.embeddings) as base:
            scope = Scope.of(self.conditions)
            found = base.search(question, k=self.search.retrieve, scope=scope)
            papers = [to_passage(one.paper, retrieval_rank=one.rank) for one in found]
            return note_cited(base, papers)

    def _note_citations(self, found: list[Document]) -> list[Document]:
        """Return passages with how often papers of their library cite them, where it is known."""
        from deepera_graph.papers.base import note_cited

        library = self.store.library or ""
        if not Path(find_papers(self.store, library)).is_file():
            return found
        with open_papers(self.store, library) as base:
            return note_cited(base, found)

    def _mark_retracted(self, found: list[Document]) -> list[Document]:
        """Mark what a file of notices names; without a file all stays as it is."""
        if self.search.retractions is None:
            return found
        from deepera_graph.literature.same_study import read_retractions

        return read_retractions(self.search.retractions).mark(found)


def _check_question(question: str, sources: Sequence[str]) -> None:
    """Raise `InputError` for a question that is none."""
    from deepera_graph.passages import check_length

    if not question.strip():
        raise InputError("the question is empty")
    check_length(question)
    if sources and Path(question).is_file() and not any(Path(one).exists() for one in sources):
        raise InputError(f"the QUESTION comes first, then the SOURCE: {question!r} is a file")


def _check_one_place(
    question: str,
    sources: Sequence[str],
    store: places.StoreOptions,
    literature: places.LiteratureOptions,
) -> None:
    """Raise `SettingsError` unless one place is to be searched; say if quotes are missing."""
    is_missing = [not Path(one).exists() for one in sources]
    words = [one for one, missing in zip(sources, is_missing, strict=True) if missing]
    unquoted = question.isalpha() and any(map(str.isalpha, words))
    hint = f"; put the question in quotes: {_quote(question, sources)}"
    named = {
        "a SOURCE": sources or None,
        "--library": store.library,
        "--source": literature.sources,
    }
    given = [name for name, one in named.items() if one is not None]
    if len(given) != 1:
        told = f"{' and '.join(given)} were given" if given else "none was given"
        raise SettingsError(f"give {_ONE_PLACE}: {told}{hint if unquoted else ''}")
    if unquoted:
        raise SettingsError(f"no such file or folder: {words[0]!r}{hint}")
    if store.library is None and (store.path or store.qdrant_url):
        raise SettingsError("--path and --qdrant-url go with --library; others are in memory")
    if store.library is not None:
        check_library(store)


def _quote(question: str, words: Sequence[str]) -> str:
    """Return how a question without quotes is asked; what exists at its end are files."""
    *_, n_words = 0, *(n for n, one in enumerate(words, start=1) if not Path(one).exists())
    more = ["..."] if n_words == len(words) == 1 else []
    asked = " ".join([question, *words[:n_words], *more])
    return " ".join([f'deepera ask "{asked}"', *words[n_words:]])


def _search_store(
    store: PassageStore, question: str, k: int, where: Mapping[str, Any]
) -> list[Document]:
    """Search a store; if no passage meets the conditions, say why on stderr.

    Raises:
        SettingsError: No passage at all has a field that a condition names.
    """
    found = store.search(question, k=k, where=where)
    if where and not found:
        for name in where:
            if not store.has_field(name):
                from deepera_graph.retrieval import explain_field

                raise SettingsError(f"--where: {explain_field(name, store.field_names())}")
        others = len(store.search(question, k=_LOOKED_AT))
        say(_explain_conditions(where, others))
    return found


def _describe_condition(name: str, value: Any) -> list[str]:
    """Return a condition as it is written: ``year>2015``, or a range as two of them."""
    if isinstance(value, dict) and value and value.keys() <= _SIGNS.keys():
        return [f"{name}{_SIGNS[bound]}{value[bound]}" for bound in value]
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return [f"{name}={shown}"]


def _explain_conditions(where: Mapping[str, Any], n_others: int) -> str:
    if not n_others:
        return "no passage shares a word with the question, with or without --where"
    shown = " and ".join(
        part for name, value in where.items() for part in _describe_condition(name, value)
    )
    n = f"{n_others} or more" if n_others == _LOOKED_AT else f"{n_others}"
    return f"no passage meets --where {shown}, of {n} that the question would find without it"
