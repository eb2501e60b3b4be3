"""How alike texts are: by the vectors of their tokens, and by their words."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from deepera_graph.text.words import held, split_sentences

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Halves = NDArray[np.float16]
Offsets = NDArray[np.int64]
TokenSpan = slice | NDArray[np.bool_]  # which tokens; a slice where they lie side by side
NumberT = TypeVar("NumberT", np.float32, np.float64)

MAX_SINGLE_THREADED = 8_000_000  # multiplications; beyond, threads are worth it
_LEAST = 1e-6
_PLACES_AT_ONCE = 64
_N_SENTENCES = 2  # best sentences that count


def sigmoid(log_odds: NDArray[NumberT]) -> NDArray[NumberT]:
    """Return the probabilities, in [0, 1], of the same shape and kind."""
    return np.asarray(1 / (1 + np.exp(-log_odds)), log_odds.dtype)


def logit(probabilities: Doubles) -> Doubles:
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


class Parts(NamedTuple):
    """Parts of a text, such as its sentences; at least one."""

    spans: Sequence[TokenSpan]  # which tokens each has
    # vector of each, of length 1, shape (n_parts, n_dimensions), and the mean of its tokens
    units: Floats
    tuned: Floats


@dataclass(frozen=True, eq=False)
class Encoded:
    """A text as its tokens' vectors, shape (n_tokens, n_dimensions), and where they stand.

    The first and the last are the marks of beginning and end. Offsets are the characters that a
    token stands for, shape (n_tokens, 2); empty for the marks. Vectors are held in 16 bits, as they
    are kept on disk; what is computed with them is in 32.

    An encoder that is tuned to compare tokens has lost a part of what the mean of a text's tokens
    said before: *projection* brings such a mean back to where it was, for comparing whole texts.
    """

    tokens: Halves
    offsets: Offsets
    # a row for each dimension that comes of it, shape (n_dimensions, n_dimensions); None: no change
    projection: Floats | None = None

    @property
    def vectors(self) -> Floats:
        """The tokens' vectors in 32 bits."""
        return self.tokens.astype(np.float32)

    @property
    def units(self) -> Floats:
        """Token vectors of length 1, made anew: held, they would take twice what `tokens` do."""
        return normalize(self.vectors)

    @cached_property
    def mean(self) -> Floats:
        """Vector of the whole text, of length 1, shape (n_dimensions,)."""
        return self._project(self.tuned_mean)

    @cached_property
    def tuned_mean(self) -> Floats:
        """The mean of its tokens, of length 1, shape (n_dimensions,)."""
        return normalize(self.vectors.mean(axis=0))

    def _project(self, tuned: Floats) -> Floats:
        """Return the vectors of texts whose tokens have these means; both are of length 1."""
        if self.projection is None:
            return tuned
        return normalize(pairwise_dot(np.atleast_2d(tuned), self.projection).reshape(tuned.shape))

    def join(self, title: "Encoded") -> tuple[Floats, Floats]:
        """Return `mean` and `tuned_mean` of text and title together; the title without its marks.

        What was found is held for the next question, as long as the title is.
        """
        if title not in self._joined:
            both = np.concatenate([self.vectors, title.vectors[1:-1]])
            tuned = normalize(both.mean(axis=0))
            self._joined[title] = self._project(tuned), tuned
        return self._joined[title]

    @cached_property
    def _joined(self) -> "WeakKeyDictionary[Encoded, tuple[Floats, Floats]]":
        return WeakKeyDictionary()

    def find_word(self, text: str, word: str) -> Floats | None:
        """Return the vector of a word, in lower case, of the text that this is; of length 1.

        It is that of its first place; None if the text does not have it, or is cut before it.
        """
        start = text.lower().find(word)
        begins, ends = self.offsets[:, 0], self.offsets[:, 1]
        within = (ends > begins) & (begins < start + len(word)) & (ends > start)
        if start < 0 or not within.any():
            return None
        return normalize(normalize(self.vectors[within]).mean(axis=0))

    def find_parts(self, places: tuple[tuple[int, int], ...]) -> Parts:
        """Return the parts within each two characters, start and end; all of it if there is none.

        What was found is held for the next question.
        """
        if places not in self._parts:
            spans = self.find_spans(places) or [slice(None)]
            vectors = self.vectors
            owns = [vectors[span] for span in spans]
            sums = np.stack([np.add.reduce(own, axis=0) for own in owns])
            means = np.asarray(sums / np.array([[len(own)] for own in owns]), np.float32)
            tuned = normalize(means)
            self._parts[places] = Parts(spans, self._project(tuned), tuned)
        return self._parts[places]

    @cached_property
    def _parts(self) -> dict[tuple[tuple[int, int], ...], Parts]:
        return {}

    def find_spans(self, places: Sequence[tuple[int, int]]) -> list[TokenSpan]:
        """Tell which tokens lie within each two characters, start and end; all, if none do."""
        found: list[TokenSpan] = []
        for start in range(0, len(places), _PLACES_AT_ONCE):
            found += self._find_spans(places[start : start + _PLACES_AT_ONCE])
        return found

    def _find_spans(self, places: Sequence[tuple[int, int]]) -> list[TokenSpan]:
        starts, ends = np.array(places, np.int64).T[:, :, None]
        first, last = self.offsets.T
        inside = (first >= starts) & (last <= ends) & (last > first)
        n_inside = inside.sum(axis=1)
        begin = inside.argmax(axis=1)
        end = inside.shape[1] - inside[:, ::-1].argmax(axis=1)
        rows = zip(begin, end, n_inside, inside, strict=True)
        return [_span(int(a), int(b), int(n), row) for a, b, n, row in rows]


