"""Nearest neighbours of passages, by their meaning (cosines) or by their words (BM25).

Both are exact and by blocks: 100 000 passages need no matrix of all pairs. Scores are rounded to 6
decimals, and equal ones are ordered by id, so that the order passages came in changes nothing.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from deepera_graph.errors import SettingsError
from deepera_graph.stores.embeddings import unit_rows
from deepera_graph.stores.words import AVERAGE_LENGTH, DECIMALS, K1, B, count_terms, weigh_terms

Places = NDArray[np.int32]
Floats = NDArray[np.float32]
Array = NDArray[Any]
NOBODY = -1  # pads a row that has fewer neighbours
MOST_TERMS = 25  # of a passage, as in Lucene's MoreLikeThis (setMaxQueryTerms)
_MARGIN = 16  # more candidates than asked for, as some tie
_CELLS = 1 << 23  # of a block: 32 MB of cosines
_EXACT_ROWS, _EXACT_COLUMNS = 256, 4096


class Nearest(NamedTuple):
    """Neighbours of some passages, nearest first; both of shape (n_rows, k)."""

    places: Places  # `NOBODY` where there are no more
    scores: Floats  # 0 there

    def first(self, k: int) -> "Nearest":
        """Return the nearest *k* of each."""
        return Nearest(self.places[:, :k], self.scores[:, :k])

    def row(self, number: int) -> "Nearest":
        """Return the neighbours that one passage has; both of shape (n,), n <= k."""
        places, scores = self.places[number], self.scores[number]
        return Nearest(places[places != NOBODY], scores[places != NOBODY])


class Space(Protocol):
    """What passages are compared in: one row a passage."""

    kind: ClassVar[str]

    def __len__(self) -> int: ...

    def nearest(self, rows: Array, k: int, ranks: Array) -> Nearest:
        """Return the nearest *k* of some rows among all others."""
        ...

    def drop(self, known: Nearest, gone: Array, k: int, ranks: Array) -> tuple[Self, Nearest]:
        """Return the space without some rows, and the nearest *k* of those that stay."""
        # *known* are the neighbours of all, *gone* is a mask of the rows, *ranks* are of who stays.
        ...

    def extend(self, known: Nearest, more: Self, k: int, ranks: Array) -> tuple[Self, Nearest]:
        """Return the space with the rows of another below, and the nearest *k* of all."""
        ...

    def arrays(self) -> Mapping[str, Array]:
        """Return what it is made of, by the names its constructor has for it."""
        ...


class Meanings:
    """Passages by their vectors: near is what has a high cosine."""

    kind: ClassVar[str] = "meaning"

    def __init__(self, vectors: Floats) -> None:
        self.vectors = vectors  # rows of length 1, shape (n, n_dimensions)

    def __len__(self) -> int:
        return len(self.vectors)

    def nearest(self, rows: Array, k: int, ranks: Array, *, since: int = 0) -> Nearest:
        """Return the nearest *k* by cosine, in [-1, 1], among those from the place *since* on."""
        n_rows = max(1, _CELLS // max(1, len(self)))
        found = [
            self._nearest_of_block(rows[start : start + n_rows], k, ranks, since)
            for start in range(0, len(rows), n_rows)
        ]
        return stack(found, k)

    def drop(self, known: Nearest, gone: Array, k: int, ranks: Array) -> "tuple[Meanings, Nearest]":
        """Renumber the neighbours that stay, and look anew for those of who lost one."""
        kept = np.flatnonzero(~gone)
        space = Meanings(self.vectors[kept])
        renumbered = np.full(len(gone) + 1, NOBODY, np.int32)
        renumbered[kept] = np.arange(len(kept))
        places = known.places[kept]
        found = Nearest(renumbered[places], np.array(known.scores[kept]))
        bereft = np.flatnonzero((gone[places] & (places != NOBODY)).any(axis=1))
        if len(bereft):
            found.places[bereft], found.scores[bereft] = space.nearest(bereft, k, ranks)
        return space, found

    def extend(
        self, known: Nearest, more: "Meanings", k: int, ranks: Array
    ) -> "tuple[Meanings, Nearest]":
        """Look for neighbours of the new rows among all, and for new ones of those known."""
        n_old, (size, new_size) = len(self), (one.vectors.shape[1] for one in (self, more))
        if n_old and new_size != size:
            raise SettingsError(
                f"the graph holds vectors of size {size}, the embeddings made {new_size}"
            )
        space = Meanings(np.concatenate([self.vectors, more.vectors]))
        old = space.nearest(np.arange(n_old), k, ranks, since=n_old)
        new = space.nearest(np.arange(n_old, len(space)), k, ranks)
        both = merge(known, old, k, ranks)
        every = (np.concatenate(pair) for pair in zip(both, new, strict=True))
        return space, Nearest(*every)

    def cosines(self, vector: Sequence[float], places: Sequence[int]) -> list[float]:
        """Return the cosine of a vector and each of some rows, in [-1, 1]."""
        asked, size = unit_rows(vector)[0], self.vectors.shape[1]
        if len(asked) != size:
            raise SettingsError(f"the graph holds vectors of size {size}, got one of {len(asked)}")
        found: list[float] = (self.vectors[places].astype(np.float64) @ asked).tolist()
        return found

    def arrays(self) -> Mapping[str, Array]:
        """Return the vectors."""
        return {"vectors": self.vectors}

    def _nearest_of_block(self, rows: Array, k: int, ranks: Array, since: int) -> Nearest:
        tile = np.asarray(self.vectors[rows]) @ self.vectors[since:].T
        own = np.flatnonzero(rows >= since)
        tile[own, rows[own] - since] = -np.inf
        most = min(k + _MARGIN, tile.shape[1])
        if most < tile.shape[1]:
            places = np.argpartition(-tile, most - 1, axis=1)[:, :most]
        else:
            places = np.tile(np.arange(most), (len(rows), 1))
        places = np.where(np.isneginf(np.take_along_axis(tile, places, 1)), NOBODY, places + since)
        scores = self._exact(rows, places)
        found = order_rows(places, scores, ranks)
        for row in _find_cut_ties(found, k):
            whole = self._whole_row(rows[row], ranks, since).first(k)
            found.places[row, :k], found.scores[row, :k] = whole.places[0], whole.scores[0]
        return found.first(k)

    def _exact(self, rows: Array, places: Array) -> Array:
        """Return rounded cosines in double precision, which no block and no order changes."""
        scores = np.empty(places.shape)
        for start in range(0, len(rows), _EXACT_ROWS):
            block = slice(start, start + _EXACT_ROWS)
            own = np.asarray(self.vectors[rows[block]], np.float64)
            others = np.asarray(self.vectors[places[block]], np.float64)
            scores[block] = np.einsum("rcd,rd->rc", others, own)
        return np.where(places == NOBODY, -np.inf, scores.round(DECIMALS))

    def _whole_row(self, row: int, ranks: Array, since: int) -> Nearest:
        """Return all others of one row, in order: where more tie at the end than there is room."""
        others = np.arange(since, len(self))
        others = others[others != row]
        parts = np.array_split(others, max(1, len(others) // _EXACT_COLUMNS))
        one = np.array([row])
        scores = np.concatenate([self._exact(one, part[None])[0] for part in parts])
        return order_rows(others[None], scores[None], ranks)


class Words:
    """Passages by their stems: near is what a search for a passage's own words finds.

    A passage asks with the 25 of its stems that say most, by count times inverse document
    frequency; a score is BM25, as in `deepera_graph.stores.words`. What shares no stem is
    no neighbour.
    """

    kind: ClassVar[str] = "words"

    def __init__(self, starts: Array, terms: Array, counts: Array) -> None:
        self.starts = starts  # where the stems of each passage begin, shape (n + 1,)
        self.terms = terms  # numbers of stems, in rising order within a passage
        self.counts = counts  # how often each occurs in its passage, >= 1

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Words":
        """Count the stems of texts."""
        counted = [count_terms(text) for text in texts]
        starts = np.cumsum([0, *map(len, counted)])
        terms = np.fromiter((term for one in counted for term in one), np.uint32, starts[-1])
        counts = np.fromiter((n for one in counted for n in one.values()), np.uint32, starts[-1])
        return cls(starts, terms, counts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def nearest(self, rows: Array, k: int, ranks: Array) -> Nearest:
        """Return the nearest *k* by BM25, > 0."""
        index = _Postings(self)
        found = [self._nearest_of_row(index, int(row), k, ranks) for row in rows]
        return stack(found, k)

    def weigh_rare(self, terms: Sequence[int]) -> list[float]:
        """Return the inverse document frequency of stems, by their numbers; 0 if none has it."""
        found, n_with = self._frequencies
        n, weights = len(self), []
        for term in terms:
            place = int(np.searchsorted(found, term))
            count = int(n_with[place]) if place < len(found) and found[place] == term else 0
            weights.append(math.log((n - count + 0.5) / (count + 0.5) + 1) if count else 0.0)
        return weights

    def shares(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how much of the most that BM25 can give for a question each text gets."""
        counts = count_terms(question)
        rare = self.weigh_rare([*counts])
        asked = {term: n * one for (term, n), one in zip(counts.items(), rare, strict=True)}
        most = (K1 + 1) * sum(asked.values())
        weights = [weigh_terms(text) for text in texts]
        return [
            sum(asked[term] * one[term] for term in asked.keys() & one) / most if most else 0.0
            for one in weights
        ]

    @cached_property
    def _frequencies(self) -> tuple[Array, Array]:
        """The numbers of all stems, in rising order, and how many passages have each."""
        return np.unique(self.terms, return_counts=True)

    def drop(self, known: Nearest, gone: Array, k: int, ranks: Array) -> "tuple[Words, Nearest]":
        """Look anew for all neighbours, as it changes how rare a stem is."""
        places = np.flatnonzero(~gone)
        lengths = np.diff(self.starts)[places]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        where = np.repeat(self.starts[places] - starts[:-1], lengths) + np.arange(starts[-1])
        space = Words(starts, self.terms[where], self.counts[where])
        return space, space.nearest(np.arange(len(space)), k, ranks)

    def extend(
        self, known: Nearest, more: "Words", k: int, ranks: Array
    ) -> "tuple[Words, Nearest]":
        """Look anew for all neighbours, as it changes how rare a stem is."""
        space = Words(
            np.concatenate([self.starts, more.starts[1:] + self.starts[-1]]),
            np.concatenate([self.terms, more.terms]),
            np.concatenate([self.counts, more.counts]),
        )
        return space, space.nearest(np.arange(len(space)), k, ranks)

    def arrays(self) -> Mapping[str, Array]:
        """Return where stems begin, the stems, and their counts."""
        return {"starts": self.starts, "terms": self.terms, "counts": self.counts}

    @staticmethod
    def _nearest_of_row(index: "_Postings", row: int, k: int, ranks: Array) -> Nearest:
        scores = index.search(row)
        scores[row] = 0
        if np.count_nonzero(scores) > k:
            least = np.partition(scores, len(scores) - k)[len(scores) - k]
            others = np.flatnonzero((scores >= least) & (scores > 0))
        else:
            others = np.flatnonzero(scores)
        return order_rows(others[None], scores[others][None], ranks).first(k)


