"""The corpus of a build: documents cut into chunks in a file."""

import re
import sqlite3
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice, pairwise
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.calibration.instance import DatasetError
from deepera_graph.errors import SettingsError
from deepera_graph.jobs.cluster import Here, Workers
from deepera_graph.lab.construction import RowSink
from deepera_graph.stores.sqlite import FileKind
from deepera_graph.text.words import split_sentences

STAGE = "documents"
_TOKEN = re.compile(r"\w+|[^\w\s]")
_BATCH = 256


class DropRecord(BaseModel):
    """A line of the drop log: a document or a question that went no further."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str = Field(description="Where it was dropped, e.g. 'documents' or 'lmqg'.")
    document: str = Field(description="Id of the document.")
    reason: str = Field(description="A short, stable name.")
    detail: str = Field(default="", description="What exactly was wrong.")


class CorpusSection(BaseModel):
    """A part of a document under one heading, e.g. the methods of a structured abstract."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(default="", description="Heading as printed; empty where there is none.")
    text: str = Field(description="Its text, without the heading.")


class Document(BaseModel):
    """What a corpus holds under one id; `text` is blank where the source has none."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = Field(min_length=1, description="Names the document within its corpus.")
    title: str = Field(default="", description="Its title.")
    text: str = Field(description="Abstract or full text.")
    subject: str = Field(default="", description="Field of science.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="What else is known.")
    sections: tuple[CorpusSection, ...] = Field(
        default=(), description="The text cut by its headings, in order; empty if not known."
    )

    @classmethod
    def of_sections(cls, id: str, sections: Sequence[CorpusSection], **fields: Any) -> Self:
        """Make a document whose text is its sections, an empty line between two."""
        text = "\n\n".join(section.text for section in sections)
        return cls(id=id, text=text, sections=tuple(sections), **fields)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of whole sentences of one document; `id` is the document's with its place from 1."""

    id: str
    text: str
    document: str


