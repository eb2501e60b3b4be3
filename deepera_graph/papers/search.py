"""Searching a base that is here: by words, by meaning, and both joined by rank."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from deepera_graph.errors import SettingsError
from deepera_graph.papers.paper import Paper
from deepera_graph.papers.results import Hit, Hits, Neighbours, SearchMode, TitleMatch
from deepera_graph.papers.scope import Scope, check_venues
from deepera_graph.papers.store import (
    Limits,
    PaperFile,
    Venues,
    build_limits,
    count_word,
    describe_file,
    find_number,
    keep_allowed,
    list_citations,
    list_references,
    rank_words,
    read_about,
    read_ids,
    read_papers,
    read_venues,
)
from deepera_graph.papers.titles import match_title
from deepera_graph.papers.words import MOST_WORDS, match_any, search_words

RRF_K = 60
DEPTH = 100  # of each ranking that is joined; beyond it the rankings take turns
_MOST_COUNTS = 200_000


class Ranked(NamedTuple):
    """A paper in a ranking: its score, number, and rank by each way that found it."""

    score: float
    number: int
    by: Mapping[str, int]


class LocalPapers:
    """A base in a file of this machine; see `deepera_graph.papers.base.PaperBase`."""

    def __init__(self, path: str | Path, *, embeddings: Any = None) -> None:
        self._file = PaperFile(path)
        self._embeddings = embeddings
        self._state = _State("")

    @property
    def place(self) -> str:
        """Where the base is."""
        return str(self._file.path)

    @property
    def has_vectors(self) -> bool:
        """Whether it can be searched by meaning."""
        with self._file.reading() as db:
            return bool(read_about(db, "vectors"))

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def search(
        self, query: str, *, mode: SearchMode | None, k: int, scope: Scope, offset: int
    ) -> Hits:
        """Return a page of a ranking."""
        with self._reading(scope) as (db, state, limits):
            mode = mode or "sparse"
            if mode != "sparse":
                raise SettingsError(f"{self.place!r} has no vectors")
            words = search_words(query)
            if not words:
                return Hits("no_words", mode, offset=offset)
            ranked = self._rank_words(db, state, words, offset + k + 1, limits)
            return _cut(db, ranked, mode, k, offset)

    def get(self, id: str, *, scope: Scope) -> Paper | None:
        """Return a paper."""
        with self._reading(scope) as (db, _, limits):
            number = find_number(db, id)
            kept = keep_allowed(db, [] if number is None else [number], limits)
            return next(iter(read_papers(db, kept)), None)

    def title(self, title: str, *, scope: Scope) -> TitleMatch:
        """Return the paper that a title names."""
        with self._reading(scope) as (db, state, limits):
            return match_title(db, title, limits, lambda word: state.count(db, word))

    def references(self, id: str, *, k: int, scope: Scope, offset: int) -> Neighbours:
        """Return what a paper cites."""
        with self._reading(scope) as (db, _, limits):
            number = self._find_allowed(db, id, limits)
            if number is None:
                return Neighbours("unknown", offset=offset)
            found, outside = list_references(db, number, limits)
            return _page(db, found, k, offset, outside=outside)

    def citations(self, id: str, *, k: int, scope: Scope, offset: int) -> Neighbours:
        """Return what cites a paper."""
        with self._reading(scope) as (db, _, limits):
            number = self._find_allowed(db, id, limits)
            if number is None:
                return Neighbours("unknown", offset=offset)
            return _page(db, list_citations(db, number, limits), k, offset)

    def describe(self) -> dict[str, Any]:
        """Return what the base holds, in numbers."""
        with self._reading(Scope()) as (db, _, _):
            return dict(describe_file(db))

    def venues(self) -> list[str]:
        """Return all venues, in alphabetical order."""
        with self._reading(Scope()) as (_, state, _):
            return sorted(state.venues.names.values())

    @contextmanager
    def _reading(self, scope: Scope) -> Iterator[tuple[sqlite3.Connection, "_State", Limits]]:
        """Lend one state of the base: what is committed meanwhile is seen by the next call."""
        with self._file.reading() as db:
            db.execute("BEGIN")
            try:
                state = self._current(db)
                check_venues(scope, state.venues.names)
                yield db, state, build_limits(db, scope, state.venues)
            finally:
                db.execute("COMMIT")

    def _current(self, db: sqlite3.Connection) -> "_State":
        generation = read_about(db, "generation", "0")
        state = self._state
        if state.generation != generation:
            state = self._state = _State(generation, read_venues(db))
        return state

    @staticmethod
    def _find_allowed(db: sqlite3.Connection, id: str, limits: Limits) -> int | None:
        number = find_number(db, id)
        kept = keep_allowed(db, [] if number is None else [number], limits)
        return kept[0] if kept else None

    @staticmethod
    def _rank_words(
        db: sqlite3.Connection, state: "_State", words: Sequence[str], k: int, limits: Limits
    ) -> list[Ranked]:
        """Rank by BM25; equal scores by id."""
        if len(words) > MOST_WORDS:
            known = [word for word in words if state.count(db, word)]
            rarest = sorted(known, key=lambda word: state.count(db, word))[:MOST_WORDS]
            words = [word for word in known if word in {*rarest}]
        if not words:
            return []
        rows = rank_words(db, match_any(words), k, limits)
        ids = read_ids(db, [number for _, number in rows])
        rows.sort(key=lambda row: (-row[0], ids[row[1]]))
        return [
            Ranked(score, number, {"sparse": rank})
            for rank, (score, number) in enumerate(rows, start=1)
        ]


class _State:
    """What is known of one state of a base, until papers are added."""

    def __init__(self, generation: str, venues: Venues | None = None) -> None:
        self.generation = generation
        self.venues = venues or Venues({}, {})
        self._counts: dict[str, int] = {}

    def count(self, db: sqlite3.Connection, word: str) -> int:
        """Return how many papers have a word."""
        found = self._counts.get(word)
        if found is None:
            found = count_word(db, word)
            if len(self._counts) < _MOST_COUNTS:
                self._counts[word] = found
        return found


def _cut(
    db: sqlite3.Connection, ranked: Sequence[Ranked], mode: SearchMode, k: int, offset: int
) -> Hits:
    shown = ranked[offset : offset + k]
    papers = read_papers(db, [one.number for one in shown])
    hits = tuple(
        Hit(paper, rank, dict(one.by), round(one.score, 6))
        for rank, (one, paper) in enumerate(zip(shown, papers, strict=True), start=offset + 1)
    )
    more = len(ranked) > offset + k
    return Hits("ok" if hits else "empty", mode, hits, offset, more)


def _page(
    db: sqlite3.Connection, found: Sequence[int], k: int, offset: int, *, outside: int = 0
) -> Neighbours:
    papers = tuple(read_papers(db, found[offset : offset + k]))
    more = len(found) > offset + k
    status = "ok" if papers else "empty"
    return Neighbours(status, papers, len(found), outside, offset, more)


def fuse(rankings: Mapping[str, Iterable[str]]) -> dict[str, float]:
    """Return the fused score of each id: the sum of ``1 / (60 + rank)`` over the rankings.

    Source:
        Cormack, Clarke and Buettcher (2009), Reciprocal Rank Fusion outperforms Condorcet and
        individual Rank Learning Methods, with their k = 60.
    """
    scores: dict[str, float] = {}
    for ranking in rankings.values():
        for rank, id in enumerate(ranking, start=1):
            scores[id] = scores.get(id, 0.0) + 1 / (RRF_K + rank)
    return scores
