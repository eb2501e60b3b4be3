"""What the rules measure of a passage, each number in [0, 1], and what anybody can check of it."""

import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal, NamedTuple

from deepera_graph.judges.heuristic.topicality import (
    BEGINNING,
    CUE_FORMS,
    CUE_NAMES,
    NO_RESULT,
    VERBS,
    QuestionTerms,
    Topicality,
    count_cues,
    count_plans,
    coverage,
    find_acronyms,
    find_terms,
    is_listed,
    measure_topicality,
    read_question_terms,
    same_meaning,
)
from deepera_graph.schema import IntentFields, PassageTask, Window
from deepera_graph.text.words import (
    STOP_WORDS,
    Sentence,
    content_words,
    held,
    is_general,
    rarity,
    split_sentences,
    stem,
    stems,
    words,
)

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
    """Rough probability in [0, 1] that a sentence states a result; counts beyond 3 do not count."""
    # The counts are in the order of `CUE_NAMES`.
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
        return [
            reading.grounding * (GROUNDED_FLOOR + (1 - GROUNDED_FLOOR) * coverage(self.need, terms))
            for reading, terms in zip(self.readings, self.named, strict=True)
        ]

    @property
    def best(self) -> SentenceReading:
        """The sentence that is the strongest evidence, the first of equals."""
        return max(zip(self.evidence, self.readings, strict=True), key=lambda pair: pair[0])[1]


def analyze_passage(task: PassageTask) -> RuleAnalysis | None:
    """Read a passage for a question; None for a blank text."""
    need = read_question_terms(task["question"], task["intent"]["entity_type"])
    readings = read_sentences(task["text"], find_sought(task["intent"]))
    if not readings:
        return None
    found = [find_terms(need, reading.stems, reading.acronyms) for reading in readings]
    grounded: dict[str, float] = {}
    for reading, terms in zip(readings, found, strict=True):
        for term, count in terms.items():
            value = reading.grounding * min(count, 1)
            grounded[term] = max(grounded.get(term, 0.0), value)
    lengths = [len(reading.stems) for reading in readings]
    weighed = sum((n + 1) * one.grounding for n, one in zip(lengths, readings, strict=True))
    mean = weighed / sum(n + 1 for n in lengths)
    topic = measure_topicality(
        need, found, find_terms(need, stems(task["title"]), ()), sum(lengths)
    )
    return RuleAnalysis(
        need=need,
        readings=readings,
        named=found,
        topic=topic,
        features=RuleFeatures(
            strength=topic.strength,
            grounded_coverage=coverage(need, grounded),
            grounded_strength=topic.strength * mean,
            opening=readings[0].grounding,
            closing=readings[-1].grounding,
            peak=max(reading.grounding for reading in readings),
            names=topic.names,
        ),
    )


GROUNDED = 0.5
_TELLING = ("direction", "relation", "mechanism", "report")
FAINT = frozenset(("least", "most", "same", "more", "less", "later", "earlier", "older"))
_NUMBER = re.compile(
    r"\b[pP]\s?[<>=≤≥]\s?\d?[.·]\d+|\b(?:OR|RR|HR|aOR)\b[^\d;]{0,4}\d+[.·]\d+|\d+(?:[.·]\d+)?\s?%"
    r"(?!\s?-?(?:CI|CrI|UI|HDI|(?:confidence|credible|uncertainty))\b)"
)
# A share that tells of what a sentence speaks, not what it found: "with more than 20% forest".
_OF_WHAT = re.compile(
    r"(?<!associated )(?<!linked )\bwith\s+"
    r"(?:(?:more|less|fewer)\s+than|over|under|at\s+least|up\s+to)\s+$"
)
_INSTEAD = {
    "aim": "an aim",
    "intention": "an aim",
    "method": "a method",
    "background": "background",
    "speculation": "a supposition",
}


def explain(study: RuleAnalysis, kind: Sought) -> str:
    """Say what the best sentence states and how much of the question the passage names."""
    # For instance ``states a result: 'decreased', p = 0.02; names 5 of 6 question terms``.
    topic, best = study.topic, study.best
    if kind not in ("result", "figure"):
        stated = f"read for a {kind}"
    elif best.grounding < GROUNDED:
        stated = _describe_lack(best)
    else:
        stated = _describe_result(best)
    return f"{stated}; names {topic.n_found} of {topic.n_terms} question terms"


def _describe_result(reading: SentenceReading) -> str:
    return ": ".join(filter(None, ("states a result", ", ".join(list_signs(reading)))))


def list_signs(reading: SentenceReading) -> list[str]:
    """Return the word that tells of a result, in quotation marks, and a number; as far as found."""
    text = NO_RESULT.sub("", reading.sentence.text)
    found = words(text)
    told = [word for cue in _TELLING for word in found if word in CUE_FORMS[cue]]
    telling = [word for word in told if word not in FAINT] or told
    numbers = _NUMBER.finditer(text)
    results = (one[0] for one in numbers if not _OF_WHAT.search(text, 0, one.start()))
    return [*(f"'{word}'" for word in telling[:1]), *islice(results, 1)]


def _describe_lack(reading: SentenceReading) -> str:
    pulls = {
        _INSTEAD[name]: CUE_WEIGHTS[name] * count
        for name, count in count_plans(reading.sentence.text).items()
        if count and name in _INSTEAD
    }
    if not pulls:
        return "states no result"
    return f"states no result, reads like {min(pulls, key=pulls.__getitem__)}"


