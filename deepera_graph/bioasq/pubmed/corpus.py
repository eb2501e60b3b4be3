"""A corpus from PubMed's files: what is left of their records when all were read in order.

A later file wins, within a file the higher version, and what is deleted is gone. What is known so
far is kept in SQLite beside the output, a transaction a file: memory does not grow, a reading that
was killed goes on with the file it was in, and update files can be added later.

Source:
    Updates are to be applied in the order of their numbers:
    https://ftp.ncbi.nlm.nih.gov/pubmed/updatefiles/README.txt
"""

import gzip
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, cast

from deepera_graph.bioasq.pubmed.files import (
    OF_FILES,
    RecordProblem,
    RecordProblems,
    find_files,
    read_file,
)
from deepera_graph.bioasq.pubmed.records import Deleted, PubmedRecord
from deepera_graph.errors import SettingsError
from deepera_graph.packages import check_extra
from deepera_graph.stores.sqlite import FileKind
from deepera_graph.text.jsonl import hash_ends, replacing

STATE = ".sqlite"  # added to the name of the output
_FORMAT = 1
_READING = FileKind(
    name="state of a reading", advice="give --overwrite to begin again", error=SettingsError
)
_ROWS_AT_ONCE = 500
_KEPT, _NO_ABSTRACT, _BOOK = "kept", "no abstract", "book"
_TABLES = """
CREATE TABLE IF NOT EXISTS about (format INTEGER);
CREATE TABLE IF NOT EXISTS files (
    rank INTEGER PRIMARY KEY, name TEXT UNIQUE, identity TEXT,
    is_damaged INTEGER, n_records INTEGER, faults TEXT, problems TEXT);
CREATE TABLE IF NOT EXISTS records (
    pmid INTEGER PRIMARY KEY, rank INTEGER, version INTEGER,
    status TEXT, retracted INTEGER, line TEXT);
CREATE TABLE IF NOT EXISTS deleted (pmid INTEGER PRIMARY KEY, rank INTEGER);
"""
_PUT = """
INSERT INTO records VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (pmid) DO UPDATE SET
    rank = excluded.rank, version = excluded.version, status = excluded.status,
    retracted = excluded.retracted, line = excluded.line
WHERE (excluded.rank, excluded.version) >= (records.rank, records.version)
"""
_DELETE = """
INSERT INTO deleted VALUES (?, ?)
ON CONFLICT (pmid) DO UPDATE SET rank = max(deleted.rank, excluded.rank)
"""
# What a damaged file has does not undo a deletion: whether it came after it is not certain.
_STATES = """
SELECT status, retracted, line,
    deleted.pmid IS NOT NULL AND (deleted.rank >= records.rank OR is_damaged)
FROM records JOIN files ON files.rank = records.rank
LEFT JOIN deleted ON deleted.pmid = records.pmid
ORDER BY records.pmid
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusReport:
    """What became of the records of all files; every record read is in one of the counts."""

    files: int  # files read, those of earlier runs among them
    files_before: int  # how many of them an earlier run had read
    read: int  # records that could be read: kept + without_abstract + books + deleted + replaced
    kept: int  # records in the corpus
    without_abstract: int  # records whose last state has no abstract, or a blank one
    books: int  # chapters of books
    deleted: int  # records that an update file deletes
    replaced: int  # records that a later file or a higher version replaces
    retracted: int  # articles among those kept that were retracted
    unknown_deletions: int  # deletions of records that no file has
    broken: dict[str, int]  # records that could not be read, by fault
    problems: tuple[RecordProblem, ...]  # broken records and damaged files, the first of each file

    @property
    def bad_files(self) -> list[RecordProblem]:
        """What is wrong with whole files."""
        return [one for one in self.problems if one.fault in OF_FILES]

    @property
    def bad_records(self) -> list[RecordProblem]:
        """What is wrong with records, the first of each file."""
        return [one for one in self.problems if one.fault not in OF_FILES]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        plain = asdict(self)
        plain["damaged_files"] = sorted({one.file for one in self.bad_files})
        plain["problems"] = [asdict(one) for one in self.problems]
        return plain


class CorpusProgress(NamedTuple):
    """How far a reading is."""

    n_bytes: int  # of the files, as they are on disk
    n_bytes_in_all: int
    n_records: int  # read in this run


def write_corpus(
    paths: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    on_progress: Callable[[CorpusProgress], None] | None = None,
) -> CorpusReport:
    """Read PubMed's files and write the records that are left, one JSON object a line, by PMID.

    A line has `id`, `title`, `text` (the abstract), `year`, `journal`, `mesh`,
    `publication_types`, `language`, `retracted`, `pmid`, and `parts`, each with `label`, `start`
    and `end`; see `pubmed_records.Record`. What is known of all records is in a file
    beside it, ``OUT.sqlite``, about as large as the corpus: from it a reading that was stopped goes
    on, and with *resume* files that come after those read are added. The corpus is the same as if
    all files had been read in one go. A damaged file that was mended since is read again.

    Args:
        paths: Files and folders, see `find_files` in `deepera_graph.bioasq.pubmed` for their order.
        out: Where the corpus goes; compressed if it ends in ``.gz``.
        resume: Add files to a corpus that is there.
        overwrite: Replace the corpus, and forget what was read.
        on_progress: Called about every 256 KB.

    Raises:
        InputError: A path is missing or of another kind.
        SettingsError: *out* exists and is neither to be resumed nor replaced, or was made of other
            files; or lxml is not installed (extra ``bioasq``).
    """
    out = Path(out)
    files = find_files(paths)
    _check_out(out, resume=resume, overwrite=overwrite)
    check_extra("lxml", extra="bioasq", what="reading PubMed")
    with _State.open(_state_of(out), anew=overwrite) as state:
        todo = state.plan(files)
        _read_all(state, todo, on_progress)
        with _zipped(out) as file:
            counts = state.write(file)
        return state.report(counts, n_before=len(files) - len(todo))


def _state_of(out: Path) -> Path:
    return out.with_name(out.name + STATE)


def _check_out(out: Path, *, resume: bool, overwrite: bool) -> None:
    if resume and overwrite:
        raise SettingsError("give resume or overwrite, not both")
    if not out.parent.is_dir() or out.is_dir():
        raise SettingsError(f"the corpus must be a file that can be written, got {str(out)!r}")
    if out.exists() and not (resume or overwrite):
        raise SettingsError(
            f"{str(out)!r} exists; give --overwrite to replace it, or --resume to add files"
        )
    if resume and out.exists() and not _state_of(out).exists():
        raise SettingsError(f"nothing to go on from: {str(_state_of(out))!r} is missing")


def _read_all(
    state: "_State",
    todo: list[tuple[int, Path]],
    on_progress: Callable[[CorpusProgress], None] | None,
) -> None:
    n_in_all = sum(path.stat().st_size for _, path in todo)
    n_bytes = n_records = 0

    def tell(n_more: int, n_new: int) -> None:
        if on_progress is not None:
            on_progress(CorpusProgress(n_bytes + n_more, n_in_all, n_records + n_new))

    for rank, path in todo:
        n_new = state.read(rank, path, tell)
        n_records += n_new
        n_bytes += path.stat().st_size
        tell(0, 0)


@contextmanager
def _zipped(out: Path) -> Iterator[IO[bytes]]:
    """Do what `replacing` does; what ends in ``.gz`` is compressed."""
    with replacing(out) as raw:
        if out.name.endswith(".gz"):  # without a name and a time: equal corpora, equal bytes
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
                yield cast("IO[bytes]", file)
        else:
            yield raw


class _State:
    """What is known of all records, on disk."""

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self._path, self._db = path, database

    @classmethod
    @contextmanager
    def open(cls, path: Path, *, anew: bool) -> Iterator[Self]:
        """Open or make it; no other process can meanwhile."""
        if anew:
            path.unlink(missing_ok=True)
        with (
            _READING.wrap_errors(path),
            closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as db,
        ):
            _prepare(db)
            if db.execute("SELECT format FROM about").fetchall() != [(_FORMAT,)]:
                raise SettingsError(f"{str(path)!r} is of another version: give --overwrite")
            yield cls(path, db)

    def plan(self, files: list[Path]) -> list[tuple[int, Path]]:
        """Return the files that are to be read, and the rank of each; later ones win."""
        # Raises `SettingsError` if a file was changed since it was read, or would come before one
        # that was.
        known = {
            name: (rank, identity, bool(is_damaged))
            for rank, name, identity, is_damaged in self._db.execute(
                "SELECT rank, name, identity, is_damaged FROM files"
            )
        }
        last = max((rank for rank, _, _ in known.values()), default=-1)
        if known and not any(path.name in known for path in files):
            self._refuse("it was made of other files")
        todo, before, n_new = list[tuple[int, Path]](), -1, 0
        for path in files:
            if path.name not in known:
                n_new += 1
                todo.append((last + n_new, path))
                continue
            rank, identity, is_damaged = known[path.name]
            if n_new or rank < before:
                self._refuse(f"{path.name} was read before a file that now stands before it")
            before = rank
            if identity != _identify(path):
                if not is_damaged:
                    self._refuse(f"{path.name} has changed since it was read")
                todo.append((rank, path))
        return todo

    def _refuse(self, why: str) -> None:
        raise SettingsError(f"{str(self._path)!r} cannot be continued: {why}; --overwrite anew")

    def read(self, rank: int, path: Path, watch: Callable[[int, int], None]) -> int:
        """Read a file in one transaction; return how many records it has."""
        n_records, problems = 0, RecordProblems()
        identity = _identify(path)
        stream = read_file(path, problems=problems, on_read=lambda n: watch(n, n_records))
        self._db.execute("BEGIN")
        try:
            while batch := list(islice(stream, _ROWS_AT_ONCE)):
                rows = [_to_row(one, rank) for one in batch if isinstance(one, PubmedRecord)]
                gone = [(int(one.pmid), rank) for one in batch if isinstance(one, Deleted)]
                self._db.executemany(_PUT, rows)
                self._db.executemany(_DELETE, gone)
                n_records += len(rows)
            told = json.dumps([asdict(one) for one in problems.first])
            self._db.execute(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)",
                (rank, path.name, identity, problems.has_bad_file, n_records,
                 json.dumps(problems.counts), told),
            )  # fmt: skip
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
        return n_records

    def write(self, file: IO[bytes]) -> Counter[str]:
        counts: Counter[str] = Counter()
        for status, retracted, line, gone in self._db.execute(_STATES):
            counts["rows"] += 1
            counts["deleted" if gone else status] += 1
            if status == _KEPT and not gone:
                counts["retracted"] += retracted
                file.write(line.encode() + b"\n")
        return counts

    def report(self, counts: Counter[str], *, n_before: int) -> CorpusReport:
        files = self._db.execute("SELECT n_records, faults, problems FROM files ORDER BY rank")
        n_read, n_files, faults, problems = 0, 0, Counter[str](), list[RecordProblem]()
        for n, found, told in files:
            n_files, n_read = n_files + 1, n_read + n
            faults.update(json.loads(found))
            problems += [RecordProblem(**one) for one in json.loads(told)]
        [n_unknown] = self._db.execute(
            "SELECT count(*) FROM deleted WHERE pmid NOT IN (SELECT pmid FROM records)"
        ).fetchone()
        return CorpusReport(
            files=n_files,
            files_before=n_before,
            read=n_read,
            kept=counts[_KEPT],
            without_abstract=counts[_NO_ABSTRACT],
            books=counts[_BOOK],
            deleted=counts["deleted"],
            replaced=n_read - counts["rows"],
            retracted=counts["retracted"],
            unknown_deletions=n_unknown,
            broken={fault: n for fault, n in sorted(faults.items()) if fault not in OF_FILES},
            problems=tuple(problems),
        )


def _prepare(database: sqlite3.Connection) -> None:
    for setting in ("page_size = 16384", "synchronous = NORMAL", "locking_mode = EXCLUSIVE"):
        database.execute(f"PRAGMA {setting}")
    database.execute("BEGIN EXCLUSIVE")
    for table in _TABLES.split(";"):
        database.execute(table)
    [n] = database.execute("SELECT count(*) FROM about").fetchone()
    if not n:
        database.execute("INSERT INTO about VALUES (?)", (_FORMAT,))
    database.execute("COMMIT")


def _identify(path: Path) -> str:
    """Return what tells whether a file is the same: its size, and a hash of both its ends."""
    return f"{path.stat().st_size}:{hash_ends(path, sha256())[:16]}"


def _to_row(record: PubmedRecord, rank: int) -> tuple[Any, ...]:
    status = _BOOK if record.is_book else _KEPT if record.abstract.strip() else _NO_ABSTRACT
    line = json.dumps(to_line(record), ensure_ascii=False) if status == _KEPT else None
    return int(record.pmid), rank, record.version, status, record.retracted, line


def to_line(record: PubmedRecord) -> dict[str, Any]:
    """Return a record as it stands in a corpus."""
    return {
        "id": record.pmid,
        "title": record.title,
        "text": record.abstract,
        "year": record.year,
        "journal": record.journal,
        "mesh": record.mesh,
        "publication_types": record.publication_types,
        "language": record.language,
        "retracted": record.retracted,
        "parts": [{"label": a, "start": b, "end": c} for a, b, c in record.parts],
        "pmid": record.pmid,  # by which a citation of the passage names it
    }
