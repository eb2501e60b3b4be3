"""A corpus into a collection: one passage a record, its text as it stands, so that offsets hold.

What a collection has already is left alone: an indexing that was stopped goes on where it was, and
after an update of the corpus only texts that are new or changed are embedded.
"""

import pickle
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from deepera_graph.bioasq.questions import TYPES
from deepera_graph.errors import InputError
from deepera_graph.retrieval.collections.passage_store import PassageStore
from deepera_graph.retrieval.file_records import Record, read_file
from deepera_graph.retrieval.files import Skipped
from deepera_graph.retrieval.search import Vectors
from deepera_graph.settings.ranges import check_at_least
from deepera_graph.stores.words import join_title
from deepera_graph.text.jsonl import open_records
from deepera_graph.usage import Usage

if TYPE_CHECKING:
    from deepera_graph.jobs.ray import Share

BATCH_SIZE = 256
CUT_TOKENS = "cut_tokens"  # metadata: how many tokens of a passage its vector does not cover
MOST_SKIPPED = 1000
_COUNTED = ("indexed", "updated", "unchanged", "truncated", "cut_tokens")
Embed = Callable[[list[str]], "Future[Vectors]"]


@runtime_checkable
class Truncates(Protocol):
    """Embeddings that say what they do not read: tokens of a text beyond a limit."""

    @property
    def max_tokens(self) -> int | None:
        """Most tokens that are read, marks included; None if there is no limit."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens each text has, marks included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """What an indexing did."""

    indexed: int  # passages that were embedded, or their words counted, and written
    updated: int  # passages of which only the metadata was written anew
    unchanged: int  # passages that were there already
    removed: int  # passages that the corpus has no more
    # passages with more tokens than the embeddings read, among those indexed now; each has the
    # number of those left out in its metadata, as ``cut_tokens``
    truncated: int
    cut_tokens: int  # tokens left out of all of them
    # most tokens that the embeddings read; None if they read all, or do not tell
    max_tokens: int | None
    skipped: tuple[Skipped, ...]  # records that could not be used, the first 1000
    n_skipped: int  # how many there were

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        plain = asdict(self)
        plain["skipped"] = [{"place": one.place, "reason": one.reason} for one in self.skipped]
        return plain


@dataclass(frozen=True, slots=True)
class EmbeddingWork:
    """How a worker in another process embeds batches of texts, for `RayEngine`."""

    pickled: bytes  # the embeddings; unpickled where the worker is

    def at_once(self, share: "Share") -> int:
        """One batch: a worker has one CPU."""
        return 1

    @contextmanager
    def open(self, share: "Share") -> Iterator[Callable[[list[str]], Awaitable[Vectors]]]:
        """Make the embeddings."""
        embeddings: Embeddings = pickle.loads(self.pickled)

        async def embed(texts: list[str]) -> Vectors:
            return embeddings.embed_documents(texts)

        yield embed

    def cost(self, done: Vectors) -> Usage:
        """Nothing that is counted."""
        return Usage()


def index_corpus(
    corpus: str | Path,
    store: PassageStore,
    *,
    embed: Embed | None = None,
    ahead: int = 1,
    batch_size: int = BATCH_SIZE,
    prune: bool = False,
    on_progress: Callable[[int, int, int], None] | None = None,
) -> IndexReport:
    """Bring a collection to what a corpus has: one passage a record.

    A passage has the text as it stands, and as metadata the title and all else that the record
    says and is not empty. One that the collection has with the same title and text is not embedded
    again.

    Args:
        corpus: As `deepera_graph.bioasq.pubmed.corpus.write_corpus` writes it, or any file of
            records that `deepera index` reads.
        store: See `deepera_graph.retrieval.collections.store.open_store`.
        embed: What embeds a batch elsewhere, e.g. `RayEngine.start`; the store's own embeddings,
            here, if None.
        ahead: How many batches *embed* is given before the first is awaited, >= 1.
        batch_size: Records looked up and written at once, >= 1.
        prune: Remove passages of the collection that the corpus does not have.
        on_progress: Called after each batch with the records so far, the bytes read, and those of
            the file.

    Raises:
        InputError: The corpus is missing, no file of records, or one of questions.
        SettingsError: *ahead* or *batch_size* is out of range.
        StoreError: The store cannot be reached; what was written stays.
    """
    check_at_least("batch_size", batch_size, 1)
    check_at_least("ahead", ahead, 1)
    own = store.vectorstore.embeddings
    indexer = _Indexer(store, own, (embed or _embed_here(own)) if own is not None else None)
    source = _Corpus(Path(corpus))
    waiting: deque[_Batch] = deque()
    with open_records(source.path) as (stream, raw):
        passages = source.passages(stream)
        n_bytes = source.path.stat().st_size
        while batch := list(islice(passages, batch_size)):
            waiting.append(indexer.begin(batch))
            if len(waiting) >= ahead:
                indexer.finish(waiting.popleft())
            if on_progress is not None:
                on_progress(source.n_read, raw.tell(), n_bytes)
        while waiting:
            indexer.finish(waiting.popleft())
    if not source.n_read:
        reason = f": {source.skipped[0]}" if source.skipped else ""
        raise InputError(f"{source.path} has no record that can be used{reason}")
    n_removed = _remove_others(store, source.seen) if prune else 0
    return indexer.report(source, n_removed)


def _embed_here(embeddings: Embeddings) -> Embed:
    def embed(texts: list[str]) -> Future[Vectors]:
        done: Future[Vectors] = Future()
        done.set_result(embeddings.embed_documents(texts))
        return done

    return embed


class _Corpus:
    """The records of a file as passages; an id counts once, and what cannot be used is noted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen = _Ids()
        self.n_read = self.n_skipped = 0
        self.skipped: list[Skipped] = []

    def passages(self, stream: Any) -> Iterator[Document]:
        for one in read_file(self.path, stream):
            if not isinstance(one, Record):
                self._skip(one if isinstance(one, Skipped) else one.skipped)
            elif _is_question(one):
                raise InputError(
                    f"{one.place}: this is a question of BioASQ, no record of a corpus"
                )
            elif not self.seen.add(one.id):
                self._skip(Skipped(one.place, f"id {one.id!r} is used twice"))
            else:
                self.n_read += 1
                yield _to_passage(one)

    def _skip(self, one: Skipped) -> None:
        self.n_skipped += 1
        if len(self.skipped) < MOST_SKIPPED:
            self.skipped.append(one)