class Corpus:
    """Documents and their chunks in a SQLite file: memory does not grow with their number.

    Documents and chunks have places from 0 in the order they came; a chunk's is its row in the
    array of vectors. Documents that are left out keep theirs.
    """

    def __init__(self, path: Path | None = None) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
        self._path = path
        self._connection = sqlite3.connect(
            ":memory:" if path is None else path, check_same_thread=False, isolation_level=None
        )
        self._lock = Lock()
        self._connection.executescript(_TABLES)
        self.fingerprint = ""  # SHA-256 over all `n_read` documents that came
        self.n_read = 0
        self.min_similarity: float | None = None  # that connected two; None if all were kept
        self.documents: Mapping[str, Document] = _Documents(self)

    def __iter__(self) -> Iterator[Chunk]:
        """Yield the chunks of all documents that were kept, in order."""
        place = -1
        while rows := self.fetch(_NEXT_CHUNKS, place, _ROWS):
            place = rows[-1][0]
            yield from (Chunk(id, text, document) for _, id, text, document in rows)

    @property
    def n_chunks(self) -> int:
        """Chunks of the documents that were kept."""
        return int(self.fetch(f"SELECT count(*) {_KEPT_CHUNKS}")[0][0])

    def describe(self) -> dict[str, Any]:
        """Return what the manifest says of it."""
        return {
            "sha256": self.fingerprint,
            "read": self.n_read,
            "used": len(self.documents),
            "min_similarity": self.min_similarity,
            "chunks": self.n_chunks,
        }

    def check_not_empty(self) -> None:
        """Raise `DatasetError` if there is nothing to make questions of."""
        if not self.documents:
            raise DatasetError(f"none of {self.n_read} documents has a text")

    def find_twin(self, document: Document, text: str) -> tuple[str, str]:
        """Return why a document cannot be added, and the detail of it; blank if it can."""
        if self.fetch("SELECT 1 FROM documents WHERE id = ?", document.id):
            return "id-used-twice", ""
        twins = self.fetch("SELECT id FROM documents WHERE hash = ?", _hash(text))
        return ("same-text", f"as document {twins[0][0]}") if twins else ("", "")

    def add_document(self, document: Document, text: str) -> None:
        """Add a document; *text* is its text with single spaces."""
        values = (document.id, document.model_dump_json(), _hash(text))
        self._write("INSERT INTO documents(id, body, hash) VALUES (?, ?, ?)", [values])

    def add_chunks(self, document: str, texts: Sequence[str]) -> None:
        """Add the chunks of a document, which come in the order of documents."""
        [[place]] = self.fetch("SELECT place FROM documents WHERE id = ?", document)
        self._write(
            "INSERT INTO chunks(id, text, document) VALUES (?, ?, ?)",
            [(f"{document}#{n}", text, place) for n, text in enumerate(texts, start=1)],
        )

    def read_chunks(self, places: Sequence[int]) -> list[Chunk]:
        """Return chunks by their places, in this order."""
        marks = ",".join("?" * len(places))
        rows = self.fetch(
            "SELECT chunks.place, chunks.id, text, documents.id FROM chunks JOIN documents"
            f" ON documents.place = chunks.document WHERE chunks.place IN ({marks})",
            *(place + 1 for place in places),
        )
        found = {place: Chunk(*fields) for place, *fields in rows}
        return [found[place + 1] for place in places]

    def chunks_of(self, document: str) -> tuple[Chunk, ...]:
        """Return the chunks of a document that was kept, in order; none of another."""
        rows = self.fetch(
            f"SELECT chunks.id, text {_KEPT_CHUNKS} AND documents.id = ? ORDER BY chunks.place",
            document,
        )
        return tuple(Chunk(id, text, document) for id, text in rows)

    def find_chunks(self, ids: Sequence[str]) -> list[int]:
        """Return the places of chunks by their ids, in this order."""
        marks = ",".join("?" * len(ids))
        found = dict(self.fetch(f"SELECT id, place FROM chunks WHERE id IN ({marks})", *ids))
        return [found[id] - 1 for id in ids]

    def texts(self) -> Iterator[str]:
        """Yield the texts of all chunks, also of documents that were left out, in order."""
        place = 0
        while rows := self.fetch(
            "SELECT place, text FROM chunks WHERE place > ? ORDER BY place LIMIT ?", place, _ROWS
        ):
            place = rows[-1][0]
            yield from (text for _, text in rows)

    def sample_texts(self, n: int) -> list[str]:
        """Return the texts of at most *n* chunks, evenly spread; all if there are no more."""
        n_all = self.fetch("SELECT count(*) FROM chunks")[0][0]
        step = max(1, -(-n_all // n))
        rows = self.fetch("SELECT text FROM chunks WHERE (place - 1) % ? = 0 ORDER BY place", step)
        return [text for (text,) in rows]

    def owners(self) -> NDArray[np.int32]:
        """Return the place of the document of every chunk; shape (n_chunks,)."""
        rows = self._connection.execute("SELECT document - 1 FROM chunks ORDER BY place")
        return np.fromiter((place for (place,) in rows), np.int32)

    def leave_out(self, mask: NDArray[np.bool_]) -> list[str]:
        """Leave documents out, shape (n_documents,); return their ids, in order."""
        places = [(int(place) + 1,) for place in np.flatnonzero(mask)]
        self._write("UPDATE documents SET kept = 0 WHERE place = ?", places)
        return [
            id for (id,) in self.fetch("SELECT id FROM documents WHERE NOT kept ORDER BY place")
        ]

    def kept(self) -> NDArray[np.bool_]:
        """Tell which documents were kept; shape (n_documents,)."""
        rows = self._connection.execute("SELECT kept FROM documents ORDER BY place")
        return np.fromiter((bool(kept) for (kept,) in rows), np.bool_)

    def find_document(self, place: int) -> Document:
        """Return a document by its place."""
        [[body]] = self.fetch("SELECT body FROM documents WHERE place = ?", place + 1)
        return Document.model_validate_json(body)

    def fetch(self, statement: str, *values: object) -> list[Any]:
        """Return the rows of a statement."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def transact(self) -> Iterator[None]:
        """Write all of a block at once."""
        with _FILE.wrap_errors(self._path):
            self._connection.execute("BEGIN")
            yield
            self._connection.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _write(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        with self._lock, _FILE.wrap_errors(self._path):
            self._connection.executemany(statement, rows)


_FILE = FileKind(name="corpus of the build", advice="it is made anew by the next run")
_ROWS = 1_000
_TABLES = """
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    CREATE TABLE documents(
        place INTEGER PRIMARY KEY, id TEXT UNIQUE, body TEXT, hash BLOB UNIQUE,
        kept INTEGER DEFAULT 1
    );
    CREATE TABLE chunks(place INTEGER PRIMARY KEY, id TEXT UNIQUE, text TEXT, document INTEGER);
    CREATE INDEX of_document ON chunks(document);
"""
_KEPT_CHUNKS = (
    "FROM chunks JOIN documents ON documents.place = chunks.document WHERE documents.kept"
)
_NEXT_CHUNKS = (
    f"SELECT chunks.place, chunks.id, text, documents.id {_KEPT_CHUNKS} AND chunks.place > ?"
    " ORDER BY chunks.place LIMIT ?"
)


def _hash(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


class _Documents(Mapping[str, Document]):
    """The documents that were kept, by id, in the order they came."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def __getitem__(self, id: str) -> Document:
        rows = self._corpus.fetch("SELECT body FROM documents WHERE id = ? AND kept", id)
        if not rows:
            raise KeyError(id)
        return Document.model_validate_json(rows[0][0])

    def __len__(self) -> int:
        return int(self._corpus.fetch("SELECT count(*) FROM documents WHERE kept")[0][0])

    def __iter__(self) -> Iterator[str]:
        place = 0
        while rows := self._corpus.fetch(
            "SELECT place, id FROM documents WHERE kept AND place > ? ORDER BY place LIMIT ?",
            place,
            _ROWS,
        ):
            place = rows[-1][0]
            yield from (id for _, id in rows)


def read_corpus(
    documents: Iterable[Document],
    max_tokens: int,
    drops: RowSink,
    *,
    path: Path | None = None,
    workers: Workers | None = None,
) -> Corpus:
    """Cut documents into chunks; those without text, and copies, go to *drops*."""
    # The corpus is kept in a new file at *path*, or in memory; *workers* cut, or this process.
    corpus = Corpus(path)
    with corpus.transact():
        batches = _read_batches(documents, corpus, drops)
        for ids, pieces in (workers or Here()).map(_cut_batch, batches, max_tokens):
            for id, texts in zip(ids, pieces, strict=True):
                corpus.add_chunks(id, texts)
    return corpus


def _read_batches(
    documents: Iterable[Document], corpus: Corpus, drops: RowSink
) -> Iterator[tuple[list[str], list[str]]]:
    """Add documents to a corpus as they come; yield the ids and texts of those that were."""
    digest = sha256()
    rest = iter(documents)
    while batch := list(islice(rest, _BATCH)):
        chosen = []
        for document in batch:
            corpus.n_read += 1
            fields = (document.id, document.title, document.text, document.subject)
            digest.update("\0".join(fields).encode("utf-8", "surrogatepass") + b"\1")
            text = " ".join(document.text.split())
            reason, detail = corpus.find_twin(document, text) if text else ("no-text", "")
            if reason:
                drops.append(
                    DropRecord(stage=STAGE, document=document.id, reason=reason, detail=detail)
                )
                continue
            corpus.add_document(document, text)
            chosen.append(document)
        yield [one.id for one in chosen], [one.text for one in chosen]
    corpus.fingerprint = digest.hexdigest()


def _cut_batch(
    max_tokens: int, batch: tuple[list[str], list[str]]
) -> tuple[list[str], list[list[str]]]:
    ids, texts = batch
    return ids, [cut_chunks(text, max_tokens=max_tokens) for text in texts]


def cut_chunks(text: str, *, max_tokens: int = 200) -> list[str]:
    """Cut a text into slices of whole sentences: as few as the limit allows, of like lengths."""
    # A short chunk at the end would be told from a passage written for the pool by its length.
    # Source: DeepEra, section 6.1: sentence-preserving chunks; the limit is not given there.
    if max_tokens < 1:
        raise SettingsError(f"max_tokens must be >= 1, got {max_tokens}")
    sentences = split_sentences(text, longest=sys.maxsize)
    sizes = [count_tokens(one.text) for one in sentences]
    fewest = len(_fill(sizes, max_tokens))
    least = bisect_left(
        range(1, max_tokens), True, key=lambda limit: len(_fill(sizes, limit)) <= fewest
    )
    groups = _fill(sizes, least + 1)
    return [text[sentences[start].start : sentences[end - 1].end] for start, end in groups]


def _fill(sizes: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Return [start, end) of runs, each filled up to the limit before the next one begins."""
    starts: list[int] = []
    room = 0
    for place, size in enumerate(sizes):
        if size > room:
            starts.append(place)
            room = limit
        room -= size
    return list(pairwise([*starts, len(sizes)]))


def count_tokens(text: str) -> int:
    """Count the words and punctuation marks of a text; it needs no model's vocabulary."""
    return sum(1 for _ in _TOKEN.finditer(text))
