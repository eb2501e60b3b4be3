"""Papers into a base's file: new ones, later states of known ones, and the same paper once more."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_args

from deepera_graph.errors import StoreError
from deepera_graph.literature.paper_keys import (
    hash_title,
    main_title,
    may_name_paper,
    title_key,
)
from deepera_graph.papers.library import (
    PAPERS,
    VECTORS,
    connect_writer,
    read_about,
    to_paper,
    to_row,
    write_about,
)
from deepera_graph.papers.library.vectors_kept import drop_vectors
from deepera_graph.papers.paper import (
    Paper,
    PaperRecord,
    fill_paper,
    have_like_titles,
    may_be_same,
    venue_key,
)
from deepera_graph.settings.ranges import check_choice
from deepera_graph.stores.sqlite import connect_reader, leave_plain, side_files
from deepera_graph.text.jsonl import writing_alone

Merge = Literal["ids", "titles", "none"]
Outcome = Literal["added", "updated", "unchanged", "merged", "duplicate"]
_PLACEHOLDERS = ", ".join("?" * 14)
_INSERTS = {
    "papers": f"INSERT INTO papers VALUES ({_PLACEHOLDERS})",
    "scopes": "INSERT INTO scopes VALUES (?, ?, ?, ?, ?)",
    "words": "INSERT INTO words (rowid, title, abstract) VALUES (?, ?, ?)",
    "titles": "INSERT OR IGNORE INTO titles VALUES (?, ?, ?)",
    "refs": "INSERT OR IGNORE INTO refs VALUES (?, ?, ?)",
}
_UNINDEX = "INSERT INTO words (words, rowid, title, abstract) VALUES ('delete', ?, ?, ?)"
_OF_PAPERS = {  # by table the column with the number of a paper
    "papers": "n", "scopes": "n", "ids": "n", "titles": "n", "refs": "citing", "merges": "n",
    "vectors": "n",
}  # fmt: skip


class Known(NamedTuple):
    """A source that was read before, in whole or in part."""

    run: int
    done: int
    finished: bool
    report: dict[str, Any]


class Writer:
    """The one process that writes into a base; a batch is committed with the place it ends at.

    *merge* says when a record with a new id is the same paper as one that is there: ``ids``: they
    share a DOI, an arXiv id or another id; ``titles``: or a title of three words or more, and
    neither year nor authors speak against it; ``none``: never.
    """

    def __init__(self, path: str | Path, *, merge: Merge = "ids", overwrite: bool = False) -> None:
        check_choice("merge", merge, get_args(Merge))
        self.path, self._merge = Path(path), merge
        self._batch = _Batch()
        self._run = 0
        if not self.path.parent.is_dir():
            raise StoreError(f"no such folder: {str(self.path.parent)!r}")
        busy = f"another process is writing into the base {str(self.path)!r}; one at a time can"
        with ExitStack() as block:
            block.enter_context(writing_alone(self.path, busy, StoreError))
            if overwrite:
                _remove(self.path)
            with PAPERS.wrap_errors(self.path):
                self._db = connect_writer(self.path)
                self._next = self._one("SELECT coalesce(max(n), 0) + 1 FROM papers")
                self._venues = dict(self._db.execute("SELECT key, v FROM venues"))
            self._alone = block.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the file as it was committed last, readable on its own."""
        with suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        leave_plain(self._db)
        self._db.close()
        self._alone.close()

    def begin(self, identity: str, name: str) -> Known:
        """Begin a source, or go on with it; tell how many of its records are done."""
        with PAPERS.wrap_errors(self.path):
            row = self._db.execute(
                "SELECT run, done, finished, report FROM sources WHERE identity = ?", (identity,)
            ).fetchone()
            if row is None:
                run = self._one("SELECT coalesce(max(run), 0) + 1 FROM sources")
                with self._changing() as db:
                    known = (identity, run, name)
                    db.execute("INSERT INTO sources VALUES (?, ?, ?, 0, 0, '{}')", known)
                row = (run, 0, 0, "{}")
        self._run = row[0]
        return Known(row[0], row[1], bool(row[2]), json.loads(row[3]))

    def put(self, record: PaperRecord) -> Outcome:
        """Add a record, or bring what is there up to date; nothing is committed yet."""
        with PAPERS.wrap_errors(self.path):
            self._begin_transaction()
            number = self._find(record.paper.id)
            if number is not None:
                return self._update(number, record)
            number, by = self._find_same(record)
            if number is not None:
                return self._fill(number, record, by)
            self._add(record)
        return "added"

    def commit(self, identity: str, done: int, *, finished: bool, report: Any) -> None:
        """Commit what was put since the last time, and that *done* records of a source are."""
        with self._changing() as db:
            self._flush()
            db.execute(
                "UPDATE sources SET done = ?, finished = ?, report = ? WHERE identity = ?",
                (done, finished, json.dumps(report), identity),
            )

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove papers by their numbers, and commit that."""
        with self._changing() as db:
            self._flush()
            for number in numbers:
                gone, _ = self._read(number)
                db.execute(_UNINDEX, (number, gone.title, gone.abstract))
                for table, column in _OF_PAPERS.items():
                    db.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))

    def optimize(self) -> None:
        """Have the index of words in one piece, which makes searches faster."""
        with PAPERS.wrap_errors(self.path):
            self._db.execute("INSERT INTO words (words) VALUES ('optimize')")

    def place_vectors(self, places: Iterable[tuple[int, int]], header: str) -> None:
        """Note where the vectors of papers are, by their numbers, and what is in their file."""
        with self._changing() as db:
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", places)
            write_about(db, "vectors", header)

    def forget_vectors(self) -> None:
        """Forget all vectors."""
        with self._changing() as db:
            db.execute("DELETE FROM vectors")
            db.execute("DELETE FROM about WHERE name = 'vectors'")

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """Commit what is done here, and have readers look anew at what they know of the base."""
        with PAPERS.wrap_errors(self.path):
            self._begin_transaction()
            yield self._db
            generation = int(read_about(self._db, "generation", "0")) + 1
            write_about(self._db, "generation", str(generation))
            self._db.execute("COMMIT")

    @property
    def db(self) -> sqlite3.Connection:
        """The connection, for reading what was written."""
        return self._db

    def _one(self, sql: str) -> int:
        return int(self._db.execute(sql).fetchone()[0])

    def _begin_transaction(self) -> None:
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")

    def _find(self, id: str) -> int | None:
        if id in self._batch.numbers:
            return self._batch.numbers[id]
        found = self._db.execute("SELECT n FROM ids WHERE id = ?", (id,)).fetchone()
        return None if found is None else int(found[0])

    def _find_same(self, record: PaperRecord) -> tuple[int | None, str]:
        """Return the paper that a record with a new id is about, and what tells so."""
        if self._merge == "none":
            return None, ""
        for id in record.ids[1:]:
            number = self._find(id)
            if number is not None and have_like_titles(self._read(number)[0], record.paper):
                return number, id
        if self._merge == "titles":
            for number in self._find_title(record.paper.title):
                if may_be_same(self._read(number)[0], record.paper):
                    return number, "title"
        return None, ""

    def _find_title(self, title: str) -> list[int]:
        if not may_name_paper(title_key(title)):
            return []
        self._flush()
        rows = self._db.execute(
            "SELECT n FROM titles WHERE key = ? AND whole ORDER BY n", (hash_title(title),)
        )
        return [n for (n,) in rows]

    def _add(self, record: PaperRecord) -> None:
        number, paper = self._next, record.paper
        self._next += 1
        batch = self._batch
        batch.rows["papers"].append((number, *to_row(paper), self._run))
        batch.rows["scopes"].append((number, *self._scope_of(paper)))
        batch.rows["words"].append((number, paper.title, paper.abstract))
        batch.rows["titles"] += _title_rows(number, paper.title)
        batch.rows["refs"] += _reference_rows(number, record.references, record.ids)
        for id in record.ids:
            if self._find(id) is None:
                batch.numbers[id] = number

    def _update(self, number: int, record: PaperRecord) -> Outcome:
        """Take the later state of a paper; an id that occurs twice in one source counts once."""
        before, run = self._read(number)
        if before.id != record.paper.id:
            return self._fill(number, record, record.paper.id)
        if run == self._run:
            return "duplicate"
        given = {
            one.name: value
            for one in fields(Paper)
            if (value := getattr(record.paper, one.name)) not in ("", (), None)
        }
        after = replace(before, **given)
        is_new = self._change(number, before, after)
        if record.references:
            is_new |= self._put_references(number, record.references, record.ids, keep=False)
        is_new |= self._put_ids(number, record.ids)
        self._db.execute("UPDATE papers SET run = ? WHERE n = ?", (self._run, number))
        return "updated" if is_new else "unchanged"

    def _fill(self, number: int, record: PaperRecord, by: str) -> Outcome:
        """Add to a paper what another record of it has more; the first record stays as it is."""
        before, _ = self._read(number)
        is_new = self._change(number, before, fill_paper(before, record.paper))
        is_new |= self._put_references(number, record.references, record.ids, keep=True)
        is_known = self._db.execute(
            "SELECT 1 FROM merges WHERE n = ? AND id = ?", (number, record.paper.id)
        ).fetchone()
        if not is_known:
            whole = json.dumps(asdict(record), ensure_ascii=False)
            self._db.execute(
                "INSERT INTO merges VALUES (?, ?, ?, ?)", (number, record.paper.id, by, whole)
            )
        is_new |= self._put_ids(number, record.ids)
        return "merged" if is_new or not is_known else "unchanged"

    def _read(self, number: int) -> tuple[Paper, int]:
        self._flush()
        row = self._db.execute("SELECT * FROM papers WHERE n = ?", (number,)).fetchone()
        return to_paper(row[1:-1]), row[-1]

    def _change(self, number: int, before: Paper, after: Paper) -> bool:
        if before == after:
            return False
        db = self._db
        if before.text != after.text or before.title != after.title:
            db.execute(_UNINDEX, (number, before.title, before.abstract))
            db.execute(_INSERTS["words"], (number, after.title, after.abstract))
            db.execute("DELETE FROM vectors WHERE n = ?", (number,))
            db.execute("DELETE FROM titles WHERE n = ?", (number,))
            db.executemany(_INSERTS["titles"], _title_rows(number, after.title))
        run = db.execute("SELECT run FROM papers WHERE n = ?", (number,)).fetchone()[0]
        db.execute(
            f"INSERT OR REPLACE INTO papers VALUES ({_PLACEHOLDERS})", (number, *to_row(after), run)
        )
        db.execute(
            "INSERT OR REPLACE INTO scopes VALUES (?, ?, ?, ?, ?)", (number, *self._scope_of(after))
        )
        return True

    def _put_references(
        self, number: int, references: Sequence[str], ids: Sequence[str], *, keep: bool
    ) -> bool:
        rows = self._db.execute("SELECT cited FROM refs WHERE citing = ? ORDER BY place", (number,))
        before = [cited for (cited,) in rows]
        after = dict.fromkeys([*(before if keep else ()), *references])
        wanted = _reference_rows(number, [*after], ids)
        if [cited for _, _, cited in wanted] == before:
            return False
        self._db.execute("DELETE FROM refs WHERE citing = ?", (number,))
        self._db.executemany("INSERT INTO refs VALUES (?, ?, ?)", wanted)
        return True

    def _put_ids(self, number: int, ids: Iterable[str]) -> bool:
        n_new = 0
        for id in ids:
            done = self._db.execute("INSERT OR IGNORE INTO ids VALUES (?, ?)", (id, number))
            n_new += done.rowcount
        return n_new > 0

    def _scope_of(self, paper: Paper) -> tuple[int | None, int | None, int | None, int]:
        first, last = paper.days or (None, None)
        key = venue_key(paper.venue)
        if key not in self._venues:
            added = self._db.execute(
                "INSERT INTO venues (key, name) VALUES (?, ?)", (key, paper.venue)
            )
            self._venues[key] = added.lastrowid
        return paper.year, first, last, int(self._venues[key] or 0)

    def _flush(self) -> None:
        batch, db = self._batch, self._db
        if not batch.rows["papers"]:
            return
        for table, rows in batch.rows.items():
            db.executemany(_INSERTS[table], rows)
        db.executemany("INSERT OR IGNORE INTO ids VALUES (?, ?)", batch.numbers.items())
        self._batch = _Batch()


def _remove(path: Path) -> None:
    """Remove a base; anything else that bears its name stays."""
    if not path.is_file():
        return
    with PAPERS.wrap_errors(path), closing(connect_reader(path)) as db:
        PAPERS.is_new(db, path, any_form=True)
        told = read_about(db, "vectors")
    drop_vectors(told)
    for one in (*side_files(path), path.with_name(path.name + VECTORS)):
        one.unlink(missing_ok=True)


class _Batch:
    """Rows that are not written yet, by table; and what is known of their ids."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _INSERTS}
        self.numbers: dict[str, int] = {}


def _title_rows(number: int, title: str) -> list[tuple[int, int, int]]:
    whole, main = hash_title(title), hash_title(main_title(title))
    return [(whole, number, 1)] + ([(main, number, 0)] if main != whole else [])


def _reference_rows(
    number: int, references: Sequence[str], own: Sequence[str]
) -> list[tuple[int, int, str]]:
    cited = [one for one in dict.fromkeys(references) if one and one not in own]
    return [(number, place, one) for place, one in enumerate(cited)]
