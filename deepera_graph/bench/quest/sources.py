"""Where a construction finds papers: bases, and whatever else can be searched."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from deepera_graph.errors import DeepEraError
from deepera_graph.papers.base import PaperBase
from deepera_graph.papers.paper import Paper, title_key
from deepera_graph.papers.scope import Scope

Tool = Literal["search", "references", "citations"]
ALL = 10_000  # of the references of a paper
FAILED = ("failed", "rate_limited")  # states of a call that another run may mend
_LONGEST_CAUSE = 300


class SourceReply(Protocol):
    """What a source answers: how it went, and its papers, best first."""

    @property
    def status(self) -> str:
        """``ok``, ``empty``, one of `FAILED`, or why it was not asked."""

    @property
    def papers(self) -> Sequence[Paper]:
        """Papers, best first."""


class Searchable(Protocol):
    """Whatever can be searched for papers."""

    @property
    def name(self) -> str:
        """What users call it."""

    def search(self, query: str, k: int, scope: Scope | None) -> SourceReply:
        """Return at most *k* papers in *scope*, best first."""


@runtime_checkable
class Citing(Protocol):
    """A source that also knows which papers cite which."""

    def references(self, id: str, k: int, scope: Scope | None) -> SourceReply:
        """Return at most *k* papers that a paper cites."""

    def citations(self, id: str, k: int, scope: Scope | None) -> SourceReply:
        """Return at most *k* papers that cite a paper."""


class BaseSource:
    """A base of papers as a source."""

    def __init__(self, base: PaperBase, name: str = "") -> None:
        self._base = base
        self.name = name or PurePath(base.place).name

    def search(self, query: str, k: int, scope: Scope | None) -> SourceReply:
        """Return the best papers."""
        return self._base.search(query, k=k, scope=scope)

    def references(self, id: str, k: int, scope: Scope | None) -> SourceReply:
        """Return what a paper cites."""
        return self._base.references(id, k=k, scope=scope)

    def citations(self, id: str, k: int, scope: Scope | None) -> SourceReply:
        """Return what cites a paper, newest first."""
        return self._base.citations(id, k=k, scope=scope)

    def get(self, id: str) -> Paper | None:
        """Return a paper."""
        return self._base.get(id)

    def describe(self) -> dict[str, Any]:
        """Return what the manifest says of it."""
        return {"name": self.name, **self._base.describe()}


def describe_source(source: Searchable) -> dict[str, Any]:
    """Return what the manifest says of a source."""
    describe = getattr(source, "describe", None)
    return dict(describe()) if callable(describe) else {"name": source.name}


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

    Two records are one paper if they share an id, a DOI or an arXiv id; or, of different sources,
    a title.
    """

    def __init__(self) -> None:
        self.papers: dict[str, Paper] = {}
        self._names: dict[str, str] = {}
        self._sources: dict[str, set[str]] = {}
        self._titles: dict[str, str] = {}
        self._own: dict[tuple[str, str], str] = {}

    def add(self, source: str, paper: Paper) -> str:
        """Take a paper in; return the id it goes by."""
        ids = [one for one in (paper.id, paper.doi, paper.arxiv) if one]
        known = next((self._names[one] for one in ids if one in self._names), None)
        title = title_key(paper.title)
        if known is None and (other := self._titles.get(title)) is not None:
            known = other if source not in self._sources[other] else None
        id = known or paper.id
        if known is None:
            self.papers[id] = paper
        elif paper.abstract and not self.papers[id].abstract:
            self.papers[id] = _with_abstract(self.papers[id], paper.abstract)
        self._names |= {one: id for one in ids if one not in self._names}
        self._titles.setdefault(title, id)
        self._sources.setdefault(id, set()).add(source)
        self._own.setdefault((source, id), paper.id)
        return id

    def own_id(self, source: str, id: str) -> str:
        """Return the id by which a source knows a paper, else the one it goes by here."""
        return self._own.get((source, id), id)


def _with_abstract(paper: Paper, abstract: str) -> Paper:
    return Paper.from_dict({**paper.to_dict(), "abstract": abstract})
