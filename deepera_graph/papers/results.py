"""What a base answers: hits of a search, a match of a title, neighbours along citations."""

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, overload

from deepera_graph.papers.paper import Paper

T_co = TypeVar("T_co", covariant=True)
SearchMode = Literal["sparse", "dense", "hybrid"]
SearchStatus = Literal["ok", "empty", "no_words"]
TitleStatus = Literal["exact", "near", "none", "no_words"]
ListFormat = Literal["csv", "bibtex", "ris"]
NeighbourStatus = Literal["ok", "empty", "unknown"]


class SequenceAnswer(Sequence[T_co]):
    """An answer that is a sequence of what it holds."""

    __slots__ = ()

    @property
    @abstractmethod
    def _listed(self) -> tuple[T_co, ...]: ...

    def __len__(self) -> int:
        return len(self._listed)

    def __iter__(self) -> Iterator[T_co]:
        return iter(self._listed)

    @overload
    def __getitem__(self, place: int) -> T_co: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, place: int | slice) -> T_co | tuple[T_co, ...]:
        """Return what is at a place, from 0."""
        return self._listed[place]


@dataclass(frozen=True, slots=True)
class Hit:
    """A paper that a search found.

    Attributes:
        paper: The paper.
        rank: Its rank in the whole ranking, from 1, whatever page it is on.
        by: Its rank by each way that found it: ``{"sparse": 3, "dense": 1}``.
        score: BM25 (> 0), cosine in [-1, 1], or of fused ranks; comparable in one search only.
    """

    paper: Paper
    rank: int
    by: Mapping[str, int] = field(default_factory=dict)
    score: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "rank": self.rank,
            "by": dict(self.by),
            "score": self.score,
            "paper": self.paper.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Hits(SequenceAnswer[Hit]):
    """A page of a ranking; a sequence of its hits, best first.

    Attributes:
        status: ``ok``; ``empty``: nothing in scope has a word of the query, or this page is past
            the end; ``no_words``: the query has no word to search for, only stop words or marks.
        mode: How was searched.
        hits: Of this page.
        offset: How many better ones there are before this page.
        more: Whether there is a next page.
    """

    status: SearchStatus
    mode: SearchMode
    hits: tuple[Hit, ...] = ()
    offset: int = 0
    more: bool = False

    @property
    def papers(self) -> tuple[Paper, ...]:
        """The papers, best first."""
        return tuple(one.paper for one in self.hits)

    @property
    def _listed(self) -> tuple[Hit, ...]:
        return self.hits

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "status": self.status,
            "mode": self.mode,
            "offset": self.offset,
            "more": self.more,
            "hits": [one.to_dict() for one in self.hits],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Hits":
        """Return the hits of `to_dict`."""
        hits = tuple(
            Hit(**{**one, "paper": Paper.from_dict(one["paper"])}) for one in plain["hits"]
        )
        return cls(**{**plain, "hits": hits})


@dataclass(frozen=True, slots=True)
class Neighbours(SequenceAnswer[Paper]):
    """A page of what a paper cites, or of what cites it; a sequence of papers.

    Attributes:
        status: ``ok``; ``empty``: there are none in scope, or this page is past the end;
            ``unknown``: the paper itself is not in the base, or not in scope.
        papers: Of this page: references as the paper lists them, citations newest first, those of
            one date by id.
        total: How many there are in scope, on all pages.
        outside: How many references are to papers that the base does not have.
        offset: How many come before this page.
        more: Whether there is a next page.
    """

    status: NeighbourStatus
    papers: tuple[Paper, ...] = ()
    total: int = 0
    outside: int = 0
    offset: int = 0
    more: bool = False

    @property
    def _listed(self) -> tuple[Paper, ...]:
        return self.papers

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "status": self.status,
            "total": self.total,
            "outside": self.outside,
            "offset": self.offset,
            "more": self.more,
            "papers": [one.to_dict() for one in self.papers],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Neighbours":
        """Return the neighbours of `to_dict`."""
        return cls(**{**plain, "papers": tuple(map(Paper.from_dict, plain["papers"]))})


@dataclass(frozen=True, slots=True)
class TitleMatch:
    """The paper that a title names, if the base has it in scope.

    Attributes:
        status: ``exact`` but for case, marks and TeX; ``near``: a few letters differ, or the
            subtitle is missing; ``none``; ``no_words``: the title has no letter or digit.
        paper: The paper, or None.
        similarity: Of the titles, in [0, 1].
    """

    status: TitleStatus
    paper: Paper | None = None
    similarity: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "status": self.status,
            "similarity": self.similarity,
            "paper": None if self.paper is None else self.paper.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "TitleMatch":
        """Return the match of `to_dict`."""
        paper = plain["paper"]
        return cls(**{**plain, "paper": None if paper is None else Paper.from_dict(paper)})


def to_json(plain: Any) -> str:
    """Return plain data as the one JSON text that every way of asking gives."""
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
