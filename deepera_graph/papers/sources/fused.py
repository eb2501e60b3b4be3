"""Several sources as one: asked at once, fused by rank, the same paper once, in passages."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from langchain_core.documents import Document

from deepera_graph.chat import sending
from deepera_graph.errors import SettingsError
from deepera_graph.literature.paper_keys import find_preprint, may_name_paper, title_key
from deepera_graph.packages import describe_error
from deepera_graph.papers.paper import Paper, PaperRecord, fill_paper, have_like_titles, may_be_same
from deepera_graph.papers.results import Hit, Scope, SequenceAnswer
from deepera_graph.papers.sources.base import (
    CitationSource,
    K,
    PaperSource,
    SourceAnswer,
    SourceQuery,
)
from deepera_graph.papers.sources.service import SECONDS, check_seconds
from deepera_graph.result import RerankResult
from deepera_graph.retrieval.files import MAX_WORDS, cut_text
from deepera_graph.retrieval.fusion import CORMACK_K, fuse
from deepera_graph.settings.ranges import check_at_least

_GRACE = 1.0  # seconds more for a source that ends its search by itself, and keeps what it has
_PMID = "PMID:"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteratureAnswer(SequenceAnswer[Hit]):
    """What several sources found together; a sequence of hits, best first.

    Attributes:
        query: What was asked.
        hits: Each paper once; its `by` has its rank in every source that gave it, and its `score`
            is of fused ranks.
        records: The same papers with all their ids.
        answers: How it went with each source, in the order they were named.
        n_merged: How many papers of one source were also given by another.
    """

    query: SourceQuery
    hits: tuple[Hit, ...]
    records: tuple[PaperRecord, ...]
    answers: tuple[SourceAnswer, ...]
    n_merged: int = 0

    @property
    def papers(self) -> tuple[Paper, ...]:
        """The papers, best first."""
        return tuple(one.paper for one in self.hits)

    @property
    def without_abstract(self) -> tuple[Paper, ...]:
        """The papers that have no abstract, and so give no passage."""
        return tuple(one for one in self.papers if not one.abstract)

    @property
    def incomplete(self) -> tuple[SourceAnswer, ...]:
        """The sources that failed, or asked to wait for too long."""
        return tuple(one for one in self.answers if not one.is_complete)

    @property
    def has_failed(self) -> bool:
        """Whether no source gave an answer, and at least one was asked."""
        answered = any(one.status in ("ok", "empty") for one in self.answers)
        return bool(self.incomplete) and not self.hits and not answered

    @property
    def cause(self) -> str:
        """How it went with all sources, in a line; those with the same trouble are named once."""
        alike = dict[str, list[str]]()
        for one in self.answers:
            alike.setdefault(str(one).removeprefix(f"{one.source}: "), []).append(one.source)
        return "; ".join(f"{', '.join(names)}: {said}" for said, names in alike.items())

    @property
    def problems(self) -> tuple[str, ...]:
        """What is missing, a sentence each: sources that failed, papers without an abstract."""
        said = [f"not all of the literature was searched: {one}" for one in self.incomplete]
        if n := len(self.without_abstract):
            papers = "1 paper has" if n == 1 else f"{n} papers have"
            said.append(f"{papers} no abstract and could not be judged")
        return tuple(said)

    def describe(self) -> list[dict[str, Any]]:
        """Return how it went with each source, as JSON has it."""
        return [one.describe() for one in self.answers]

    def added_to(self, result: RerankResult) -> RerankResult:
        """Return the result of judging these papers, with how it went with each source."""
        return replace(
            result, sources=tuple(self.describe()), warnings=(*result.warnings, *self.problems)
        )

    def to_documents(self, *, max_words: int | None = MAX_WORDS) -> list[Document]:
        """Return the abstracts as passages, best first, with what they are cited by.

        Args:
            max_words: An abstract that is longer is cut between sentences; None cuts none.
        """
        both = zip(self.hits, self.records, strict=True)
        return [one for hit, record in both for one in _cut(hit, record, max_words)]

    @property
    def _listed(self) -> tuple[Hit, ...]:
        return self.hits


class Literature:
    """Several sources that are asked as one.

    ``open_sources("pubmed,openalex").search("Does green tea lower fasting glucose?")``

    Args:
        sources: At least one, no two of one name.
        seconds: Longest time for all of them together; each should have no more by itself.

    Raises:
        SettingsError: There is no source, one is none, two have one name, or *seconds* is out of
            range.
    """

    def __init__(self, sources: Sequence[PaperSource], *, seconds: float = SECONDS) -> None:
        if not sources:
            raise SettingsError("there must be at least one source")
        for one in sources:
            if not isinstance(one, PaperSource):
                raise SettingsError(
                    f"a source must be a name, or have name, search and asearch, got {one!r:.80}"
                )
        check_seconds(seconds)
        names = [one.name for one in sources]
        if twice := [one for one in names if names.count(one) > 1]:
            raise SettingsError(f"two sources are named {twice[0]!r}")
        self.sources, self.seconds = tuple(sources), seconds

    @property
    def name(self) -> str:
        """The names of all, joined."""
        return "+".join(one.name for one in self.sources)

    def search(
        self, query: str | SourceQuery, k: int = K, scope: Scope | None = None
    ) -> LiteratureAnswer:
        """Return the best *k* papers of all sources, best first, each paper once.

        Each source is asked for *k*. What goes wrong with one is in `answers`, and costs the
        others nothing.

        Raises:
            InputError: The query has no word.
            SettingsError: *k* is below 1.
        """
        return sending.run(self._search(query, k, scope))

    async def asearch(
        self, query: str | SourceQuery, k: int = K, scope: Scope | None = None
    ) -> LiteratureAnswer:
        """Return what `search` returns, in the running loop."""
        return await sending.arun(self._search(query, k, scope))

    async def afull_text(self, *, doi: str = "", pmid: str = "") -> str:
        """Return an article that is open in JATS, of the first source that has it; else nothing."""
        for one in self.sources:
            read = getattr(one, "afull_text", None)
            if read is not None and (text := await read(doi=doi, pmid=pmid)):
                return str(text)
        return ""

    def references(self, id: str, k: int = K, scope: Scope | None = None) -> LiteratureAnswer:
        """Return at most *k* papers that a paper cites, of the sources that know.

        Raises:
            SettingsError: No source follows citations, or *k* is below 1.
        """
        return sending.run(self._follow("areferences", id, k, scope))

    def citations(self, id: str, k: int = K, scope: Scope | None = None) -> LiteratureAnswer:
        """Return at most *k* papers that cite a paper, as `references` does."""
        return sending.run(self._follow("acitations", id, k, scope))

    async def _search(
        self, query: str | SourceQuery, k: int, scope: Scope | None
    ) -> LiteratureAnswer:
        check_at_least("k", k, least=1)
        wanted = SourceQuery.of(query)
        asked = (self._ask(one, partial(one.asearch, wanted, k, scope)) for one in self.sources)
        return fuse_answers(wanted, await asyncio.gather(*asked), k)

    async def _follow(self, way: str, id: str, k: int, scope: Scope | None) -> LiteratureAnswer:
        check_at_least("k", k, least=1)
        able = [one for one in self.sources if isinstance(one, CitationSource)]
        if not able:
            raise SettingsError(
                f"{self.name} cannot follow citations; openalex and semantic_scholar can"
            )
        asked = (self._ask(one, partial(getattr(one, way), id, k, scope)) for one in able)
        return fuse_answers(SourceQuery(id, ()), await asyncio.gather(*asked), k)

    async def _ask(
        self, source: PaperSource, ask: Callable[[], Awaitable[SourceAnswer]]
    ) -> SourceAnswer:
        """Ask one source; whatever it raises becomes its status."""
        try:
            async with asyncio.timeout(self.seconds + _GRACE):
                answer = await ask()
            if isinstance(answer, SourceAnswer):
                return (
                    answer if answer.source == source.name else replace(answer, source=source.name)
                )
            reason = f"it must return a SourceAnswer, got {answer!r:.40}"
        except TimeoutError:
            reason = f"it did not answer within {self.seconds:g} s"
        except Exception as error:  # noqa: BLE001  # a source of somebody else's
            reason = describe_error(error)
        return SourceAnswer(source=source.name, status="failed", reason=reason)


def fuse_answers(query: SourceQuery, answers: Sequence[SourceAnswer], k: int) -> LiteratureAnswer:
    """Return the best *k* papers of several rankings, the same paper once."""
    # Records are of one paper if they share an id and their titles are alike, or if they have one
    # title and neither year nor authors speak against it. The record of the source that was named
    # first stays, and others add what it lacks; of an article and its preprint one stays, with its
    # own text, see `_join`. Equal scores are ordered by id.
    # Source: Cormack, Clarke and Buettcher (2009), Reciprocal Rank Fusion, section 2, k = 60.
    merged = MergedRecords()
    added = {one.source: [merged.add(record) for record in one.records] for one in answers}
    rankings = {
        name: [*dict.fromkeys(map(merged.number_of, numbers))] for name, numbers in added.items()
    }
    scores = fuse([[str(n) for n in ranking] for ranking in rankings.values()], k=CORMACK_K)
    by = {
        n: {name: ranking.index(n) + 1 for name, ranking in rankings.items() if n in ranking}
        for n in sorted({n for ranking in rankings.values() for n in ranking})
    }
    order = sorted(by, key=lambda n: (-scores[str(n)], merged.records[n].paper.id))[:k]
    hits = (
        Hit(merged.records[n].paper, rank, by[n], round(scores[str(n)], 6))
        for rank, n in enumerate(order, start=1)
    )
    return LiteratureAnswer(
        query=query,
        hits=tuple(hits),
        records=tuple(merged.records[n] for n in order),
        answers=tuple(answers),
        n_merged=sum(len(one) - 1 for one in by.values()),
    )


class MergedRecords:
    """Records by their ids and titles, those of one paper as one.

    Two that seemed to be different papers become one if a third record has ids of both; then the
    number of the later is another's, see `number_of`.
    """

    def __init__(self) -> None:
        self.records: list[PaperRecord] = []
        self._by_id: dict[str, int] = {}
        self._by_title: dict[str, list[int]] = {}
        self._now: dict[int, int] = {}  # of numbers that have become another's

    def add(self, record: PaperRecord) -> int:
        """Add a record, and return the number of its paper."""
        known = sorted(self._find(record))
        number = known[0] if known else len(self.records)
        if known:
            for other in known[1:]:
                self.records[number] = _fill(self.records[number], self.records[other])
                self._now[other] = number
            self.records[number] = _fill(self.records[number], record)
        else:
            self.records.append(record)
        for id in record.ids:
            self._by_id.setdefault(id, number)
        same = self._by_title.setdefault(title_key(record.paper.title), [])
        if number not in same:
            same.append(number)
        return number

    def get(self, id: str) -> PaperRecord | None:
        """Return the record that is known by an id."""
        number = self._by_id.get(id)
        return None if number is None else self.records[self.number_of(number)]

    def number_of(self, number: int) -> int:
        """Return the number that a paper has now, of one that `add` has returned."""
        while number in self._now:
            number = self._now[number]
        return number

    def _find(self, record: PaperRecord) -> set[int]:
        """Return the numbers of its paper: one, or several that are alike; none if it is new."""
        found: list[int] = []
        for id in record.ids:
            if id in self._by_id:
                number = self.number_of(self._by_id[id])
                known = [record, *(self.records[one] for one in found)]
                if all(have_like_titles(self.records[number].paper, one.paper) for one in known):
                    found.append(number)
        return {*found} or self._find_title(record)

    def _find_title(self, record: PaperRecord) -> set[int]:
        key = title_key(record.paper.title)
        if may_name_paper(key):
            for number in map(self.number_of, self._by_title.get(key, ())):
                if may_be_same(self.records[number].paper, record.paper):
                    return {number}
        return set()


def _fill(first: PaperRecord, other: PaperRecord) -> PaperRecord:
    """Return a record with what another of the same paper has more."""
    paper = _join(first.paper, other.paper)
    others = dict.fromkeys((*first.ids, *other.ids))
    return PaperRecord(
        paper=paper,
        references=tuple(dict.fromkeys((*first.references, *other.references))),
        aliases=tuple(one for one in others if one != paper.id),
    )


def _join(first: Paper, other: Paper) -> Paper:
    """Fill a paper from another record; of an article and its preprint choose one."""
    # Their texts differ, so each stays with its own year and DOI: the article, if it has a text.
    kinds = {_find_kind(one): one for one in (other, first)}
    if kinds.keys() != {"article", "preprint"}:
        return fill_paper(first, other)
    article, preprint = kinds["article"], kinds["preprint"]
    return article if article.abstract or not preprint.abstract else preprint


def _find_kind(paper: Paper) -> str:
    """Return ``preprint`` or ``article``; empty for a record that says too little."""
    if find_preprint(paper.doi or paper.id, paper.venue, is_on_arxiv=bool(paper.arxiv)):
        return "preprint"
    return "article" if paper.doi or paper.venue else ""


def _list_own(record: PaperRecord) -> list[str]:
    """Return the ids of a record that are not those of its other version."""
    kind = _find_kind(record.paper)
    others = {"preprint": False, "article": True}.get(kind)
    return [
        id
        for id in record.ids
        if id == record.paper.id or bool(find_preprint(id, "", is_on_arxiv=False)) is not others
    ]


def _cut(hit: Hit, record: PaperRecord, max_words: int | None) -> Iterator[Document]:
    paper, ids = hit.paper, _list_own(record)
    known: dict[str, Any] = {
        "title": paper.title,
        "authors": list(paper.authors),
        "year": paper.year,
        "venue": paper.venue,
        "doi": paper.doi or next((id for id in ids if id.startswith("10.")), ""),
        "pmid": next((id[len(_PMID) :] for id in ids if id.startswith(_PMID)), ""),
        "arxiv": paper.arxiv,
        "url": paper.url,
    }
    metadata = {name: value for name, value in known.items() if value not in ("", [], None)}
    metadata |= {
        "sources": [*hit.by],
        "retrieval_rank": hit.rank,
        "retrieval_score": hit.score,
        "retrieval_by": dict(hit.by),
    }
    parts = cut_text(paper.abstract, max_words=max_words)
    for number, part in enumerate(parts, start=1):
        place = {"part": number} if len(parts) > 1 else {}
        id = f"{paper.id}#{number}" if place else paper.id
        yield Document(id=id, page_content=part, metadata={**metadata, **place})
