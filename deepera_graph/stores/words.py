"""Passages by their words: the BM25 weights of every store, and an index of them in memory."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from heapq import nsmallest
from itertools import islice
from typing import Any, Self
from zlib import crc32

from langchain_core.documents import Document

from deepera_graph.errors import InputError
from deepera_graph.settings.ranges import check_at_least
from deepera_graph.text.words import stems

K1, B, AVERAGE_LENGTH = 1.2, 0.75, 100.0
DECIMALS = 6  # of a score: about what single precision holds
BATCH_SIZE = 256


def count_terms(text: str) -> dict[int, int]:
    """Count the stems under their numbers, in rising order of number."""
    # A stem's number is its CRC-32: the same in every process. Stems that share a number count as
    # one (about 1 pair among 100 000 stems).
    counts = Counter(crc32(stem.encode("utf-8", "surrogatepass")) for stem in stems(text))
    return dict(sorted(counts.items()))


def weigh_terms(
    text: str, *, k1: float = K1, b: float = B, average_length: float = AVERAGE_LENGTH
) -> dict[int, float]:
    """Return the saturated, length-normalised frequency of a passage's stems, in (0, k1 + 1)."""
    # Source: Robertson and Zaragoza (2009), The Probabilistic Relevance Framework: BM25 and Beyond,
    # eq. 3.15, with the customary k1 = 1.2 and b = 0.75. The average length, in stems (100 are
    # about 170 words of prose), is stated, not measured, so that a weight depends on its own text
    # alone.
    counts = count_terms(text)
    held_back = k1 * (1 - b + b * sum(counts.values()) / average_length)
    return {term: count * (k1 + 1) / (count + held_back) for term, count in counts.items()}


def name_passage(passage: Document) -> str:
    """Return a passage's id, or one made from its text."""
    if passage.id:
        return passage.id
    text = passage.page_content.encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=8).hexdigest()


def check_storable(name: str, passage: Document) -> None:
    """Raise `InputError` for a passage without a text, or with metadata that is no JSON."""
    if not passage.page_content.strip():
        raise InputError(f"passage {name!r} has no text")
    try:
        f"{name}{passage.page_content}".encode()
        json.dumps(passage.metadata, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"passage {name!r} cannot be stored: {error}") from error


def title_of(passage: Document) -> str:
    """Return the title of a passage; nothing if it has none."""
    title = passage.metadata.get("title")
    return title if isinstance(title, str) else ""


def join_title(passage: Document) -> str:
    """Return the text that is searched: the title, if there is one, and the passage."""
    title = title_of(passage)
    return f"{title}\n{passage.page_content}" if title.strip() else passage.page_content


def as_found(
    name: str, text: str, metadata: Mapping[str, Any] | None, *, score: float, rank: int
) -> Document:
    """Return a passage with its first-stage score and rank in its metadata."""
    found = {"retrieval_score": score, "retrieval_rank": rank}
    return Document(id=name, page_content=text, metadata={**(metadata or {}), **found})


class WordIndex:
    """Passages in memory, found by their words as a sparse store finds them, without Qdrant.

    For a file or a folder that is asked one question: Qdrant takes a second to import. Scores
    agree with those of `open_store(..., mode="sparse")` to single precision. It has that store's
    `add`, `search`, `count` and `close`, but no conditions on metadata.
    """

    def __init__(self) -> None:
        self._passages: dict[str, Document] = {}
        self._terms: dict[str, list[int]] = {}
        self._weights: dict[int, dict[str, float]] = {}  # of the passages that have a term

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(
        self, passages: Iterable[Document], *, on_progress: Callable[[int], None] | None = None
    ) -> int:
        """Index passages and return how many; one replaces that with the same id."""
        # Raises `InputError` if a passage has no text, or metadata that is no JSON.
        written, rest = 0, iter(passages)
        while batch := list(islice(rest, BATCH_SIZE)):
            for passage in batch:
                name = name_passage(passage)
                check_storable(name, passage)
                self._passages[name] = passage
                self._put(name, weigh_terms(join_title(passage)))
            written += len(batch)
            if on_progress is not None:
                on_progress(written)
        return written

    def search(self, question: str, k: int = 30) -> list[Document]:
        """Return the best *k* passages, best first, equal scores by id."""
        # Raises `InputError` if the question is blank; `SettingsError` if *k* is below 1.
        if not question.strip():
            raise InputError("the question is empty")
        check_at_least("k", k, 1)
        scores = {
            name: round(score, DECIMALS)
            for name, score in self._score(count_terms(question)).items()
        }
        best = nsmallest(k, scores, key=lambda name: (-scores[name], name))
        return [self._as_found(name, scores[name], rank) for rank, name in enumerate(best, start=1)]

    def fetch(self, ids: Sequence[str]) -> list[Document]:
        """Return passages by their ids, in this order; those that are not there are left out."""
        return [
            self._passages[name].model_copy(update={"id": name})
            for name in dict.fromkeys(ids)
            if name in self._passages
        ]

    def passages(self) -> list[Document]:
        """Return all passages, in the order they came in."""
        return self.fetch([*self._passages])

    def count(self) -> int:
        """Return how many passages there are."""
        return len(self._passages)

    def close(self) -> None:
        """Forget the passages."""
        self._passages, self._terms, self._weights = {}, {}, {}

    def _put(self, name: str, weights: Mapping[int, float]) -> None:
        for term in self._terms.get(name, ()):
            del self._weights[term][name]
        self._terms[name] = [*weights]
        for term, weight in weights.items():
            self._weights.setdefault(term, {})[name] = weight

    def _score(self, counts: Mapping[int, int]) -> dict[str, float]:
        """Multiply by the inverse document frequency, as Qdrant's IDF modifier does."""
        n = len(self._passages)
        scores: dict[str, float] = defaultdict(float)
        for term, count in counts.items():
            having = self._weights.get(term, {})
            asked = count * math.log((n - len(having) + 0.5) / (len(having) + 0.5) + 1)
            for name, weight in having.items():
                scores[name] += weight * asked
        return scores

    def _as_found(self, name: str, score: float, rank: int) -> Document:
        passage = self._passages[name]
        return as_found(name, passage.page_content, passage.metadata, score=score, rank=rank)
