"""Searching a base that is here: by words, by meaning, and both joined by rank."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.judges.embeddings import LOCAL, EvidenceEmbeddings, find_embeddings
from deepera_graph.papers import library
from deepera_graph.papers.library import PaperFile, ScopeCondition
from deepera_graph.papers.library.vectors import (
    RowsHere,
    VectorsInfo,
    check_embeddings,
    embed_query,
    open_rows,
    vectors_path,
)
from deepera_graph.papers.library.words import (
    MOST_WORDS,
    match_any,
    match_gated,
    match_title,
    search_words,
)
from deepera_graph.papers.paper import Paper
from deepera_graph.papers.results import (
    Hit,
    Hits,
    Neighbours,
    Scope,
    SearchMode,
    TitleMatch,
    Way,
    check_venues,
)
from deepera_graph.retrieval.fusion import CORMACK_K, sum_reciprocals
from deepera_graph.stores.embeddings import Floats

if TYPE_CHECKING:
    from deepera_graph.papers.library.vectors_kept import VectorServer

DEPTH = 100  # of each ranking that is joined
LARGE = 60_000  # papers; a search by words scores all that have any in a smaller base
MOST_CANDIDATES = 40_000  # papers that a search by words scores, if it can do with fewer than all
_MOST_COUNTS = 200_000
MOST_NAMED = 10_000  # papers of a narrow scope that a server of vectors is told


class Ranked(NamedTuple):
    """A paper in a ranking: its score, number, and rank by each way that found it."""

    score: float
    number: int
    by: Mapping[str, int]


class LocalPapers:
    """A base in a file of this machine; see `deepera_graph.papers.base.PaperBase`."""

    def __init__(self, path: str | Path, *, embeddings: Any = None) -> None:
        self._file = PaperFile(path)
        self._embeddings = find_embeddings(embeddings)
        self._state: _State | None = None
        self._loading = Lock()
        self._server: VectorServer | None = None
        self._is_checked = False

    @property
    def place(self) -> str:
        """Where the base is."""
        return str(self._file.path)

    @property
    def has_vectors(self) -> bool:
        """Whether it can be searched by meaning."""
        with self._file.reading() as db:
            return bool(library.read_about(db, "vectors"))

    def close(self) -> None:
        """Let go of the file, and of the server of its vectors."""
        self._file.close()
        if self._server is not None:
            self._server.close()

    def search(
        self, query: str, *, mode: SearchMode | None, k: int, scope: Scope, offset: int
    ) -> Hits:
        """Return a page of a ranking."""
        with self._reading(scope) as (db, state, limits):
            mode = mode or ("hybrid" if state.vectors else "sparse")
            if mode != "sparse" and not state.vectors:
                raise SettingsError(
                    f"the base {self.place!r} has no vectors to search by meaning; build it again "
                    "with embeddings, or search with mode='sparse'"
                )
            words = search_words(query)
            if not words:
                return Hits("no_words", mode, offset=offset)
            seek = _Seek(db, state, query, words, limits)
            if mode == "sparse":
                ranked = seek.by_words(offset + k + 1)
            elif mode == "dense":
                ranked = self._by_meaning(seek, offset + k + 1)
            else:
                ranked = self._by_both(seek, offset + k + 1)
            shown = ranked[offset : offset + k]
            papers = library.read_papers(db, [one.number for one in shown])
            hits = tuple(
                Hit(paper, rank, dict(one.by), round(one.score, 6))
                for rank, (one, paper) in enumerate(
                    zip(shown, papers, strict=True), start=offset + 1
                )
            )
            more = len(ranked) > offset + k
            return Hits("ok" if hits else "empty", mode, hits, offset, more)

    def get(self, id: str, *, scope: Scope) -> Paper | None:
        """Return a paper."""
        with self._reading(scope) as (db, _, limits):
            number = self._find_allowed(db, id, limits)
            return None if number is None else library.read_papers(db, [number])[0]

    def title(self, title: str, *, scope: Scope) -> TitleMatch:
        """Return the paper that a title names."""
        with self._reading(scope) as (db, state, limits):
            return match_title(db, title, limits, lambda word: state.count(db, word))

    def follow(self, way: Way, id: str, *, k: int, scope: Scope, offset: int) -> Neighbours:
        """Return what a paper cites, or what cites it."""
        with self._reading(scope) as (db, _, limits):
            number = self._find_allowed(db, id, limits)
            if number is None:
                return Neighbours("unknown", offset=offset)
            if way == "citations":
                found, outside = library.list_citations(db, number, limits), 0
            else:
                found, outside = library.list_references(db, number, limits)
            papers = tuple(library.read_papers(db, found[offset : offset + k]))
            return Neighbours(
                "ok" if papers else "empty",
                papers,
                total=len(found),
                outside=outside,
                offset=offset,
                more=offset + len(papers) < len(found),
            )

    def describe(self) -> dict[str, Any]:
        """Return what the base holds, in numbers."""
        with self._reading(Scope()) as (db, state, _):
            return state.describe(db)

    def venues(self) -> list[str]:
        """Return all venues, in alphabetical order."""
        with self._reading(Scope()) as (_, state, _):
            return sorted(state.venues.names.values())

    @contextmanager
    def _reading(
        self, scope: Scope
    ) -> Iterator[tuple[sqlite3.Connection, "_State", ScopeCondition]]:
        """Lend one state of the base: what is committed meanwhile is seen by the next call."""
        with self._file.reading() as db:
            db.execute("BEGIN")
            try:
                generation = library.read_about(db, "generation", "0")
                state = self._state
                if state is None or state.generation != generation:
                    state = self._state = _State(db, generation)
                check_venues(scope, state.venues.names)
                yield db, state, library.build_limits(db, scope, state.venues)
            finally:
                db.execute("COMMIT")

    @staticmethod
    def _find_allowed(db: sqlite3.Connection, id: str, limits: ScopeCondition) -> int | None:
        number = library.find_number(db, id)
        kept = library.keep_allowed(db, [] if number is None else [number], limits)
        return kept[0] if kept else None

    def _by_meaning(self, seek: "_Seek", n: int) -> list[Ranked]:
        """Rank by the cosine of vectors; equal ones by id."""
        rows = self._load(seek)
        query = embed_query(self._embeddings, seek.query)
        found: list[tuple[float, int]] = []
        for best in rows.rank(query, seek):
            scores = {number: score for score, number in best}
            kept = library.keep_allowed(seek.db, scores, seek.limits)
            found = [(scores[number], number) for number in kept]
            if len(found) > n:
                break
        return _in_order(seek.db, found, "dense")

    def _by_both(self, seek: "_Seek", n: int) -> list[Ranked]:
        """Join both rankings; what neither has among its first comes after, by its better rank."""
        depth = max(DEPTH, n)
        rankings = {"sparse": seek.by_words(depth), "dense": self._by_meaning(seek, depth)}
        ranks: dict[int, dict[str, int]] = {}
        for way, ranked in rankings.items():
            for rank, one in enumerate(ranked, start=1):
                ranks.setdefault(one.number, {})[way] = rank
        ids = library.read_ids(seek.db, list(ranks))
        joined, rest = list[tuple[float, str, Ranked]](), list[tuple[float, str, Ranked]]()
        for number, by in ranks.items():
            first = {way: rank for way, rank in by.items() if rank <= DEPTH}
            if first:
                score = sum_reciprocals(first.values(), k=CORMACK_K)
                joined.append((-score, ids[number], Ranked(score, number, first)))
            else:
                rank, way = min((rank, way) for way, rank in by.items())
                score = sum_reciprocals([rank], k=CORMACK_K)
                rest.append((rank, ids[number], Ranked(score, number, {way: rank})))
        return [one for _, _, one in (*sorted(joined), *sorted(rest))]

    def _load(self, seek: "_Seek") -> "_Rows":
        """Return the vectors, wherever they are."""
        state = seek.state
        with self._loading:
            if state.rows is None:
                info = VectorsInfo.from_json(state.vectors)
                if self._embeddings is None and info.embeddings == LOCAL:
                    self._embeddings = EvidenceEmbeddings()
                if self._embeddings is None:
                    raise SettingsError(
                        f"the vectors of {self.place!r} were made by {info.embeddings!r}: open the "
                        "base with these embeddings, or search with mode='sparse'"
                    )
                is_new = not self._is_checked
                if is_new:
                    check_embeddings(info, self._embeddings, self.place)
                places = dict(seek.db.execute("SELECT n, place FROM vectors").fetchall())
                if info.url:
                    state.rows = _RowsOnServer(self._connect(info, len(places)), {*places})
                else:
                    rows = open_rows(vectors_path(self._file.path), info, checksum=is_new)
                    state.rows = RowsHere(rows, places)
                self._is_checked = True
        return state.rows

    def _connect(self, info: VectorsInfo, n: int) -> "VectorServer":
        """Return the server of the vectors, which is asked once whether it has them."""
        from deepera_graph.papers.library.vectors_kept import open_server  # noqa: PLC0415 - seldom needed

        wanted = (info.url, info.base)
        if self._server is None or (self._server.url, self._server.info.base) != wanted:
            with _suggesting_words():
                self._server = open_server(info, n)
        return self._server


class _Seek(NamedTuple):
    db: sqlite3.Connection
    state: "_State"
    query: str
    words: Sequence[str]
    limits: ScopeCondition

    def by_words(self, n: int) -> list[Ranked]:
        """Rank by BM25, equal scores by id; first what has one of the rarer words."""
        # In a base that is `LARGE`, what has none but frequent words comes after, so that it need
        # not be scored for a page: of 108 894 papers a question of LitSearch takes 61 ms (p95), and
        # not 118, and Recall at 100 is .025 less, in the mean of four sets of questions.
        words = self._rarest() if len(self.words) > MOST_WORDS else self.words
        gate = self._gate(words)
        if not words or len(gate) == len(words):
            rows = library.rank_words(self.db, match_any(words), n, self.limits) if words else []
            return _in_order(self.db, rows, "sparse")
        rows = library.rank_words(self.db, match_gated(gate, words), n, self.limits)
        first = _in_order(self.db, rows, "sparse")
        if len(rows) >= n:
            return first
        seen = {number for _, number in rows}
        whole = library.rank_words(self.db, match_any(words), n + len(rows), self.limits)
        rest = _in_order(self.db, [row for row in whole if row[1] not in seen], "sparse")
        ranks = enumerate(rest, start=len(first) + 1)
        return [*first, *(one._replace(by={"sparse": rank}) for rank, one in ranks)]

    def _gate(self, words: Sequence[str]) -> list[str]:
        """Return the rarest words, as many as give the candidates that a search may score."""
        if self.state.n_papers <= LARGE:
            return list(words)
        counts = {word: self.state.count(self.db, word) for word in words}
        gate: list[str] = []
        n_candidates = 0
        for word in sorted(words, key=lambda word: (counts[word], word)):
            n_candidates += counts[word]
            if n_candidates > MOST_CANDIDATES and any(counts[one] for one in gate):
                break
            gate.append(word)
        return gate

    def _rarest(self) -> list[str]:
        counts = {word: self.state.count(self.db, word) for word in self.words}
        known = [word for word in self.words if counts[word]]
        kept = set(sorted(known, key=lambda word: counts[word])[:MOST_WORDS])
        return [word for word in known if word in kept]


def _in_order(db: sqlite3.Connection, rows: list[tuple[float, int]], way: str) -> list[Ranked]:
    ids = library.read_ids(db, [number for _, number in rows])
    ordered = sorted(rows, key=lambda row: (-row[0], ids[row[1]]))
    return [
        Ranked(score, number, {way: rank}) for rank, (score, number) in enumerate(ordered, start=1)
    ]


class _RowsOnServer:
    """Vectors on a server; *numbers* are the papers whose vectors count."""

    def __init__(self, server: "VectorServer", numbers: Set[int]) -> None:
        self._server, self._numbers = server, numbers

    def rank(self, query: Floats, seek: _Seek) -> Iterator[list[tuple[float, int]]]:
        few = library.list_allowed(seek.db, seek.limits, MOST_NAMED)
        with _suggesting_words():
            for best in self._server.rank(query, few):
                yield [one for one in best if one[1] in self._numbers]


_Rows = RowsHere | _RowsOnServer


@contextmanager
def _suggesting_words() -> Iterator[None]:
    """Have an error of a server say that the base can still be searched by words."""
    try:
        yield
    except StoreError as error:
        told = f"{error}; search with mode='sparse', which needs no vectors"
        raise StoreError(told) from error


class _State:
    """What is known of one state of a base, until papers are added."""

    def __init__(self, db: sqlite3.Connection, generation: str) -> None:
        self.generation, self.n_papers = generation, library.count_papers(db)
        self.venues, self.vectors = library.read_venues(db), library.read_about(db, "vectors")
        self.rows: _Rows | None = None
        self._counts: dict[str, int] = {}
        self._about: Mapping[str, Any] = {}

    def describe(self, db: sqlite3.Connection) -> dict[str, Any]:
        self._about = self._about or library.describe_file(db)
        return deepcopy(dict(self._about))

    def count(self, db: sqlite3.Connection, word: str) -> int:
        found = self._counts.get(word)
        if found is None:
            found = library.count_word(db, word)
            if len(self._counts) < _MOST_COUNTS:
                self._counts[word] = found
        return found
