"""How far a sentence states what kind of thing a question asks for."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from deepera_graph.judges.heuristic.lexicon import CUE_NAMES, count_cues
from deepera_graph.judges.heuristic.topicality import find_acronyms
from deepera_graph.schema import IntentFields
from deepera_graph.text.sentences import Sentence, split_sentences
from deepera_graph.text.words import STOP_WORDS, stem, words

STEPS = 25
LARGEST = 30.0
CLOSE = 1e-8


def sigmoid(value: float) -> float:
    """Map any number into [0, 1]."""
    return 1 / (1 + math.exp(-max(-LARGEST, min(LARGEST, value))))


def fit_logistic(
    rows: Sequence[Sequence[float]],
    labels: Sequence[bool],
    shares: Sequence[float] | None = None,
    *,
    ridge: float = 0.1,
) -> list[float]:
    """Return the intercept, then one weight a column, of a logistic regression.

    Args:
        rows: Features, shape (n_rows, n_columns).
        labels: What is predicted, shape (n_rows,).
        shares: How much each row counts, each > 0, shape (n_rows,); all the same if None.
        ridge: Penalty on the squared weights, > 0; the intercept is free.

    Source:
        Newton's method, Hastie, Tibshirani and Friedman (2009), The Elements of Statistical
        Learning, 4.4.1.
    """
    full = [(1.0, *row) for row in rows]
    shares = shares or [1.0] * len(full)
    weights = [0.0] * len(full[0])
    for _ in range(STEPS):
        step = _newton_step(full, labels, shares, weights, ridge)
        weights = [weight + change for weight, change in zip(weights, step, strict=True)]
        if max(map(abs, step)) < CLOSE:
            break
    return weights


def _newton_step(
    rows: Sequence[Sequence[float]],
    labels: Sequence[bool],
    shares: Sequence[float],
    weights: Sequence[float],
    ridge: float,
) -> list[float]:
    size = len(weights)
    penalty = [0.0] + [ridge] * (size - 1)
    slope = [-p * weight for p, weight in zip(penalty, weights, strict=True)]
    bend = [[penalty[i] if i == j else 0.0 for j in range(size)] for i in range(size)]
    for row, label, share in zip(rows, labels, shares, strict=True):
        chance = sigmoid(sum(w * x for w, x in zip(weights, row, strict=True)))
        spread = share * chance * (1 - chance)
        for i, x in enumerate(row):
            if x:
                slope[i] += share * (label - chance) * x
                scaled = spread * x
                for j in range(size):
                    bend[i][j] += scaled * row[j]
    return _solve(bend, slope)


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a symmetric positive definite system by elimination; changes its arguments."""
    size = len(right)
    for i in range(size):
        for k in range(i + 1, size):
            share = matrix[k][i] / matrix[i][i]
            right[k] -= share * right[i]
            for j in range(i, size):
                matrix[k][j] -= share * matrix[i][j]
    for i in reversed(range(size)):
        known = sum(matrix[i][j] * right[j] for j in range(i + 1, size))
        right[i] = (right[i] - known) / matrix[i][i]
    return right


Sought = Literal["result", "figure", "definition", "procedure"]

HIGHEST_COUNT = 3
# Fitted by `fit` and rounded. Half of the weight has PubMedQA (sentences of results sections
# against those of the other sections of the same 486 abstracts), half SciFact (rationale sentences
# against the other sentences of the same 437 abstracts). Two are set by hand after the rules of
# DeepEra, section 3.2: "mechanism" (fitted 0.2; SciFact alone 1.0) and "speculation" (fitted -0.1).
INTERCEPT = -1.1
CUE_WEIGHTS = {
    "report": 1.1,
    "direction": 0.7,
    "relation": 0.1,
    "significance": 1.1,
    "mechanism": 0.6,
    "contrast": 0.5,
    "negation": 0.9,
    "aim": -1.1,
    "method": -1.2,
    "background": -0.7,
    "speculation": -0.9,
    "inference": 0.7,
    "statistic": 0.3,
    "percentage": 0.9,
    "figure": 0.4,
    "intention": -2.6,
    "passive": -0.2,
    "active": -1.2,
}
# Set by hand: a sentence without a figure is half an answer to a question for one, and for a
# definition or a procedure a sentence of that kind fits a little better than others.
WITHOUT_FIGURE = 0.5
FITTING, OTHER = 0.7, 0.55
_PULLS = tuple(
    tuple(CUE_WEIGHTS[name] * math.log1p(count) for count in range(HIGHEST_COUNT + 1))
    for name in CUE_NAMES
)
_FIGURE = CUE_NAMES.index("figure")
_METHOD = CUE_NAMES.index("method")
_DEFINITION = re.compile(
    r"\b(?:is|are|was|were) (?:an?|the|defined|called|known as|termed)\b"
    r"|\b(?:refers? to|defined as|means that|consists? of|denotes?|termed|called)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SentenceReading:
    """One sentence as the judge reads it.

    Attributes:
        sentence: Where it stands.
        stems: Stems of its content words.
        acronyms: Its acronyms.
        cues: How often each of `CUE_NAMES` occurs.
        grounding: How far it states what is sought, in [0, 1].
    """

    sentence: Sentence
    stems: tuple[str, ...]
    acronyms: tuple[str, ...]
    cues: tuple[int, ...]
    grounding: float


def find_sought(intent: IntentFields) -> Sought:
    """Return what kind of statement an intent asks for; a result unless it says otherwise."""
    if intent["expected_answer_type"] == "procedural":
        return "procedure"
    if intent["intent"] == "definition" and intent["expected_answer_type"] == "descriptive":
        return "definition"
    return "figure" if intent["expected_answer_type"] == "numeric" else "result"


def read_sentences(text: str, kind: Sought) -> list[SentenceReading]:
    """Read every sentence of a passage, in order."""
    return [_read(sentence, kind) for sentence in split_sentences(text)]


def result_grounding(cues: Sequence[int]) -> float:
    """Rough probability, in [0, 1], that a sentence with these cues states a result.

    Args:
        cues: Counts in the order of `CUE_NAMES`; what exceeds 3 does not count.
    """
    total = INTERCEPT
    for pulls, count in zip(_PULLS, cues, strict=True):
        if count:
            total += pulls[count if count < HIGHEST_COUNT else HIGHEST_COUNT]
    return sigmoid(total)


def _read(sentence: Sentence, kind: Sought) -> SentenceReading:
    found = words(sentence.text)
    cues = tuple(count_cues(sentence.text, found))
    return SentenceReading(
        sentence=sentence,
        stems=tuple(stem(word) for word in found if word not in STOP_WORDS),
        acronyms=tuple(find_acronyms(sentence.text)),
        cues=cues,
        grounding=_grounding(sentence.text, cues, kind),
    )


def _grounding(text: str, cues: Sequence[int], kind: Sought) -> float:
    if kind in ("result", "figure"):
        lacks_figure = kind == "figure" and not cues[_FIGURE]
        return result_grounding(cues) * (WITHOUT_FIGURE if lacks_figure else 1)
    fits = _DEFINITION.search(text) if kind == "definition" else cues[_METHOD]
    return FITTING if fits else OTHER
