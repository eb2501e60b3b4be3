"""How alike texts are in their words, numbers and abbreviations, weighed by rarity."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import log, sqrt
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Weights = Mapping[str, float]
NumberT = TypeVar("NumberT", np.float32, np.float64)

MAX_SINGLE_THREADED = 8_000_000  # multiplications; beyond, threads are worth it
_LEAST = 1e-6
_TOKENS_AT_ONCE = 4096
_TOKEN = re.compile(r"[a-z]+|\d+(?:\.\d+)?|[α-ω]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ABBREVIATION = re.compile(r"[A-Z](?<!\w[A-Z])[A-Za-z]*[A-Z0-9][A-Za-z0-9-]*\b")
_ASKING = re.compile(
    r"(?:who|what|when|where|which|why|how|whose|is|are|was|were|does|do|did|can|could|should|"
    r"would|will|has|have|had|may|might)\b",
    re.IGNORECASE,
)


def sigmoid(log_odds: NDArray[NumberT]) -> NDArray[NumberT]:
    """Return the probabilities, in [0, 1], of the same shape and kind."""
    return np.asarray(1 / (1 + np.exp(-log_odds)), log_odds.dtype)


def logit(probabilities: Floats) -> Floats:
    """Return the log odds of probabilities, which are held within 1e-6 and 1 - 1e-6."""
    within = np.clip(probabilities, _LEAST, 1 - _LEAST)
    return np.asarray(np.log(within / (1 - within)), np.float64)


def pairwise_dot(left: NDArray[NumberT], right: NDArray[NumberT]) -> NDArray[NumberT]:
    """Return the inner product of each row of one array with each row of another, shape (n, m).

    A small product takes a linear algebra library longer to spread over threads than to compute,
    many times longer where other work keeps the cores busy.
    """
    if left.size * len(right) <= MAX_SINGLE_THREADED:
        return np.asarray(np.einsum("id,jd->ij", left, right), left.dtype)
    return np.asarray(left @ right.T, left.dtype)


def looks_like_claim(question: str) -> bool:
    """Tell whether a question is a claim to be checked: no question mark, no asking word first."""
    text = question.strip()
    return not text.endswith(("?", "？", "؟")) and not _ASKING.match(text)


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
        found = Counter(tokenize(text))
        return {
            token: (1 + log(n)) * log((self.n_passages + 1) / (self.counts.get(token, 0) + 0.5))
            for token, n in found.items()
        }


class LexicalSimilarity(NamedTuple):
    """How alike texts are in their words, and how like the question."""

    between: Floats  # cosines of weighted tokens, shape (n, n), in [0, 1]
    asked: Floats  # the same for question and text, shape (n,)
    between_here: Floats  # as `between`, where tokens common among these very texts weigh less
    asked_here: Floats  # as `asked`, likewise
    numbers: Floats  # see `count_shared_numbers`
    abbreviations: Floats  # see `measure_shared_abbreviations`


def measure_lexical_similarity(
    counts: TokenCounts, question: str, texts: Sequence[str]
) -> LexicalSimilarity:
    """Compare texts with each other and with the question, each weighed once."""
    rows, asked = [counts.weigh(text) for text in texts], counts.weigh(question)
    return LexicalSimilarity(
        *_compute_cosines(rows, asked),
        *_compute_cosines(*_reweigh(rows, asked)),
        count_shared_numbers(texts),
        measure_shared_abbreviations(texts),
    )


def count_shared_numbers(texts: Sequence[str]) -> Floats:
    """Return how many numbers of two digits or more each two texts share, shape (n, n)."""
    found = [frozenset(x for x in _NUMBER.findall(one) if len(x) > 1) for one in texts]
    return _count_shared(found)[0]


def measure_shared_abbreviations(texts: Sequence[str]) -> Floats:
    """Return how many abbreviations each two texts share, by one more than the fewer of them has.

    Shape (n, n), in [0, 1).
    """
    both, sizes = _count_shared([frozenset(_ABBREVIATION.findall(one)) for one in texts])
    fewer = np.minimum(sizes[:, None], sizes[None])
    return np.asarray(both / (1 + fewer), np.float64)


def _reweigh(rows: Sequence[Weights], asked: Weights) -> tuple[Sequence[Weights], Weights]:
    """Multiply a token's weight by ``ln((n + 1) / df)``, over the *n* texts at hand.

    For the question, whose tokens may be in none, it is ``df + 0.5``.
    """
    n_with = Counter(token for row in rows for token in row)
    n = len(rows) + 1
    here = [{token: w * log(n / n_with[token]) for token, w in row.items()} for row in rows]
    return here, {token: w * log(n / (n_with[token] + 0.5)) for token, w in asked.items()}


def _compute_cosines(rows: Sequence[Weights], asked: Weights) -> tuple[Floats, Floats]:
    both = (*rows, asked)
    length = np.array([sqrt(sum(weight * weight for weight in row.values())) for row in both])
    cosines = _compute_dots(both)
    np.fill_diagonal(cosines, length * length)
    length[length == 0] = 1
    cosines /= length[:, None]
    cosines /= length
    return cosines[:-1, :-1], cosines[-1, :-1]


def _compute_dots(rows: Sequence[Weights]) -> Floats:
    """Return the inner product of each two rows, shape (n, n); of one with itself, a part of it.

    Tokens of one row alone add nothing between two, and a table of all others would be large: the
    sum is taken over some of them at a time.
    """
    n_with = Counter(token for row in rows for token in row)
    place = {token: i for i, token in enumerate(token for token, n in n_with.items() if n > 1)}
    cells = [
        (i, place[token], weight)
        for i, row in enumerate(rows)
        for token, weight in row.items()
        if token in place
    ]
    row_of, column, weight = np.array(cells, np.float64).reshape(-1, 3).T
    found = np.zeros((len(rows), len(rows)))
    for first in range(0, len(place), _TOKENS_AT_ONCE):
        here = (column >= first) & (column < first + _TOKENS_AT_ONCE)
        table = np.zeros((len(rows), min(_TOKENS_AT_ONCE, len(place) - first)))
        table[row_of[here].astype(np.int64), (column[here] - first).astype(np.int64)] = weight[here]
        found += pairwise_dot(table, table)
    return found


def _count_shared(sets: Sequence[frozenset[str]]) -> tuple[Floats, Floats]:
    """Return how many tokens each two sets share, shape (n, n), and how many each has."""
    place: dict[str, int] = {}
    for one in sets:
        for token in sorted(one):
            place.setdefault(token, len(place))
    table = np.zeros((len(sets), max(len(place), 1)))
    for row, one in zip(table, sets, strict=True):
        row[[place[token] for token in one]] = 1
    return pairwise_dot(table, table), table.sum(axis=1)
