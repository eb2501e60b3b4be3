"""The file of a base of papers: one SQLite database with texts, words, ids and citations.

The modules beside it write it, search it by words and vectors, and check it. Readers take
connections of their own that cannot write, so that many threads search at once, also while another
process adds papers.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from deepera_graph.errors import MissingStoreError, StoreError
from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.papers.paper import Paper, venue_key
from deepera_graph.papers.results import Scope
from deepera_graph.stores.sqlite import FileKind, connect, connect_reader

VECTORS = ".vectors"  # added to the name of the file
W_TITLE, W_ABSTRACT = 2.0, 1.0  # weights of BM25
_CACHE_KIB = 32_768
_MMAP = 1 << 30
_BUSY_MS = 20_000
_AT_ONCE = 500
_LISTED = "(SELECT value FROM json_each(?))"
PAPERS = FileKind(
    name="base of papers",
    advice="build it again from its sources",
    application_id=0x64707270,  # "dprp"
    form=1,
    tables=tuple(Path(__file__).with_name("tables.sql").read_text("utf-8").strip().split(";\n")),
    is_private=False,
)
_COLUMNS = [one.name for one in fields(Paper) if one.name != "paper_status"]
_LISTS = ("authors", "categories")
_PAPER = ", ".join(f"papers.{name}" for name in _COLUMNS)


class ScopeCondition(NamedTuple):
    """A scope as a condition on the table `scopes`, and its values."""

    condition: str
    values: tuple[Any, ...]


class Venues(NamedTuple):
    """The venues of a base: numbers and names by their keys."""

    numbers: dict[str, int]
    names: dict[str, str]


class PaperFile:
    """A base's file, opened for reading."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._free: list[sqlite3.Connection] = []
        self._lock = Lock()
        self._closed = False
        check_there(path)
        with self.reading() as db:
            if PAPERS.is_new(db, self.path):
                raise PAPERS.refuse(self.path, "the file is empty")

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._closed = True
            while self._free:
                self._free.pop().close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection that cannot write, for one thread at a time."""
        if self._closed:
            raise StoreError(f"the base {str(self.path)!r} is closed")
        with PAPERS.wrap_errors(self.path):
            with self._lock:
                db = self._free.pop() if self._free else None
            if db is None:
                db = connect_reader(self.path)
                _tune(db)
            try:
                yield db
            finally:
                with self._lock:
                    if self._closed:
                        db.close()
                    else:
                        self._free.append(db)


def check_there(path: str | Path) -> None:
    """Raise `MissingStoreError` if there is no file of a base."""
    if not Path(path).is_file():
        raise MissingStoreError(
            f"no such base of papers: {str(path)!r}; deepera papers build makes one"
        )


def _tune(db: sqlite3.Connection) -> None:
    db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    db.execute(f"PRAGMA mmap_size = {_MMAP}")
    db.execute("PRAGMA temp_store = MEMORY")


def connect_writer(path: Path) -> sqlite3.Connection:
    """Open a file for writing, made if it is not there; commits are the caller's."""
    db = connect(path, PAPERS, timeout=_BUSY_MS / 1000)
    _tune(db)
    return db


def read_about(db: sqlite3.Connection, name: str, default: str = "") -> str:
    """Return what a base says about itself."""
    found = db.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
    return default if found is None else str(found[0])


def write_about(db: sqlite3.Connection, name: str, value: str) -> None:
    """Have a base say something about itself."""
    db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))


def read_venues(db: sqlite3.Connection) -> Venues:
    """Return all venues that papers are from."""
    rows = db.execute("SELECT v, key, name FROM venues ORDER BY v").fetchall()
    return Venues({key: v for v, key, _ in rows}, {key: name for _, key, name in rows if key})


def find_number(db: sqlite3.Connection, id: str) -> int | None:
    """Return the number of the paper with an id, of whatever kind."""
    found = db.execute("SELECT n FROM ids WHERE id = ?", (normalize_id(id),)).fetchone()
    return None if found is None else int(found[0])


def find_numbers(db: sqlite3.Connection, ids: Iterable[str]) -> set[int]:
    """Return the numbers of the papers with any of these ids."""
    found = db.execute(
        f"SELECT n FROM ids WHERE id IN {_LISTED}",
        (json.dumps([normalize_id(one) for one in ids]),),
    )
    return {n for (n,) in found}