def _is_question(record: Record) -> bool:
    """Tell a question of a test or golden set, whose body would be read as a text."""
    said = record.metadata
    is_typed = not record.title and said.get("type") in TYPES
    return is_typed and (said["type"] in ("yesno", "factoid") or "snippets" in said)


def _to_passage(record: Record) -> Document:
    metadata = {"title": record.title, **record.metadata}
    kept = {name: value for name, value in metadata.items() if value not in ("", None, [])}
    return Document(id=record.id, page_content=record.text, metadata=kept)


class _Ids:
    """Ids that were met: a bit each for numbers as PMIDs are, so that millions take megabytes."""

    _MOST = 10**9

    def __init__(self) -> None:
        self._bits, self._names = bytearray(), set[str]()

    def add(self, name: str) -> bool:
        """Note an id; tell whether it is new."""
        number = self._number(name)
        if number is None:
            is_new = name not in self._names
            self._names.add(name)
            return is_new
        place, bit = number >> 3, 1 << (number & 7)
        if place >= len(self._bits):
            self._bits.extend(bytes(place + (1 << 16) - len(self._bits)))
        is_new = not self._bits[place] & bit
        self._bits[place] |= bit
        return is_new

    def __contains__(self, name: str) -> bool:
        number = self._number(name)
        if number is None:
            return name in self._names
        place = number >> 3
        return place < len(self._bits) and bool(self._bits[place] & 1 << (number & 7))

    def _number(self, name: str) -> int | None:
        plain = name.isascii() and name.isdecimal() and not name.startswith("0")
        return int(name) if plain and int(name) < self._MOST else None


@dataclass(frozen=True, slots=True)
class _Batch:
    new: list[Document]
    relabelled: list[Document]
    vectors: "Future[Vectors] | None"


class _Indexer:
    """Finds out what of a batch is new, and writes it."""

    def __init__(self, store: PassageStore, embeddings: Any, embed: Embed | None) -> None:
        self._store, self._embed = store, embed
        self._truncates = embeddings if isinstance(embeddings, Truncates) else None
        self._counts = Counter[str]()

    def begin(self, passages: list[Document]) -> _Batch:
        """Look up what is there, and have the rest embedded."""
        held = {} if self._store.is_new else self._find(passages)
        new, relabelled = list[Document](), list[Document]()
        for one in passages:
            before = held.get(one.id or "")
            if before is None or join_title(before) != join_title(one):
                new.append(one)
                continue
            if CUT_TOKENS in before.metadata:
                one.metadata[CUT_TOKENS] = before.metadata[CUT_TOKENS]
            if before.metadata != one.metadata:
                relabelled.append(one)
            else:
                self._counts["unchanged"] += 1
        self._note_cut(new)
        texts = [join_title(one) for one in new]
        return _Batch(new, relabelled, self._embed(texts) if self._embed and new else None)

    def finish(self, batch: _Batch) -> None:
        if batch.new:
            self._store.put(batch.new, None if batch.vectors is None else batch.vectors.result())
        self._store.put_metadata(batch.relabelled)
        self._counts.update(indexed=len(batch.new), updated=len(batch.relabelled))

    def report(self, source: _Corpus, n_removed: int) -> IndexReport:
        return IndexReport(
            **{name: self._counts[name] for name in _COUNTED},
            removed=n_removed,
            max_tokens=None if self._truncates is None else self._truncates.max_tokens,
            skipped=tuple(source.skipped),
            n_skipped=source.n_skipped,
        )

    def _find(self, passages: list[Document]) -> dict[str, Document]:
        names = [one.id for one in passages if one.id]
        return {one.id or "": one for one in self._store.fetch(names)}

    def _note_cut(self, passages: list[Document]) -> None:
        """Record how much of each passage its vector will not cover."""
        if self._truncates is None or self._truncates.max_tokens is None or not passages:
            return
        counts = self._truncates.count_tokens([join_title(one) for one in passages])
        for one, n in zip(passages, counts, strict=True):
            if n > self._truncates.max_tokens:
                one.metadata[CUT_TOKENS] = n - self._truncates.max_tokens
                self._counts.update(truncated=1, cut_tokens=n - self._truncates.max_tokens)


def _remove_others(store: PassageStore, known: _Ids) -> int:
    others = [one.passage.id or "" for one in store.scan() if (one.passage.id or "") not in known]
    for start in range(0, len(others), BATCH_SIZE):
        store.remove(others[start : start + BATCH_SIZE])
    return len(others)
