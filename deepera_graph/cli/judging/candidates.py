"""The candidates for a question: of files, of a library, or of the world's literature."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepera_graph.cli.opening.limits import (
    describe_condition,
    describe_left_out,
    read_conditions,
    read_question,
)
from deepera_graph.cli.opening.sources import (
    PassageSource,
    batches,
    check_literature,
    find_scope,
    search_literature,
)
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
from deepera_graph.retrieval import MOST_COUNTED, describe_unknown, explain_field

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

_ONE_PLACE = "a SOURCE, --library or --source"


@dataclass(frozen=True, kw_only=True)
class FoundCandidates:
    """The candidates for a question, and how the services went that were asked, if any."""

    documents: list[Document]
    answer: LiteratureAnswer | None = None
    notes: tuple[str, ...] = ()  # on what the limits of the question left out

    def add_to(self, result: RerankResult) -> RerankResult:
        """Return a result that also says what was left out, and what each service gave."""
        result = replace(result, warnings=(*self.notes, *result.warnings))
        return result if self.answer is None else self.answer.added_to(result)

    @property
    def exit_code(self) -> int:
        """What a command that was done otherwise ends with."""
        return SOME_FAILED if self.answer is not None and self.answer.incomplete else OK


class Place:
    """The one place that a command searches for a question, checked when it is made."""

    def __init__(
        self,
        question: str,  # what is asked
        files: Sequence[str],  # files or folders, which are indexed in memory for this one question
        *,
        store: places.StoreOptions,  # library, or how files are embedded
        literature: places.LiteratureOptions,  # services
        reading: places.ReadOptions,  # how files are read
        search: places.SearchOptions,  # what is searched for
        cache: options.CacheOptions,  # where replies of services are kept
        # whether files that are skipped are told one by one, and progress is shown
        output: options.OutputOptions,
        **without: bool,  # options that do not go with services, and whether they were given
    ) -> None:
        self.store, self.search, self.quiet = store, search, output.quiet
        self.conditions = read_conditions(search.where or [])
        # of years and kinds of papers, where they stand apart at the end of the question
        self.limits = read_question("" if without.get("multihop") else question, apart=True)
        self._is_limited = [*self.limits.to_dict()] != ["question", "topic"]
        self.question = self.limits.topic if self._is_limited else question
        self._literature, self._cache = literature, cache.cache
        self._max_words = reading.max_words
        _check_question(question, files)
        check_literature(literature)
        _check_one_place(question, files, store, literature)
        self._scope = find_scope(literature, self.conditions, adaptive=search.adaptive, **without)
        verbose = getattr(output, "verbose", False)
        self._names_all = verbose or output.as_json
        self._read = PassageSource(*files, reading=reading, verbose=verbose) if files else None
        self._n_searched = 0  # passages of which those are searched for that share words

    @property
    def exit_code(self) -> int:
        """What a command that was done otherwise ends with."""
        return OK if self._read is None else self._read.exit_code

    def find(self) -> FoundCandidates:
        """Return the candidates; say on stderr what could not be read, and why there are none."""
        # With limits of the question twice as many are looked for, and what breaks one is named.
        if self._scope is not None:
            return self._keep_allowed(self._ask_services(self._scope))

        left_out: list[str] = []
        if self._read is None and has_papers_alone(self.store):
            found = self._search_papers()
        else:
            with self.open() as opened:
                adaptive = self.follow_neighbours(opened)
                found = (
                    self.search_in(opened)(self.question, self._k)
                    if adaptive is None
                    else adaptive.find(self.question).documents
                )
                left_out = self.describe_unknown(opened)
                is_short = (
                    len(found) < self.search.retrieve
                )  # else nobody is told, see `tell_shared`
                if is_short and not self.conditions and adaptive is None:
                    self._n_searched = opened.count()
            if self._read is None:
                found = self._note_citations(found)
        if not found and not self.conditions:
            say("no passage shares a word with the question")
        marked = self._mark_retracted(found)
        return self._keep_allowed(FoundCandidates(documents=marked, notes=tuple(left_out)))

    def tell_shared(self, result: RerankResult) -> None:
        """Say how few passages share words with the question, where none of them is kept."""
        n, most = len(result.all_passages), min(self._n_searched, self.search.retrieve)
        if not (result.kept or self._is_limited or self.quiet) and 0 < n < most:
            share = "shares" if n == 1 else "share"
            say(f"{n} of {self._n_searched} passages {share} a word with the question")

    @property
    def _k(self) -> int:
        return self.search.retrieve * (2 if self._is_limited else 1)

    def _keep_allowed(self, found: FoundCandidates) -> FoundCandidates:
        """Leave out what breaks a limit of the question, with a note that says so."""
        if not self._is_limited:
            return found
        from deepera_graph.papers.agent.limits import leave_out
        from deepera_graph.papers.results import Scope

        scope, notes = self.limits.narrow(Scope())
        limits = replace(self.limits, year_from=scope.year_from, year_to=scope.year_to)
        kept, out = leave_out(found.documents, limits)
        return replace(
            found,
            documents=kept[: self.search.retrieve],
            notes=(
                *found.notes,
                *notes,
                describe_left_out(limits, out, len(found.documents), whole=self._names_all),
            ),
        )

    @contextmanager
    def open(self) -> Iterator[Opened]:
        """Open the passages of a library, or those of files when they are indexed."""
        # Only a library, embeddings and conditions on metadata need Qdrant, which takes a second.
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

    def describe_unknown(self, opened: Opened) -> list[str]:
        """Say how many passages a condition left out as they do not say what it asks for."""
        if not self.conditions:
            return []
        store: Any = opened
        return describe_unknown(store.count_unknown(self.question, self.conditions))

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
            budget=self.search.explore or max(BUDGET, self._k),
            k=self._k,
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

    def _ask_services(self, scope: Scope) -> FoundCandidates:
        answer = search_literature(
            self._literature,
            self.question,
            k=self._k,
            scope=self.limits.narrow(scope)[0],
            cache=self._cache,
            quiet=self.quiet,
        )
        documents = answer.to_documents(max_words=read_max_words(self._max_words))
        return FoundCandidates(documents=self._mark_retracted(documents), answer=answer)

    def _search_papers(self) -> list[Document]:
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
            found = base.search(self.question, k=self._k, scope=scope)
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
    if not given and Path(question).exists():
        raise SettingsError(
            f"{question!r} was taken as the question: give one, in quotes, before the SOURCE"
        )
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
    """Search a store; if no passage meets the conditions, say why on stderr."""
    found = store.search(question, k=k, where=where)
    if where and not found:
        for name in where:
            if not store.has_field(name):
                raise SettingsError(f"--where: {explain_field(name, store.field_names())}")
        others = len(store.search(question, k=MOST_COUNTED))
        say(f"{_explain_conditions(where, others)}{_find_part(store, question, where)}")
    return found


def _find_part(store: PassageStore, question: str, where: Mapping[str, Any]) -> str:
    """Name a condition that some passages meet if they need have no more than part of a field."""
    for name, value in where.items():
        part = {**where, name: {"contains": value}}
        if isinstance(value, str) and store.search(question, k=1, where=part):
            return f"; --where {name}~{value} finds what has it among other words"
    return ""


def _explain_conditions(where: Mapping[str, Any], n_others: int) -> str:
    if not n_others:
        return "no passage shares a word with the question, with or without --where"
    shown = " and ".join(
        part for name, value in where.items() for part in describe_condition(name, value)
    )
    n = f"{n_others} or more" if n_others == MOST_COUNTED else f"{n_others}"
    return f"no passage meets --where {shown}, of {n} that the question would find without it"