class _Postings:
    """An inverted index: of each stem the passages that have it, with its BM25 weight there."""

    def __init__(self, words: Words) -> None:
        n = len(words)
        lengths = np.diff(words.starts)
        self._starts, counts = words.starts, words.counts.astype(np.float64)
        found, self._numbers, n_with = np.unique(
            words.terms, return_inverse=True, return_counts=True
        )
        weigh_rare = np.log((n - n_with + 0.5) / (n_with + 0.5) + 1)
        self._asked = counts * weigh_rare[self._numbers]
        self._n_with = n_with
        owners = np.repeat(np.arange(n), lengths)
        totals = np.bincount(owners, counts, minlength=n)[owners]
        held_back = K1 * (1 - B + B * totals / AVERAGE_LENGTH)
        order = np.argsort(self._numbers, kind="stable")
        self._owners = owners[order]
        self._weights = (counts * (K1 + 1) / (counts + held_back))[order]
        self._ends = np.concatenate([[0], np.cumsum(np.bincount(self._numbers, None, len(found)))])
        self._n = n

    def search(self, row: int) -> Array:
        """Return the BM25 score of all passages for the best stems of one; shape (n,)."""
        scores = np.zeros(self._n)
        for number, asked in self._choose(row):
            own = slice(self._ends[number], self._ends[number + 1])
            scores[self._owners[own]] += asked * self._weights[own]
        return scores.round(DECIMALS)

    def _choose(self, row: int) -> Iterator[tuple[int, float]]:
        own = slice(self._starts[row], self._starts[row + 1])
        numbers, asked = self._numbers[own], self._asked[own]
        shared = self._n_with[numbers] > 1  # a stem that nobody else has finds nobody
        numbers, asked = numbers[shared], asked[shared]
        for place in np.lexsort((numbers, -asked))[:MOST_TERMS]:
            yield int(numbers[place]), float(asked[place])


