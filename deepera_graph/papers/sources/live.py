"""Services of literature as a base of papers, so that agents and commands search them alike.

``PaperSearch(live_base("openalex,semantic_scholar")).search("parsing without treebanks")``
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from deepera_graph.errors import InputError, SettingsError, StoreError
from deepera_graph.literature.paper_keys import normalize_id, title_key
from deepera_graph.papers.base import PaperBase
from deepera_graph.papers.paper import Paper
from deepera_graph.papers.results import Hits, Neighbours, Scope, SearchMode, TitleMatch, Way
from deepera_graph.papers.sources import open_sources
from deepera_graph.papers.sources.base import SourceAnswer
from deepera_graph.papers.sources.fused import Literature, LiteratureAnswer, MergedRecords

if TYPE_CHECKING:
    from deepera_graph.papers.sources.base import PaperSource

_N_TITLES = 10  # papers looked at for the one that a title names


def live_base(
    sources: "str | Iterable[str | PaperSource] | Literature",
    *,
    on_trouble: Callable[[SourceAnswer], None] | None = None,
    **how: Any,
) -> PaperBase:
    """Return services as a base that is searched over the network.

    It finds papers, and follows citations where a service has them (OpenAlex, Semantic Scholar).
    By id it knows what it has found before; it has no vectors and no list of venues.

    Args:
        sources: Names, sources, or both together; see `open_sources`.
        on_trouble: Called with each answer that is not complete, and where no service can follow
            citations, which is an error otherwise. A search in which no source answered is a
            `StoreError` anyhow.
        how: Of `open_sources`: *seconds*, *contact*, *cache*.
    """
    literature = sources if isinstance(sources, Literature) else open_sources(sources, **how)
    return PaperBase(LivePapers(literature, on_trouble))


class LivePapers:
    """What `PaperBase` needs, of services; see `live_base`.

    A paper keeps the id that it was found by first, whichever service names it later.
    """

    has_vectors = False

    def __init__(
        self, literature: Literature, on_trouble: Callable[[SourceAnswer], None] | None = None
    ) -> None:
        self._literature, self._tell = literature, on_trouble
        self._known, self._lock = MergedRecords(), Lock()
        self.place = literature.name

    def search(
        self, query: str, *, mode: SearchMode | None, k: int, scope: Scope, offset: int
    ) -> Hits:
        """Return a page of the fused ranking."""
        if mode not in (None, "sparse"):
            raise SettingsError(f"{self.place} is searched by words, mode='sparse', not {mode!r}")
        try:
            found = self._literature.search(query, offset + k, scope)
        except InputError:
            return Hits("no_words", "sparse", offset=offset)
        hits = [replace(found[at], paper=paper) for at, paper in self._note(found).items()]
        page = tuple(hits[offset : offset + k])
        return Hits("ok" if page else "empty", "sparse", page, offset, _has_more(found, k, offset))

    def get(self, id: str, *, scope: Scope) -> Paper | None:
        """Return a paper that was found before."""
        with self._lock:
            record = self._known.get(normalize_id(id))
        if record is None or not scope.allows(record.paper, ids=record.ids):
            return None
        return record.paper

    def title(self, title: str, *, scope: Scope) -> TitleMatch:
        """Return the paper with a title, whatever its case and marks."""
        key = title_key(title)
        if not key:
            return TitleMatch("no_words")
        for one in self.search(title, mode=None, k=_N_TITLES, scope=scope, offset=0):
            if title_key(one.paper.title) == key:
                return TitleMatch("exact", one.paper, 1.0)
        return TitleMatch("none")

    def follow(self, way: Way, id: str, *, k: int, scope: Scope, offset: int) -> Neighbours:
        """Follow citations; where no service has them, that is told, or an error."""
        try:
            found: LiteratureAnswer = getattr(self._literature, way)(id, offset + k, scope)
        except SettingsError as error:
            if self._tell is None:
                raise
            self._tell(SourceAnswer(source=self.place, status="not_asked", reason=str(error)))
            return Neighbours("unknown", offset=offset)
        papers = tuple(self._note(found).values())
        page = papers[offset : offset + k]
        return Neighbours(
            "ok" if page else "empty",
            page,
            total=len(papers),
            offset=offset,
            more=_has_more(found, k, offset),
        )

    def describe(self) -> dict[str, Any]:
        """Return which services there are."""
        return {"sources": [one.name for one in self._literature.sources]}

    def venues(self) -> list[str]:
        """Return no venue, as services do not list them."""
        return []

    def close(self) -> None:
        """Do nothing: connections end with each search."""

    def _note(self, found: LiteratureAnswer) -> dict[int, Paper]:
        """Remember what was found, and tell what is missing; raise if that is all."""
        # Returns the papers under their places, each once and as it was known before.
        if found.has_failed:
            raise StoreError("; ".join(map(str, found.answers)))
        for one in found.incomplete:
            if self._tell is not None:
                self._tell(one)
        with self._lock:
            added = [self._known.add(one) for one in found.records]
            numbers = [self._known.number_of(one) for one in added]
            first = {number: place for place, number in reversed([*enumerate(numbers)])}
            known = {place: self._known.records[number].paper for number, place in first.items()}
        return dict(sorted(known.items()))


def _has_more(found: LiteratureAnswer, k: int, offset: int) -> bool:
    return len(found) > offset and any(len(one) >= offset + k for one in found.answers)