def _span(begin: int, end: int, n_inside: int, inside: NDArray[np.bool_]) -> TokenSpan:
    if not n_inside:
        return slice(None)
    return slice(begin, end) if end - begin == n_inside else inside.copy()


def without_marks(tokens: Floats) -> Floats:
    """Return the vectors of a text's tokens without its marks, unless there is nothing else."""
    return tokens[1:-1] if len(tokens) > 2 else tokens


def normalize(vectors: Floats) -> Floats:
    """Return vectors scaled to length 1, along the last axis."""
    length = np.sqrt(np.add.reduce(vectors * vectors, axis=-1, keepdims=True))
    return np.asarray(vectors / np.maximum(length, 1e-12), dtype=np.float32)


class Alignment(NamedTuple):
    """Means over the question's tokens of the cosine of the nearest token, each in [-1, 1].

    Source:
        Khattab and Zaharia (2020), ColBERT, section 3.3 (late interaction, MaxSim); there a sum
        over the tokens of a query, here their mean, so that questions of any length compare.
    """

    passage: float  # the nearest of title and text
    sentences: float  # the same within one sentence, the mean of the two best
    title: float  # the nearest of the title; 0 without one


def align_passage(
    question: Encoded, text: str, body: Encoded, title: Encoded | None = None
) -> Alignment:
    """Align a text that is not blank, encoded as *body*, and its title with a question."""
    asked = without_marks(question.units)
    in_text = pairwise_dot(asked, body.units)
    named = None if title is None else pairwise_dot(asked, without_marks(title.units)).max(axis=1)
    nearest = without_marks(in_text.T).max(axis=0)
    return Alignment(
        passage=float((nearest if named is None else np.maximum(nearest, named)).mean()),
        sentences=_align_sentences(in_text, text, body),
        title=0.0 if named is None else float(named.mean()),
    )


def _align_sentences(whole: Floats, text: str, body: Encoded) -> float:
    spans = body.find_parts(tuple((one.start, one.end) for one in split_sentences(text))).spans
    found = sorted((float(whole[:, span].max(axis=1).mean()) for span in spans), reverse=True)
    return float(np.mean(found[:_N_SENTENCES]))


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
