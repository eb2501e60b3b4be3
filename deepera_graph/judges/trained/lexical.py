"""How alike texts are in their words, and how like a question."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judges.trained.reading.vectors import Doubles, pairwise_dot
from deepera_graph.text.words import held

Weights = Mapping[str, float]

_TOKENS_AT_ONCE = 4096
_TOKEN = re.compile(r"[a-z]+|\d+(?:\.\d+)?|[α-ω]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ABBREVIATION = re.compile(r"[A-Z](?<!\w[A-Z])[A-Za-z]*[A-Z0-9][A-Za-z0-9-]*\b")


def tokenize(text: str) -> list[str]:
    """Return words in lower case and numbers."""
    return _TOKEN.findall(text.lower().replace("·", "."))


class TokenCounts:
    """How many of *n_passages* background passages each token is in; a missing one is in none."""

    def __init__(self, n_passages: int, counts: Mapping[str, int]) -> None:
        self.n_passages, self.counts = n_passages, counts

    def weigh(self, text: str) -> dict[str, float]:
        """Return each token's weight: how often it occurs, damped, times how rare it is.

        Source:
            ``(1 + ln tf) * ln((N + 1) / (df + 0.5))``, Salton and Buckley (1988), table 1.
        """
        return dict(_weigh(text, self))


@held()
def _weigh(text: str, counts: TokenCounts) -> Weights:
    found = Counter(tokenize(text))
    n, n_with = counts.n_passages + 1, counts.counts
    return {
        token: (1 + log(n_here)) * log(n / (n_with.get(token, 0) + 0.5))
        for token, n_here in found.items()
    }


class LexicalSimilarity(NamedTuple):
    """How alike texts are in their words, and how like the question."""

    between: Doubles  # cosines of weighted tokens, shape (n, n), in [0, 1]
    asked: Doubles  # the same for question and text, shape (n,)
    between_here: Doubles  # as `between`, where tokens common among these very texts weigh less
    asked_here: Doubles  # as `asked`, likewise
    numbers: Doubles  # see `count_shared_numbers`
    abbreviations: Doubles  # see `measure_shared_abbreviations`


def measure_lexical_similarity(
    counts: TokenCounts, question: str, texts: Sequence[str]
) -> LexicalSimilarity:
    """Compare texts with each other and with the question, each weighed once."""
    found = _list_tokens([_weigh(text, counts) for text in (*texts, question)])
    return LexicalSimilarity(
        *_compute_cosines(found, found.weight),
        *_compute_cosines(found, _reweigh(found)),
        count_shared_numbers(texts),
        measure_shared_abbreviations(texts),
    )


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The tokens of some texts and, last, of a question, one text after the other."""

    n_rows: int  # number of texts, the question with them
    row: NDArray[np.int64]  # text of each token, from 0, shape (n_tokens,)
    token: NDArray[np.int64]  # which one it is, numbered as they come, shape (n_tokens,)
    weight: Doubles  # shape (n_tokens,)


def _list_tokens(rows: Sequence[Weights]) -> _Tokens:
    number: dict[str, int] = {}
    return _Tokens(
        n_rows=len(rows),
        row=np.repeat(np.arange(len(rows)), [len(row) for row in rows]),
        token=np.array([number.setdefault(one, len(number)) for row in rows for one in row], int),
        weight=np.array([weight for row in rows for weight in row.values()], np.float64),
    )


def count_shared_numbers(texts: Sequence[str]) -> Doubles:
    """Return how many numbers of two digits or more each two texts share, shape (n, n)."""
    return _count_shared([_find_numbers(one) for one in texts])[0]


def measure_shared_abbreviations(texts: Sequence[str]) -> Doubles:
    """Return how many abbreviations each two texts share, by one more than the fewer of them has.

    Shape (n, n), in [0, 1).
    """
    both, sizes = _count_shared([_find_abbreviations(one) for one in texts])
    fewer = np.minimum(sizes[:, None], sizes[None])
    return np.asarray(both / (1 + fewer), np.float64)


@held()
def _find_numbers(text: str) -> frozenset[str]:
    return frozenset(one for one in _NUMBER.findall(text) if len(one) > 1)


@held()
def _find_abbreviations(text: str) -> frozenset[str]:
    return frozenset(_ABBREVIATION.findall(text))


def _reweigh(found: _Tokens) -> Doubles:
    """Multiply a token's weight by ``ln((n + 1) / df)``, over the *n* texts at hand.

    For the question, whose tokens may be in none, it is ``df + 0.5``.
    """
    n = found.n_rows
    is_asked = found.row == n - 1
    in_each = np.bincount(found.token[~is_asked], minlength=len(found.token))
    n_with = in_each[found.token]
    in_texts = np.array([0.0, *(log(n / k) for k in range(1, n))])
    in_question = np.array([log(n / (k + 0.5)) for k in range(n)])
    rarity = np.where(is_asked, in_question[n_with], in_texts[n_with])
    return np.asarray(found.weight * rarity, np.float64)


def _compute_cosines(found: _Tokens, weight: Doubles) -> tuple[Doubles, Doubles]:
    length = np.sqrt(np.bincount(found.row, weight * weight, found.n_rows))
    cosines = _compute_dots(found, weight)
    np.fill_diagonal(cosines, length * length)
    length[length == 0] = 1
    cosines /= length[:, None]
    cosines /= length
    return cosines[:-1, :-1], cosines[-1, :-1]


def _compute_dots(found: _Tokens, weight: Doubles) -> Doubles:
    """Return the inner product of each two rows, shape (n, n); of one with itself, a part of it.

    Tokens of one row alone add nothing between two, and a table of all others would be large: the
    sum is taken over some of them at a time.
    """
    is_shared = np.bincount(found.token) > 1
    place = (np.cumsum(is_shared) - 1)[found.token]
    in_two = is_shared[found.token]
    dots = np.zeros((found.n_rows, found.n_rows))
    for first in range(0, np.count_nonzero(is_shared), _TOKENS_AT_ONCE):
        column = place - first
        here = in_two & (column >= 0) & (column < _TOKENS_AT_ONCE)
        table = np.zeros((found.n_rows, int(column[here].max()) + 1))
        table[found.row[here], column[here]] = weight[here]
        dots += pairwise_dot(table, table)
    return dots


def _count_shared(sets: Sequence[frozenset[str]]) -> tuple[Doubles, Doubles]:
    """Return how many tokens each two sets share, shape (n, n), and how many each has."""
    place: dict[str, int] = {}
    for one in sets:
        for token in sorted(one):
            place.setdefault(token, len(place))
    table = np.zeros((len(sets), max(len(place), 1)))
    for row, one in zip(table, sets, strict=True):
        row[[place[token] for token in one]] = 1
    return pairwise_dot(table, table), table.sum(axis=1)