def build_limits(db: sqlite3.Connection, scope: Scope, venues: Venues) -> ScopeCondition:
    """Return a scope as a condition of SQL; hidden papers are hidden by whatever id."""
    keeps = scope.undated == "keep"
    day = "scopes.first" if keeps else "scopes.last"
    parts: list[tuple[str, Any]] = []
    for condition, column, value in (
        ("{} >= ?", "scopes.year", scope.year_from),
        ("{} <= ?", "scopes.year", scope.year_to),
        ("{} <= ?", day, scope.last_day),
    ):
        if value is not None:
            told = condition.format(column)
            parts.append((f"({told} OR {column} IS NULL)" if keeps else told, value))
    for names, how in ((scope.venues, "IN"), (scope.not_venues, "NOT IN")):
        if names:
            numbers = [venues.numbers[venue_key(name)] for name in names]
            parts.append((f"scopes.venue {how} {_LISTED}", json.dumps(numbers)))
    if hidden := find_numbers(db, scope.hide):
        parts.append((f"scopes.n NOT IN {_LISTED}", json.dumps(sorted(hidden))))
    return ScopeCondition(
        " AND ".join(condition for condition, _ in parts), tuple(value for _, value in parts)
    )


def rank_words(
    db: sqlite3.Connection, match: str, k: int, limits: ScopeCondition
) -> list[tuple[float, int]]:
    """Return score and number of the best *k* papers for a query of FTS5, and of their ties."""
    # Higher scores are better. A limit is a join: as a subquery it costs a hundred times as much,
    # since SQLite then asks the index once for every paper within it (measured).
    where = f"AND {limits.condition}" if limits.condition else ""
    join = "CROSS JOIN scopes ON scopes.n = words.rowid" if limits.condition else ""
    sql = (
        f"SELECT bm25(words, {W_TITLE}, {W_ABSTRACT}) AS b, words.rowid FROM words {join} "
        f"WHERE words MATCH ? {where} ORDER BY b LIMIT ?"
    )
    n = k + 16
    while True:
        rows = db.execute(sql, (match, *limits.values, n)).fetchall()
        if len(rows) < n or rows[k - 1][0] != rows[-1][0]:
            break
        n *= 4  # the best k end within a tie that goes on
    if len(rows) > k:
        rows = [row for row in rows if row[0] <= rows[k - 1][0]]
    return [(-score, number) for score, number in rows]


def count_papers(db: sqlite3.Connection) -> int:
    """Return how many papers there are."""
    return int(db.execute("SELECT count(*) FROM scopes").fetchone()[0])


def count_vectors(db: sqlite3.Connection) -> int:
    """Return how many papers have a vector."""
    return int(db.execute("SELECT count(*) FROM vectors").fetchone()[0])


def count_word(db: sqlite3.Connection, word: str) -> int:
    """Return how many papers have a word, in any of its forms."""
    found = db.execute("SELECT count(*) FROM words WHERE words MATCH ?", (f'"{word}"',))
    return int(found.fetchone()[0])


def read_ids(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, str]:
    """Return the main ids of papers by their numbers."""
    return dict(_read_rows(db, "id", numbers))


def read_papers(db: sqlite3.Connection, numbers: Sequence[int]) -> list[Paper]:
    """Return papers by their numbers, in this order."""
    found = {row[0]: to_paper(row[1:]) for row in _read_rows(db, _PAPER, numbers)}
    return [found[n] for n in numbers if n in found]


def _read_rows(db: sqlite3.Connection, columns: str, numbers: Sequence[int]) -> Iterator[Any]:
    for start in range(0, len(numbers), _AT_ONCE):
        some = json.dumps(list(numbers[start : start + _AT_ONCE]))
        yield from db.execute(f"SELECT n, {columns} FROM papers WHERE n IN {_LISTED}", (some,))


def to_paper(row: Sequence[Any]) -> Paper:
    """Return the paper of a row of the table, without its number."""
    plain = dict(zip(_COLUMNS, row, strict=True))
    lists = {name: tuple(json.loads(plain[name])) for name in _LISTS}
    return Paper(**{**plain, **lists})