def order_rows(places: Array, scores: Array, ranks: Array) -> Nearest:
    """Sort each row by falling score, equal ones by id; padding comes last."""
    tie = np.where(places == NOBODY, len(ranks), ranks[places]) if places.size else places
    order = np.lexsort((tie, -scores))
    places, scores = (np.take_along_axis(one, order, axis=1) for one in (places, scores))
    scores = np.where(places == NOBODY, 0, scores)
    return Nearest(places.astype(np.int32), scores.astype(np.float32))


def _find_cut_ties(found: Nearest, k: int) -> Array:
    """Return the rows that may have more which tie with the k-th than there are candidates."""
    if found.scores.shape[1] <= k:
        return np.zeros(0, np.intp)
    last = found.scores[:, -1] >= found.scores[:, k - 1]
    return np.flatnonzero(last & (found.places[:, -1] != NOBODY))


def stack(found: Sequence[Nearest], k: int) -> Nearest:
    """Join blocks of rows, each padded to *k* columns."""
    if not found:
        return Nearest(np.full((0, k), NOBODY, np.int32), np.zeros((0, k), np.float32))
    padded = [_pad(one, k) for one in found]
    return Nearest(*(np.concatenate(parts) for parts in zip(*padded, strict=True)))


def _pad(found: Nearest, k: int) -> Nearest:
    n_rows, n = found.places.shape
    places = np.full((n_rows, k), NOBODY, np.int32)
    scores = np.zeros((n_rows, k), np.float32)
    places[:, :n], scores[:, :n] = found
    return Nearest(places, scores)


def merge(one: Nearest, other: Nearest, k: int, ranks: Array) -> Nearest:
    """Return the nearest *k* of both, for the same rows and with no neighbour in both."""
    places = np.concatenate([one.places, other.places], axis=1)
    scores = np.concatenate([one.scores, other.scores], axis=1)
    known = np.where(places == NOBODY, -np.inf, scores)
    return order_rows(places, known, ranks).first(k)


def rank_ids(ids: Sequence[str]) -> Array:
    """Return the rank of each id in the order of ids, from 0."""
    ranks = np.empty(len(ids), np.int64)
    ranks[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    return ranks