_SHORTEST = 5  # letters of a word that may be missed; shorter ones have too many other forms
_RARE = 0.8  # rarity from which on a word is the name of something, if no list has it
# how like a word, as a cosine, what a text has must be to stand for it; see `find_missing`
_LIKE_LISTED, _LIKE_RARE, _LIKE_NAME, _LIKE_NOTHING = 0.37, 0.32, 0.40, 2.0
_NAME = re.compile(  # IL-6, p53, PM2.5, SARS-CoV-2
    r"(?<![\w-])(?=[^\W\d_]{0,2}[A-Z\d-])[^\W\d_]+(?:[-‐‑]?[^\W\d_]+)*[-‐‑]?"
    r"\d(?:[^\W_]|\.(?=\d))*(?:[-‐‑][^\W_]+)*"
)
_BY_PLACES = re.compile(r"(?<![\w,.-])\d+(?:,\d+)+[-‐‑][A-Z]\b")  # 2,4-D


def find_missing(
    question: str, texts: Sequence[str], *, shortest: int = _SHORTEST
) -> dict[str, float]:
    """Return the words of a question that name its subject and occur in no text in any form."""
    # They are words of a science, not such as any question may use, words of hardly any abstract,
    # and names with a number. Other forms are those with the same beginning or stem, the listed
    # words of the same meaning, and abbreviations of either. With each stands the cosine from which
    # on what a text has may stand for it. A listed word may be as short as *shortest*.
    whole = " ".join(texts).lower()
    absent = {
        word: _LIKE_LISTED if is_listed(word) else _LIKE_RARE
        for word in content_words(question)
        if _tells(word, shortest) and stem(word)[:BEGINNING] not in whole
    }
    for pattern, like in ((_NAME, _LIKE_NAME), (_BY_PLACES, _LIKE_NOTHING)):
        named = (name for name in pattern.findall(question) if not _has_name(whole, name))
        absent |= dict.fromkeys(named, like)
    if not absent or not texts:
        return {}
    need = read_question_terms(question, "")
    found = {term for text in texts for term in find_terms(need, stems(text), find_acronyms(text))}
    return {word: like for word, like in absent.items() if same_meaning(stem(word)) not in found}


def _tells(word: str, shortest: int) -> bool:
    if not word.isalpha() or len(word) < shortest or is_general(word):
        return False
    return is_listed(word) or (len(word) >= _SHORTEST and rarity(stem(word)) >= _RARE)


def _has_name(text: str, name: str) -> bool:
    """Whether a text in lower case has a name, with or without its hyphens, or what begins so."""
    parts = re.findall(r"\d+(?:[.,]\d+)*|[^\W\d_]+", name.lower())
    pattern = r"[\W_]{0,2}".join(map(re.escape, parts))
    return re.search(rf"(?<![^\W_]){pattern}(?!\d)", text) is not None


MOST_NAMED = 4  # words of each kind
# letters that no word of a passage may begin with if a word of the question is lacking; shorter
# words have forms that begin in another way, as *kept*: one is named only where no longer one is
_BEGINNING, _LEAST = 4, 5
_LEAST_LISTED, _LEAST_RARE = 0.4, 0.7  # rarity of a short word that is named


def explain_quote(question: str, window: Window, quote: str) -> str:
    """Say which words of a question a passage has and lacks, and how its quote reads."""
    # For instance ``has wax, apples; lacks storage; quote states a result: 'fallen', 31%``. A word
    # is had if one of the same stem is there; one of which there is only another form, such as its
    # abbreviation, is neither had nor lacked. Of many words the first are named.
    has, lacks = find_words(question, f"{window['title']} {window['text']}")
    readings = read_sentences(quote, "result")
    best = max(readings, key=lambda one: one.grounding, default=None)
    parts = (
        _name("has", has),
        _name("lacks", lacks),
        f"quote {_describe(best)}" if best is not None else "",
    )
    return "; ".join(filter(None, parts))


def find_words(question: str, text: str) -> tuple[list[str], list[str]]:
    """Return the telling words of a question that a text has, and those that it has in no form."""
    telling = [one for one in dict.fromkeys(content_words(question)) if not is_general(one)]
    inside, beginnings = stems(text), {one[:_BEGINNING] for one in words(text)}
    found = find_terms(read_question_terms(question, ""), inside, find_acronyms(text))
    known = frozenset(inside)
    has = [one for one in telling if stem(one) in known]
    absent = [one for one in telling if not {stem(one), same_meaning(stem(one))} & {*known, *found}]
    lacks = [one for one in absent if len(one) >= _LEAST and one[:_BEGINNING] not in beginnings]
    return has, lacks or [one for one in absent if _is_short_name(one, beginnings)]


def _is_short_name(word: str, beginnings: Set[str]) -> bool:
    """Whether a word is short, no verb, and rare, and no word of a text begins with it."""
    if not word.isalpha() or len(word) >= _LEAST or word in VERBS:
        return False
    least = _LEAST_LISTED if is_listed(word) else _LEAST_RARE
    return rarity(stem(word)) >= least and not any(one.startswith(word) for one in beginnings)


def _describe(reading: SentenceReading) -> str:
    """Say what a sentence states, with its words; what it plans or supposes; or what it has."""
    if reading.grounding >= GROUNDED:
        return _describe_result(reading)
    signs = ", ".join(list_signs(reading))
    counts = count_plans(reading.sentence.text)
    for name in ("intention", "aim", "speculation"):
        if counts[name]:
            return f"reads like {_INSTEAD[name]}"
    if signs:
        return f"has {signs}"
    return "has a number" if reading.cues[_FIGURE] else "has no number"


def _name(verb: str, some: Sequence[str]) -> str:
    more = len(some) - MOST_NAMED
    named = f"{verb} {', '.join(some[:MOST_NAMED])}" if some else ""
    return f"{named} and {more} more" if more > 0 else named