def to_row(paper: Paper) -> tuple[Any, ...]:
    """Return a paper as a row of the table, without its number."""
    plain = paper.to_dict()
    lists = {name: json.dumps(plain[name], ensure_ascii=False) for name in _LISTS}
    return tuple({**plain, **lists}[name] for name in _COLUMNS)


def keep_allowed(
    db: sqlite3.Connection, numbers: Iterable[int], limits: ScopeCondition
) -> list[int]:
    """Return the papers that are in scope, in the order they come."""
    asked = list(numbers)
    if not limits.condition or not asked:
        return asked
    rows = db.execute(
        f"SELECT n FROM scopes WHERE n IN {_LISTED} AND {limits.condition}",
        (json.dumps(asked), *limits.values),
    )
    allowed = {n for (n,) in rows}
    return [n for n in asked if n in allowed]


def list_allowed(db: sqlite3.Connection, limits: ScopeCondition, most: int) -> list[int] | None:
    """Return all papers that are in scope, if a scope leaves no more than *most*; else None."""
    if not limits.condition:
        return None
    rows = db.execute(
        f"SELECT n FROM scopes WHERE {limits.condition} LIMIT ?", (*limits.values, most + 1)
    ).fetchall()
    return None if len(rows) > most else [n for (n,) in rows]


def list_references(
    db: sqlite3.Connection, number: int, limits: ScopeCondition
) -> tuple[list[int], int]:
    """Return what a paper cites, as it lists them, and how many the base does not have."""
    rows = db.execute(
        "SELECT ids.n FROM refs LEFT JOIN ids ON ids.id = refs.cited "
        "WHERE citing = ? ORDER BY place",
        (number,),
    ).fetchall()
    cited = dict.fromkeys(n for (n,) in rows if n is not None and n != number)
    return keep_allowed(db, cited, limits), sum(n is None for (n,) in rows)


def list_citations(db: sqlite3.Connection, number: int, limits: ScopeCondition) -> list[int]:
    """Return what cites a paper: newest first, those without a date last, equal ones by id."""
    where = f"AND {limits.condition}" if limits.condition else ""
    rows = db.execute(
        "SELECT DISTINCT refs.citing, scopes.first, papers.id FROM ids "
        "JOIN refs ON refs.cited = ids.id JOIN scopes ON scopes.n = refs.citing "
        "JOIN papers ON papers.n = refs.citing "
        f"WHERE ids.n = ? AND refs.citing != ids.n {where} "
        "ORDER BY scopes.first IS NULL, scopes.first DESC, papers.id",
        (number, *limits.values),
    )
    return [row[0] for row in rows]


def list_without_vectors(db: sqlite3.Connection, n: int) -> list[tuple[int, Paper]]:
    """Return the first *n* papers that have no vector, with their numbers."""
    rows = db.execute(
        "SELECT n FROM papers WHERE n NOT IN (SELECT n FROM vectors) ORDER BY n LIMIT ?", (n,)
    )
    numbers = [number for (number,) in rows]
    return list(zip(numbers, read_papers(db, numbers), strict=True))


def describe_file(db: sqlite3.Connection) -> Mapping[str, Any]:
    """Return what a base holds, in numbers."""
    counts = {
        "papers": "SELECT count(*) FROM papers",
        "with_abstract": "SELECT count(*) FROM papers WHERE abstract != ''",
        "without_year": "SELECT count(*) FROM scopes WHERE year IS NULL",
        "references": "SELECT count(*) FROM refs",
        "references_outside": (
            "SELECT count(*) FROM refs LEFT JOIN ids ON ids.id = refs.cited WHERE ids.n IS NULL"
        ),
        "venues": "SELECT count(*) FROM venues WHERE key != ''",
        "merged": "SELECT count(*) FROM merges",
        "vectors": "SELECT count(*) FROM vectors",
    }
    found: dict[str, Any] = {name: db.execute(sql).fetchone()[0] for name, sql in counts.items()}
    first, last = db.execute("SELECT min(year), max(year) FROM scopes").fetchone()
    sources = db.execute("SELECT name, finished FROM sources ORDER BY run").fetchall()
    vectors = json.loads(read_about(db, "vectors", "{}"))
    return {
        **found,
        "embeddings": vectors.get("embeddings", ""),
        "vectors_url": vectors.get("url", ""),
        "years": [first, last],
        "sources": [name for name, _ in sources],
        "unfinished": [name for name, finished in sources if not finished],
    }
