"""What the rules judge measures about one passage, each number in [0, 1]."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from deepera_graph.judges.heuristic.grounding import SentenceReading, find_sought, read_sentences
from deepera_graph.judges.heuristic.topicality import (
    QuestionTerms,
    Topicality,
    coverage,
    find_terms,
    measure_topicality,
    read_task_terms,
    sum_counts,
)
from deepera_graph.schema import PassageTask
from deepera_graph.text.words import stems

Terms = Mapping[str, float]
GROUNDED_FLOOR = 0.2


class RuleFeatures(NamedTuple):
    """One passage in numbers.

    Attributes:
        strength: How far the passage names the question's terms, with repetitions and length.
        grounded_coverage: Weighted share of the question's terms, where a term counts as much as
            the best sentence that names it is grounded.
        grounded_strength: Strength times the mean grounding of the passage's words.
        opening: Grounding of the first sentence.
        closing: Grounding of the last sentence.
        peak: Grounding of the best grounded sentence.
        names: Share of the question's names that text or title give; 1 if it has none.
    """

    strength: float
    grounded_coverage: float
    grounded_strength: float
    opening: float
    closing: float
    peak: float
    names: float


@dataclass(frozen=True, slots=True)
class RuleAnalysis:
    """One passage as read for one question.

    Attributes:
        readings: Its sentences, in order; at least one.
        evidence: How strong each sentence is as evidence, each in [0, 1], shape (n_sentences,).
        topic: How far the passage is on topic.
        features: What the score is made of.
    """

    readings: Sequence[SentenceReading]
    evidence: Sequence[float]
    topic: Topicality
    features: RuleFeatures

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
        readings=readings,
        evidence=[_evidence(need, *pair) for pair in zip(readings, found, strict=True)],
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
