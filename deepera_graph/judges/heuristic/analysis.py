"""What the rules measure of a passage, each number in [0, 1]: topic, results, data, grounding."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from deepera_graph.judges.heuristic.topicality import (
    CUE_NAMES,
    QuestionTerms,
    Topicality,
    count_cues,
    coverage,
    find_acronyms,
    find_terms,
    measure_topicality,
    read_task_terms,
    sum_counts,
)
from deepera_graph.schema import IntentFields, PassageTask
from deepera_graph.text.held import held
from deepera_graph.text.words import STOP_WORDS, Sentence, split_sentences, stem, stems, words

Sought = Literal["result", "figure", "definition", "procedure"]

LARGEST = 30.0
HIGHEST_COUNT = 3
# Fitted by logistic regression and rounded. Half of the weight has PubMedQA (sentences of results
# sections against those of the other sections of the same 486 abstracts), half SciFact (rationale
# sentences against the other sentences of the same 437 abstracts). Two are set by hand after the
# rules of DeepEra, section 3: "mechanism" (fitted 0.2; SciFact alone 1.0) and "speculation"
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


@held()
def read_sentences(text: str, kind: Sought) -> tuple[SentenceReading, ...]:
    """Read every sentence of a passage, in order."""
    return tuple(_read(sentence, kind) for sentence in split_sentences(text))


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


Terms = Mapping[str, float]
GROUNDED_FLOOR = 0.2


class RuleFeatures(NamedTuple):
    """One passage in numbers."""

    strength: float  # how far the passage names the question's terms, with repetitions and length
    # weighted share of the question's terms, where a term counts as much as the best sentence
    # that names it is grounded
    grounded_coverage: float
    grounded_strength: float  # strength times the mean grounding of the passage's words
    opening: float  # grounding of the first sentence
    closing: float  # grounding of the last sentence
    peak: float  # grounding of the best grounded sentence
    names: float  # share of the question's names that text or title give; 1 if it has none


@dataclass(frozen=True)
class RuleAnalysis:
    """One passage as read for one question."""

    need: QuestionTerms  # what the question asks about
    readings: Sequence[SentenceReading]  # its sentences, in order; at least one
    named: Sequence[Terms]  # the question's terms in each sentence
    topic: Topicality  # how far the passage is on topic
    features: RuleFeatures  # what the score is made of

    @cached_property
    def evidence(self) -> list[float]:
        """How strong each sentence is as evidence, each in [0, 1], shape (n_sentences,)."""
        pairs = zip(self.readings, self.named, strict=True)
        return [_evidence(self.need, *pair) for pair in pairs]

    @property
    def best(self) -> SentenceReading:
        """The sentence that is the strongest evidence, the first of equals."""
        return max(zip(self.evidence, self.readings, strict=True), key=lambda pair: pair[0])[1]


def analyze_passage(task: PassageTask) -> RuleAnalysis | None:
    """Read a passage for a question; None for a blank text."""
    need = read_task_terms(task)
    readings = read_sentences(task["text"], find_sought(task["intent"]))
    if not readings:
        return None
    found = [find_terms(need, reading.stems, reading.acronyms) for reading in readings]
    length = sum(len(reading.stems) for reading in readings)
    topic = measure_topicality(
        need, sum_counts(found), find_terms(need, stems(task["title"]), ()), length
    )
    return RuleAnalysis(
        need=need,
        readings=readings,
        named=found,
        topic=topic,
        features=RuleFeatures(
            strength=topic.strength,
            grounded_coverage=coverage(need, _grounded(readings, found)),
            grounded_strength=topic.strength * _mean_grounding(readings),
            opening=readings[0].grounding,
            closing=readings[-1].grounding,
            peak=max(reading.grounding for reading in readings),
            names=topic.names,
        ),
    )


def _evidence(need: QuestionTerms, reading: SentenceReading, terms: Terms) -> float:
    return reading.grounding * (GROUNDED_FLOOR + (1 - GROUNDED_FLOOR) * coverage(need, terms))


def _grounded(readings: Sequence[SentenceReading], found: Sequence[Terms]) -> Terms:
    best: dict[str, float] = {}
    for reading, terms in zip(readings, found, strict=True):
        for term, count in terms.items():
            best[term] = max(best.get(term, 0.0), reading.grounding * min(count, 1))
    return best


def _mean_grounding(readings: Sequence[SentenceReading]) -> float:
    weights = [len(reading.stems) + 1 for reading in readings]
    grounded = sum(w * reading.grounding for w, reading in zip(weights, readings, strict=True))
    return grounded / sum(weights)
