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

Sought = Literal["result", "figure", "definition", "procedure"]

LARGEST = 30.0
HIGHEST_COUNT = 3
# Fitted by logistic regression and rounded. Half of the weight has PubMedQA (sentences of results
# sections against those of the other sections of the same 486 abstracts), half SciFact (rationale
# sentences against the other sentences of the same 437 abstracts). Two are set by hand after the
# rules of DeepEra, section 3.2: "mechanism" (fitted 0.2; SciFact alone 1.0) and "speculation"
# (fitted -0.1).
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

    Stems are of its content words, cues the counts of `CUE_NAMES`; grounding tells how far it
    states what is sought, in [0, 1].
    """

    sentence: Sentence
    stems: tuple[str, ...]
    acronyms: tuple[str, ...]
    cues: tuple[int, ...]
    grounding: float


def sigmoid(value: float) -> float:
    """Map any number into [0, 1]."""
    return 1 / (1 + math.exp(-max(-LARGEST, min(LARGEST, value))))


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
    """Rough probability, in [0, 1], that a sentence states a result; counts beyond 3 do not count.

    The counts are in the order of `CUE_NAMES`.
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
