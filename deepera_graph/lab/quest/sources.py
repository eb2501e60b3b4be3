"""Where a construction finds papers: bases, services, and whatever else can be searched."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from deepera_graph.errors import DeepEraError, SettingsError
from deepera_graph.literature.paper_keys import may_name_paper, title_key
from deepera_graph.papers.base import PaperBase
from deepera_graph.papers.paper import Paper, have_like_titles, may_be_same, month_of
from deepera_graph.papers.results import Scope

Tool = Literal["search", "references", "citations"]
ALL = 10_000  # of the references of a paper
FAILED = ("failed", "rate_limited")  # states of a call that another run may mend
_LONGEST_CAUSE = 300
_AT_ONCE = 8  # calls of a base; of whatever else is asked, one after the other


class Searchable(Protocol):
    """Whatever can be searched for papers.

    What it answers has a `status` (``ok``, ``empty``, one of `FAILED`, or why it was not asked)
    and `papers`, best first.
    """

    @property
    def name(self) -> str:
        """What users call it."""

    def search(self, query: str, k: int, scope: Scope | None) -> Any:
        """Return at most *k* papers in *scope*, best first."""


@runtime_checkable
class Citing(Protocol):
    """A source that also knows which papers cite which."""

    def references(self, id: str, k: int, scope: Scope | None) -> Any:
        """Return at most *k* papers that a paper cites."""

    def citations(self, id: str, k: int, scope: Scope | None) -> Any:
        """Return at most *k* papers that cite a paper."""


class BaseSource:
    """A base of papers as a source."""

    def __init__(self, base: PaperBase, name: str = "") -> None:
        self._base = base
        self.name = name or PurePath(base.place).name

    def search(self, query: str, k: int, scope: Scope | None) -> Any:
        """Return the best papers."""
        return self._base.search(query, k=k, scope=scope)

    def references(self, id: str, k: int, scope: Scope | None) -> Any:
        """Return what a paper cites."""
        return self._base.references(id, k=k, scope=scope)

    def citations(self, id: str, k: int, scope: Scope | None) -> Any:
        """Return what cites a paper, newest first."""
        return self._base.citations(id, k=k, scope=scope)

    def get(self, id: str) -> Paper | None:
        """Return a paper."""
        return self._base.get(id)

    def describe(self) -> dict[str, Any]:
        """Return what the manifest says of it."""
        return {"name": self.name, **self._base.describe()}


def name_sources(given: Any) -> dict[str, Any]:
    """Return one source or several by name; a base becomes one."""
    many = list(given) if isinstance(given, list | tuple) else [given]
    if not many:
        raise SettingsError("sources must be one or more, got none")
    found: dict[str, Any] = {}
    for one in many:
        source = BaseSource(one) if isinstance(one, PaperBase) else one
        if source.name in found:
            raise SettingsError(f"sources must have different names, got {source.name!r} twice")
        found[source.name] = source
    return found


def look_up(ids: Sequence[str], sources: Mapping[str, Any]) -> dict[str, Paper | None]:
    """Return the papers of ids, None for one that no base has."""
    bases = [one for one in sources.values() if isinstance(one, BaseSource)]
    return {id: next((found for one in bases if (found := one.get(id))), None) for id in ids}


def describe_source(source: Searchable) -> dict[str, Any]:
    """Return what the manifest says of a source."""
    describe = getattr(source, "describe", None)
    return dict(describe()) if callable(describe) else {"name": source.name}


def take_turns(sources: Mapping[str, Any]) -> dict[str, asyncio.Semaphore]:
    """Return by name how often each source is asked at once: services wait between requests."""
    return {
        name: asyncio.Semaphore(_AT_ONCE if isinstance(one, BaseSource) else 1)
        for name, one in sources.items()
    }


class SourceCall(NamedTuple):
    """One call of a source, and what came of it."""

    source: str
    tool: Tool
    asked: str
    status: str
    papers: tuple[Paper, ...]
    reason: str = ""


def call_source(source: Any, tool: Tool, asked: str, k: int, scope: Scope) -> SourceCall:
    """Ask a source; one that fails is kept with its cause, and is not one that found nothing."""
    try:
        found = getattr(source, tool)(asked, k, scope)
    except DeepEraError as error:
        return _failed(source, tool, asked, str(error))
    except Exception as error:  # noqa: BLE001  # a source of somebody else's
        return _failed(source, tool, asked, f"{type(error).__name__}: {error}")
    reason = str(getattr(found, "reason", ""))
    return SourceCall(source.name, tool, asked, str(found.status), tuple(found.papers), reason)


def _failed(source: Searchable, tool: Tool, asked: str, cause: str) -> SourceCall:
    return SourceCall(source.name, tool, asked, "failed", (), cause[:_LONGEST_CAUSE])


class Merged:
    """Papers of several sources, each once; the first that brings one names it.

    Two records are one paper if they share an id, or a DOI or arXiv id and nearly a title; or, of
    different sources, a title that authors and years do not speak against. One base may well have
    two papers of one title.
    """

    def __init__(self) -> None:
        self.papers: dict[str, Paper] = {}
        self.on_arxiv: set[str] = set()
        self._names: dict[str, str] = {}
        self._sources: dict[str, set[str]] = {}
        self._titles: dict[str, list[str]] = {}
        self._own: dict[tuple[str, str], str] = {}

    def add(self, source: str, paper: Paper) -> str:
        """Take a paper in; return the id it goes by."""
        known = self._find(source, paper)
        id = known or paper.id
        if known is None:
            self.papers[id] = paper
        elif paper.abstract and not self.papers[id].abstract:
            self.papers[id] = replace(self.papers[id], abstract=paper.abstract)
        if paper.arxiv or month_of(paper.id):
            self.on_arxiv.add(id)
        for one in (paper.id, paper.doi, paper.arxiv):
            if one:
                self._names.setdefault(one, id)
        self._titles.setdefault(title_key(paper.title), []).append(id)
        self._sources.setdefault(id, set()).add(source)
        self._own.setdefault((source, id), paper.id)
        return id

    def _find(self, source: str, paper: Paper) -> str | None:
        if paper.id in self._names:
            return self._names[paper.id]
        for one in (paper.doi, paper.arxiv):
            known = self._names.get(one) if one else None
            if known is not None and have_like_titles(self.papers[known], paper):
                return known
        key = title_key(paper.title)
        if not may_name_paper(key):
            return None
        for known in self._titles.get(key, ()):
            if source not in self._sources[known] and may_be_same(self.papers[known], paper):
                return known
        return None

    def own_id(self, source: str, id: str) -> str:
        """Return the id by which a source knows a paper, else the one it goes by here."""
        return self._own.get((source, id), id)
