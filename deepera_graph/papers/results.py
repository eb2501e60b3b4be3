"""What a base answers: hits, matches of titles, neighbours along citations, within a scope."""

import unicodedata
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, Literal, TypeVar, get_args, overload

from deepera_graph import web
from deepera_graph.errors import SettingsError
from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.papers.paper import Paper, days_of, list_set_fields, read_date, venue_key
from deepera_graph.retrieval import PAPER_FIELDS, SIGNS, Where, read_where, spell_field
from deepera_graph.settings.ranges import suggest_name

Undated = Literal["keep", "drop"]
_N_NEAR = 3
_LISTS = ("venues", "not_venues", "hide")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Limits that hold in every search, lookup, title match and traversal alike.

    What is out of scope looks as if it were not in the base: it is not found, cannot be looked up,
    and nothing leads to it or on from it.

    Attributes:
        year_from: Earliest year of publication, inclusive.
        year_to: Latest year, inclusive.
        venues: Only these, in any case; a name that the base does not know is an error.
        not_venues: None of these.
        hide: Ids of papers that are not to be seen, by any of their ids; unknown ones do no harm.
        as_of: Date of asking, ``2021``, ``2021-03`` or ``2021-03-15``: nothing later is seen.
        undated: What becomes of papers whose year or date is not known, or too vague to compare,
            where a limit asks for it: ``keep`` them unless they are known to break it, or ``drop``
            them unless they are known to meet it.

    Raises:
        SettingsError: A limit is no year or date, or limits contradict each other.
    """

    year_from: int | None = None
    year_to: int | None = None
    venues: tuple[str, ...] = ()
    not_venues: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    as_of: str = ""
    undated: Undated = "keep"

    def __post_init__(self) -> None:
        for name in ("year_from", "year_to"):
            _check_year(name, getattr(self, name))
        for name in _LISTS:
            object.__setattr__(self, name, _read_names(name, getattr(self, name)))
        object.__setattr__(self, "hide", tuple(dict.fromkeys(map(normalize_id, self.hide))))
        if self.as_of:
            date = read_date(self.as_of)
            if not date or len(date) < len(str(self.as_of).strip()):
                raise SettingsError(
                    f"as_of must be a date such as 2021, 2021-03 or 2021-03-15, got {self.as_of!r}"
                )
            object.__setattr__(self, "as_of", date)
        if self.undated not in get_args(Undated):
            raise SettingsError(f"undated must be keep or drop, got {self.undated!r}")
        if self.year_from and self.year_to and self.year_from > self.year_to:
            years = f"from {self.year_from} and up to {self.year_to}"
            raise SettingsError(f"no year is {years}: year_from is after year_to")

    @property
    def is_open(self) -> bool:
        """Whether it lets everything through."""
        return self == Scope(undated=self.undated)

    @property
    def last_day(self) -> int | None:
        """The last day of the date of asking as a number, e.g. 20210331; None without one."""
        return days_of(self.as_of)[1] if self.as_of else None

    def allows(self, paper: Paper, *, ids: Collection[str] = ()) -> bool:
        """Tell whether a paper may be seen; *ids* are further ones that it is known by."""
        known = {paper.id, paper.doi, paper.arxiv, *ids}
        if not known.isdisjoint(self.hide):
            return False
        venue = venue_key(paper.venue)
        if self.venues and venue not in map(venue_key, self.venues):
            return False
        if venue in map(venue_key, self.not_venues):
            return False
        return self._allows_year(paper.year) and self._allows_days(paper.days)

    def _allows_year(self, year: int | None) -> bool:
        if self.year_from is None and self.year_to is None:
            return True
        if year is None:
            return self.undated == "keep"
        return (self.year_from or 0) <= year <= (self.year_to or 9999)

    def _allows_days(self, days: tuple[int, int] | None) -> bool:
        if self.last_day is None:
            return True
        if days is None:
            return self.undated == "keep"
        return days[0 if self.undated == "keep" else 1] <= self.last_day

    def to_dict(self) -> dict[str, Any]:
        """Return the limits that are set, as JSON has them."""
        return list_set_fields(self)

    @classmethod
    def of(cls, where: Where | None) -> "Scope":
        """Return the scope of conditions, in the language of `deepera_graph.retrieval`.

        ``year>=2015``, ``journal=NAME`` or a list, ``journal!=NAME``, ``id!=ID``,
        ``date<=2021-08`` and ``undated=drop``; an object may have the names of attributes, too.

        Raises:
            SettingsError: Papers cannot be limited so, or a limit is out of range.
        """
        limits: dict[str, Any] = {}
        for name, value in read_where(where).items():
            if spell_field(name)[0] not in ("year", "date", "journal", "id"):
                limits[name] = value
                continue
            signs = value if isinstance(value, Mapping) else {"": value}
            for sign, one in signs.items():
                limit, read = _find_limit(spell_field(name)[0], sign, one)
                stricter = {"year_from": max, "year_to": min}.get(limit)
                known = limits.get(limit)
                limits[limit] = stricter(known, read) if stricter and known else read
                if (limit, sign) == ("year_from", ""):
                    limits["year_to"] = read
        return cls.from_dict(limits)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Scope":
        """Return the scope of `to_dict`.

        Raises:
            SettingsError: There is no such limit, or one is out of range.
        """
        names = [one.name for one in fields(cls)]
        for name in plain:
            if name not in names:
                hint = suggest_name(name, [*names, *PAPER_FIELDS])
                hint = hint or f"there are {', '.join(PAPER_FIELDS)}"
                raise SettingsError(f"papers have no field {name!r} to limit them by; {hint}")
        return cls(**plain)


_LIMITS: Mapping[tuple[str, str], str] = {
    ("year", ""): "year_from",
    ("year", "gte"): "year_from",
    ("year", "gt"): "year_from",
    ("year", "lte"): "year_to",
    ("year", "lt"): "year_to",
    ("date", "lte"): "as_of",
    ("journal", ""): "venues",
    ("journal", "not"): "not_venues",
    ("id", "not"): "hide",
}
_STEPS = {"gt": 1, "lt": -1}


def _find_limit(field: str, sign: str, value: Any) -> tuple[str, Any]:
    """Return the limit that a condition sets, and to what; a date that is a number is a year."""
    field = "year" if field == "date" and isinstance(value, int) else field
    limit = _LIMITS.get((field, sign))
    if limit is None:
        signs = [written for written, name in SIGNS.items() if (field, name) in _LIMITS]
        possible = " or ".join(f"{field}{one}" for one in signs)
        [written] = [one for one, name in SIGNS.items() if name == sign] or [f" {sign} "]
        raise SettingsError(
            f"papers can be limited by {possible}, not by {field}{written}{value!r:.80}"
        )
    if field == "year" and sign in _STEPS:
        _check_year(limit, value)
        return limit, value + _STEPS[sign]
    if limit in _LISTS:
        return limit, [*map(str, value)] if isinstance(value, list | tuple) else [str(value)]
    return limit, str(value) if limit == "as_of" else value


def check_venues(scope: Scope, known: Mapping[str, str]) -> None:
    """Raise `SettingsError` for a venue that is not *known*, keys to names, with the nearest."""
    for name in (*scope.venues, *scope.not_venues):
        key = venue_key(name)
        if key in known:
            continue
        close = get_close_matches(key, known, n=_N_NEAR, cutoff=0.5)
        near = dict.fromkeys(
            [*close, *sorted(one for one in known if key and key in one)[:_N_NEAR]]
        )
        hint = "; near it: " + ", ".join(known[one] for one in [*near][:_N_NEAR]) if near else ""
        raise SettingsError(f"no paper of this base is from the venue {name!r}{hint}")


def _check_year(name: str, value: Any) -> None:
    is_year = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 9999
    if value is not None and not is_year:
        raise SettingsError(f"{name} must be a year such as 2021, got {value!r}")


def _read_names(name: str, value: Any) -> tuple[str, ...]:
    """Return names as a tuple: sets in order of the alphabet, so that equal scopes look equal."""
    if isinstance(value, str) or not isinstance(value, Collection):
        raise SettingsError(f"{name} must be a list of names, got {value!r:.80}")
    for one in value:
        if not isinstance(one, str) or not one.strip():
            raise SettingsError(f"{name} must be a list of names, got {one!r:.80} among them")
        if any(unicodedata.category(letter) == "Cs" for letter in one):
            raise SettingsError(f"{name} has a name that is no text: {one!r:.80}")
    return tuple(sorted(value) if isinstance(value, set | frozenset) else value)


T_co = TypeVar("T_co", covariant=True)
SearchMode = Literal["sparse", "dense", "hybrid"]
SearchStatus = Literal["ok", "empty", "no_words"]
TitleStatus = Literal["exact", "near", "none", "no_words"]
NeighbourStatus = Literal["ok", "empty", "unknown"]
Way = Literal["references", "citations"]  # along which a paper is followed


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

    def with_papers(self, papers: Sequence[Paper]) -> "Hits":
        """Return the same page with other copies of its papers."""
        hits = (replace(one, paper=paper) for one, paper in zip(self.hits, papers, strict=True))
        return replace(self, hits=tuple(hits))

    @property
    def _listed(self) -> tuple[Hit, ...]:
        return self.hits

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        plain = {name: getattr(self, name) for name in ("status", "mode", "offset", "more")}
        return {**plain, "hits": [one.to_dict() for one in self.hits]}


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

    def with_papers(self, papers: Sequence[Paper]) -> "Neighbours":
        """Return the same page with other copies of its papers."""
        return replace(self, papers=tuple(papers))

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        names = ("status", "total", "outside", "offset", "more")
        plain = {name: getattr(self, name) for name in names}
        return {**plain, "papers": [one.to_dict() for one in self.papers]}


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

    @property
    def papers(self) -> tuple[Paper, ...]:
        """The paper, if there is one."""
        return () if self.paper is None else (self.paper,)

    def with_papers(self, papers: Sequence[Paper]) -> "TitleMatch":
        """Return the same match with another copy of its paper."""
        return replace(self, paper=next(iter(papers), None))

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "status": self.status,
            "similarity": self.similarity,
            "paper": None if self.paper is None else self.paper.to_dict(),
        }


def to_json(plain: Any) -> str:
    """Return plain data as the one JSON text that every way of asking gives."""
    return web.to_json(plain).decode()
