"""What one passage shows for one question, in numbers; and how alike texts are in their words."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judges.heuristic.analysis import RuleFeatures, analyze_passage
from deepera_graph.judges.trained.reading.encoder import Encoded, Floats, TokenSpan
from deepera_graph.schema import PassageTask
from deepera_graph.text.questions import looks_like_claim
from deepera_graph.text.words import held, split_sentences

Doubles = NDArray[np.float64]

Weights = Mapping[str, float]
NumberT = TypeVar("NumberT", np.float32, np.float64)

MAX_SINGLE_THREADED = 8_000_000  # multiplications; beyond, threads are worth it
_LEAST = 1e-6
_TOKENS_AT_ONCE = 4096
_TOKEN = re.compile(r"[a-z]+|\d+(?:\.\d+)?|[α-ω]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ABBREVIATION = re.compile(r"[A-Z](?<!\w[A-Z])[A-Za-z]*[A-Z0-9][A-Za-z0-9-]*\b")


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


_FOUND = 0.6  # a question token has its counterpart from this cosine on


class PassageFeatures(NamedTuple):
    """One passage in numbers.

    "Match" is late interaction (ColBERT, Khattab and Zaharia 2020, section 3): each question token
    takes the passage token most like it. "Role" is the log odds that a text reports results.
    """

    cosine: float  # of question and passage
    match: float  # mean over the question's tokens of the best cosine with a passage token
    match_least: float  # the same for the question token that is matched worst
    match_least3: float  # mean of the three matched worst
    found: float  # share of the question's tokens matched at 0.6 or better
    sentence_cosine: float  # of question and the sentence closest to it
    sentence_cosine_mean: float  # mean over the sentences
    first_cosine: float  # of question and first sentence
    last_cosine: float  # of question and last sentence
    sentence_match: float  # match of the sentence that is matched best
    sentence_match_mean: float  # mean over the sentences
    length: float  # natural logarithm of the number of characters
    n_sentences: float  # number of sentences
    grounding: float  # mean grounding of the sentences, by the rules
    grounding_spread: float  # its standard deviation
    # strength, grounded_coverage, grounded_strength, opening, closing, peak, names: those of the
    # rules judge
    strength: float
    grounded_coverage: float
    grounded_strength: float
    opening: float
    closing: float
    peak: float
    names: float
    is_question: float  # 1 for a question, 0 for a claim
    question_length: float  # number of the question's tokens
    role: float  # of the passage
    # role_best, role_mean, role_first, role_last: of its sentences
    role_best: float
    role_mean: float
    role_first: float
    role_last: float
    # role_of_match, role_of_cosine: of the sentence with the best match, and cosine
    role_of_match: float
    role_of_cosine: float
    # result_cosine, result_match: best product of a sentence's cosine or match and the
    # probability that it reports results
    result_cosine: float
    result_match: float


@dataclass(frozen=True, slots=True)
class PassageVectors:
    """A passage, whatever the question."""

    # vectors of its tokens, of length 1, shape (n_tokens, n_dimensions): those of the text, and
    # after them those of the title
    tokens: Floats
    vector: Floats  # of title and text, of length 1, shape (n_dimensions,)
    body: Floats  # of the text alone
    n_in_text: int  # number of the text's tokens
    spans: Sequence[TokenSpan]  # which of them each sentence has
    sentences: Floats  # vectors of its sentences, of length 1, shape (n_sentences, n_dimensions)


@dataclass(frozen=True, slots=True)
class PassageMatch:
    """A passage for one question, but for what the results classifier says."""

    plain: tuple[float, ...]  # the features before `role`, shape (n_plain,)
    # vector, body, sentences: see `PassageVectors`
    vector: Floats
    body: Floats
    sentences: Floats
    cosines: Floats  # of question and each sentence, shape (n_sentences,)
    # how well each sentence matches each token of the question, shape (n_sentences, n_asked)
    tokens: Floats

    @property
    def matches(self) -> Floats:
        """Match of each sentence, shape (n_sentences,)."""
        return np.asarray(self.tokens.mean(axis=1), np.float32)


@dataclass(frozen=True, slots=True)
class PassageReading:
    """A passage as read for a question."""

    features: PassageFeatures
    vector: Floats  # of title and text, of length 1, shape (n_dimensions,)
    tokens: Floats  # see `PassageMatch`


@dataclass(frozen=True, slots=True)
class ResultsClassifier:
    """Tells sentences and passages that report results: two logistic regressions on unit vectors.

    Weights are of shape (n_dimensions,); each start is added.
    """

    passage: Doubles
    passage_start: float
    sentence: Doubles
    sentence_start: float

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the model that `to_dict` gave."""
        return cls(
            passage=np.array(plain["passage"], np.float64),
            passage_start=float(plain["passage_start"]),
            sentence=np.array(plain["sentence"], np.float64),
            sentence_start=float(plain["sentence_start"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the model as lists and numbers."""
        return {
            "passage": self.passage.tolist(),
            "passage_start": self.passage_start,
            "sentence": self.sentence.tolist(),
            "sentence_start": self.sentence_start,
        }

    def predict_passages(self, vectors: Floats) -> Doubles:
        """Return the log odds of each passage; *vectors* have the shape (n, n_dimensions)."""
        return np.asarray(vectors @ self.passage + self.passage_start, np.float64)

    def predict_sentences(self, vectors: Floats) -> Doubles:
        """Return the log odds of each sentence; *vectors* have the shape (n, n_dimensions)."""
        return np.asarray(vectors @ self.sentence + self.sentence_start, np.float64)


def join_title(title: str, text: str) -> str:
    """Return a passage as one text."""
    return f"{title}. {text}" if title else text


def vectorize_passage(text: str, body: Encoded, title: Encoded | None = None) -> PassageVectors:
    """Find the sentences of a text that is not blank, encoded as *body*.

    Title and text are encoded apart: whether a text reports results is read off its vectors, and
    a title that the encoder saw beside it would hide that.
    """
    parts = body.find_parts(tuple((one.start, one.end) for one in split_sentences(text)))
    if title is None:
        tokens, vector = body.units, body.mean
    else:
        tokens = np.concatenate([body.units, title.units[1:-1]])
        vector = body.join(title)
    return PassageVectors(
        tokens=tokens,
        vector=vector,
        body=body.mean,
        n_in_text=len(body.tokens),
        spans=parts.spans,
        sentences=parts.units,
    )


def match_passage(question: Encoded, task: PassageTask, passage: PassageVectors) -> PassageMatch:
    """Compare the passage of a task, whose text is not blank, with its question."""
    asked = question.units[1:-1] if len(question.units) > 2 else question.units
    similarity = pairwise_dot(asked, passage.tokens)
    matched = similarity.max(axis=1)
    worst = np.sort(matched)
    cosines = pairwise_dot(passage.sentences, question.mean[None])[:, 0]
    in_text = similarity[:, : passage.n_in_text]
    best = np.stack([in_text[:, span].max(axis=1) for span in passage.spans])
    matches = best.mean(axis=1)
    grounding, by_rules = _measure_by_rules(task)
    plain = (
        float(pairwise_dot(question.mean[None], passage.vector[None])[0, 0]),
        _mean(matched),
        float(worst[0]),
        _mean(worst[:3]),
        float(np.count_nonzero(matched > _FOUND) / len(matched)),
        float(cosines.max()),
        _mean(cosines),
        float(cosines[0]),
        float(cosines[-1]),
        float(matches.max()),
        _mean(matches),
        log(max(len(join_title(task["title"], task["text"])), 1)),
        float(len(passage.spans)),
        _mean(grounding),
        float(grounding.std()),
        *by_rules,
        0.0 if looks_like_claim(task["question"]) else 1.0,
        float(len(asked)),
    )
    return PassageMatch(plain, passage.vector, passage.body, passage.sentences, cosines, best)


def complete_features(match: PassageMatch, classifier: ResultsClassifier) -> PassageReading:
    """Add what the results classifier says."""
    roles = classifier.predict_sentences(match.sentences)
    results = sigmoid(roles)
    matches = match.matches
    evidence = matches * results
    by_role = (
        float(classifier.predict_passages(match.body[None])[0]),
        float(roles.max()),
        _mean(roles),
        float(roles[0]),
        float(roles[-1]),
        float(roles[matches.argmax()]),
        float(roles[match.cosines.argmax()]),
        float((match.cosines * results).max()),
        float(evidence.max()),
    )
    features = PassageFeatures._make((*match.plain, *by_role))
    return PassageReading(features, match.vector, match.tokens)


def _mean(values: Floats | Doubles) -> float:
    """Return what `values.mean()` does, in a third of its time."""
    return float(np.add.reduce(values) / len(values))


def _measure_by_rules(task: PassageTask) -> tuple[Floats, tuple[float, ...]]:
    found = analyze_passage(task)
    if found is None:
        return np.zeros(1, np.float32), (0.0,) * len(RuleFeatures._fields)
    groundings = np.array([one.grounding for one in found.readings], np.float32)
    return groundings, tuple(found.features)
